"""Counts lines of code in Python, TOML and JavaScript, without comments, docstrings and blank lines.

python -m bench.size            print two tables: parts of the repository, and packages in `exhibit/`
python -m bench.size --json     print both tables as JSON
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from exhibit.runtime.command import guarded

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ROOT / "exhibit"
USERS = (
    "law/systems", "rag/presets", "draft/playbooks", "viewer/languages", "evaluation/targets/systems",
    "converters/raw/columns.toml",
)  # fmt: skip
"""Folders of data that a user may vary, which are counted separately from the product."""
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
_COMMENTS = {".toml": ("#",), ".js": ("//", "/*", "*")}


class Size(NamedTuple):
    """Lines of code in each language."""

    files: int
    python: int
    toml: int
    javascript: int

    @property
    def lines(self) -> int:
        """The number of lines in Python, TOML and JavaScript together."""
        return self.python + self.toml + self.javascript


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the lines of code of each part of the repository, and of each package in `exhibit/`."""
    parser = argparse.ArgumentParser(prog="python -m bench.size", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    tables = {"part": measure_parts(), "room": measure_rooms()}
    if options.json:
        record = {title: {name: one._asdict() for name, one in table.items()} for title, table in tables.items()}
        print(json.dumps(record, indent=1))
        return 0
    for title, table in tables.items():
        print(f"{title:<14}{'files':>7}{'Python':>9}{'TOML':>8}{'JavaScript':>12}{'together':>10}")
        for name, one in table.items():
            print(f"{name:<14}{one.files:>7}{one.python:>9,}{one.toml:>8,}{one.javascript:>12,}{one.lines:>10,}")
        print()
    return 0


def measure_parts() -> dict[str, Size]:
    """Return the size of each part of the repository: product, tests, benchmarks, training and so on."""
    found = {name: sorted((ROOT / name).rglob("*")) for name in ("tests", "bench", "training", "docs", "samples")}
    doors = list(ROOT.glob("*.py"))
    for name in ("converters", "rag", "schemas"):
        doors += (ROOT / name).glob("*.py")
    product = [path for path in sorted(PRODUCT.rglob("*")) if not is_data(path)]
    data = [path for path in sorted(PRODUCT.rglob("*")) if is_data(path)]
    return {
        name: measure(paths) for name, paths in {"product": [*product, *doors], **found, "users' data": data}.items()
    }


def measure_rooms() -> dict[str, Size]:
    """Return the size of each room of the product (a package in `exhibit/`), and of all together."""
    files = {path.parent.name: path.parent.rglob("*") for path in sorted(PRODUCT.glob("*/__init__.py"))}
    found = {name: [path for path in paths if not is_data(path)] for name, paths in files.items()}
    found["exhibit"] = [path for path in PRODUCT.glob("*") if path.is_file()]
    return {
        name: measure(paths) for name, paths in {**found, "all": [p for some in found.values() for p in some]}.items()
    }


def is_data(path: Path) -> bool:
    """Return whether a file of the product is TOML data that users may change, such as a preset or a playbook."""
    return path.suffix == ".toml" and path.relative_to(PRODUCT).as_posix().startswith(USERS)


def measure(paths: Iterable[Path]) -> Size:
    """Return the lines of code of some files, summed by language; files in other languages are skipped."""
    lines, files = dict.fromkeys((".py", ".toml", ".js"), 0), 0
    for path in paths:
        if path.suffix in lines and path.is_file():
            text = path.read_text(encoding="utf-8")
            lines[path.suffix] += len(code_of(text)) if path.suffix == ".py" else count_lines(text, path.suffix)
            files += 1
    return Size(files, *lines.values())


def count_lines(text: str, suffix: str) -> int:
    """Return the number of lines of a TOML or JavaScript file that are neither blank nor a comment."""
    stripped = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(_COMMENTS[suffix]) for line in stripped)


def code_of(text: str) -> dict[int, int]:
    """Return, for each line of a Python file that has code, the number of its characters of code.

    The keys are line numbers, from 1.
    """
    documented = set(_find_docstrings(ast.parse(text)))
    lines: dict[int, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _NO_CODE or token.start[0] in documented:
            continue
        for number, line in enumerate(token.string.splitlines() or [""], start=token.start[0]):
            lines[number] = lines.get(number, 0) + len(line.strip())
    return lines


def _find_docstrings(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of string statements: docstrings, and strings below constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


if __name__ == "__main__":
    sys.exit(main())
