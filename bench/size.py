"""Counts the product's code by room: lines and characters without comments, docstrings and blank lines.

python -m bench.size            a table
python -m bench.size --json     the same for a program
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from exhibit.runtime.command import guarded

PRODUCT = Path(__file__).resolve().parent.parent / "exhibit"
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


class Size(NamedTuple):
    """How much code a file or a room has."""

    modules: int
    lines: int
    characters: int
    functions: int
    longest: float
    """Lines of the function that nine tenths are shorter than."""


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the sizes of the rooms and of all together."""
    parser = argparse.ArgumentParser(prog="python -m bench.size", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    rooms = sorted(path.parent for path in PRODUCT.glob("*/__init__.py"))
    files = {room.name: sorted(room.rglob("*.py")) for room in rooms} | {"exhibit": sorted(PRODUCT.glob("*.py"))}
    sizes = {room: measure(paths) for room, paths in files.items()}
    sizes["all"] = measure([path for paths in files.values() for path in paths])
    if options.json:
        print(json.dumps({room: size._asdict() for room, size in sizes.items()}, indent=1))
        return 0
    print(f"{'room':<12}{'modules':>8}{'lines':>8}{'share':>7}{'characters':>12}{'functions':>11}{'p90 lines':>11}")
    for room, (modules, lines, characters, functions, longest) in sizes.items():
        share = lines / sizes["all"].lines
        print(f"{room:<12}{modules:>8}{lines:>8,}{share:>7.0%}{characters:>12,}{functions:>11,}{longest:>11.0f}")
    return 0


def measure(paths: Sequence[Path]) -> Size:
    """Return how much code some files have together."""
    lines = characters = 0
    lengths: list[int] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        code = code_of(text)
        lines += len(code)
        characters += sum(code.values())
        functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        lengths += [(n.end_lineno or n.lineno) - n.lineno + 1 for n in functions]
    lengths.sort()
    return Size(len(paths), lines, characters, len(lengths), lengths[int(0.9 * len(lengths))] if lengths else 0)


def code_of(text: str) -> dict[int, int]:
    """Return the lines of a file that hold code, each with its number of characters of code."""
    documented = set(_docstrings(ast.parse(text)))
    lines: dict[int, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _NO_CODE or token.start[0] in documented:
            continue
        for number, line in enumerate(token.string.splitlines() or [""], start=token.start[0]):
            lines[number] = lines.get(number, 0) + len(line.strip())
    return lines


def _docstrings(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of strings that stand alone: docstrings, and what explains a constant below it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


if __name__ == "__main__":
    sys.exit(main())
