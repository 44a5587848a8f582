"""Count the faults that the tests of a room notice: `python tests/mutants.py --room law --room rag --count 25`.

A room is a folder of exhibit/. A mutant is the product with one operator, constant or return value changed. The sample
is drawn with a fixed seed. For each mutant, the room's test files that import the changed module are run; if no file
imports it, all of the room's tests are run. Module-level numbers in capitals are tuning constants and are not changed.
"""

import argparse
import ast
import compileall
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
IGNORED_FILES = ("__pycache__", ".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "build")
QUICK = "not slow and not extra and not server and not data"


class Mutant(NamedTuple):
    """A replacement of one expression in a file."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.after + source[self.end :]


def change(node: ast.AST) -> ast.expr | None:
    """Return a node with one fault in it; None if no operator applies."""
    mutated = copy.deepcopy(node)
    if isinstance(mutated, ast.Compare) and type(mutated.ops[0]) in COMPARISONS:
        mutated.ops[0] = COMPARISONS[type(mutated.ops[0])]()
    elif isinstance(mutated, ast.BoolOp):
        mutated.op = ast.Or() if isinstance(mutated.op, ast.And) else ast.And()
    elif isinstance(mutated, ast.UnaryOp) and isinstance(mutated.op, ast.Not):
        return mutated.operand
    elif isinstance(mutated, ast.BinOp) and type(mutated.op) in ARITHMETIC:
        mutated.op = ARITHMETIC[type(mutated.op)]()
    elif isinstance(mutated, ast.Constant) and isinstance(mutated.value, bool):
        mutated.value = not mutated.value
    elif isinstance(mutated, ast.Constant) and isinstance(mutated.value, int | float):
        mutated.value += 1
    else:
        return None
    return mutated


def find_expressions(tree: ast.AST, *, top: bool = True) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each expression that can be changed, with its replacement."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr | ast.arg | ast.AnnAssign) or is_tuning_constant(node, top=top):
            continue  # an f-string has no exact positions in Python 3.11
        if isinstance(node, ast.Return) and node.value is not None and not is_none(node.value):
            yield node.value, ast.Constant(None)
        if isinstance(node, ast.expr) and (changed := change(node)) is not None:
            yield node, changed
        yield from find_expressions(node, top=top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_tuning_constant(node: ast.AST, *, top: bool) -> bool:
    return top and isinstance(node, ast.Assign) and all(ast.unparse(target).isupper() for target in node.targets)


def find_mutants(path: Path) -> list[Mutant]:
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        text = source[starts[line - 1] : starts[line]]
        return starts[line - 1] + len(text.encode()[:column].decode())

    mutants = []
    for node, changed in find_expressions(ast.parse(source)):
        start = offset(node.lineno, node.col_offset)
        end = offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        after = f"({ast.unparse(ast.fix_missing_locations(changed))})"
        mutants.append(Mutant(path, node.lineno, start, end, source[start:end], after))
    return mutants


def imported_by(path: Path) -> set[str]:
    """Return the dotted names that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def choose_tests(checkout: Path, room: str, path: Path) -> list[str]:
    """Return the room's test files that import a module, or the room's test folder if no file imports it."""
    module = ".".join(path.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__")
    files = sorted((checkout / "tests" / room).rglob("test_*.py"))
    return [str(file) for file in files if module in imported_by(file)] or [str(checkout / "tests" / room)]


def run_tests(checkout: Path, *arguments: str, seconds: float) -> bool | None:
    """Return whether the tests pass; None if they run longer than `seconds`."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", QUICK, *arguments]
    with subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None


def list_failures(checkout: Path, room: str) -> list[str]:
    """Run a room's tests on the unchanged product; return the options that deselect the failing tests."""
    report = checkout / "junit.xml"
    run_tests(checkout, str(checkout / "tests" / room), f"--junitxml={report}", "-n2", seconds=3600)
    failures = []
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            file = case.get("classname", "").replace(".", "/")
            failures.append(f"--deselect={file}.py::{case.get('name')}")
    return failures


def measure(checkout: Path, room: str, *, count: int, seed: int, seconds: float) -> tuple[int, int]:
    """Print each surviving mutant of a room; return the number of noticed mutants and the number of all mutants."""
    failures = list_failures(checkout, room)
    print(f"{room}: {len(failures)} tests fail without a mutant and are left out", flush=True)
    sites = [mutant for path in sorted((checkout / "exhibit" / room).rglob("*.py")) for mutant in find_mutants(path)]
    sample = random.Random(f"{seed} {room}").sample(sites, min(count, len(sites)))
    killed = 0
    for mutant in sample:
        source = mutant.path.read_text(encoding="utf-8")
        mutant.path.write_text(mutant.apply(source), encoding="utf-8")
        try:
            tests = choose_tests(checkout, room, mutant.path)
            passed = run_tests(checkout, "-x", *tests, *failures, seconds=seconds)
        finally:
            mutant.path.write_text(source, encoding="utf-8")
        killed += not passed
        state = "SURVIVED" if passed else "killed" if passed is False else "killed (time)"
        where = f"{mutant.path.relative_to(checkout)}:{mutant.line}"
        print(f"{state:14}{where}: {' '.join(mutant.before.split())[:70]} -> {mutant.after[:70]}", flush=True)
    return killed, len(sample)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--room", action="append", required=True)
    parser.add_argument("--count", type=int, default=25, help="mutants of each room (25)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300, help="most time of the tests of one mutant (300)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(given.checkout, checkout, ignore=shutil.ignore_patterns(*IGNORED_FILES))
        compileall.compile_dir(checkout, quiet=2)
        totals = {
            room: measure(checkout, room, count=given.count, seed=given.seed, seconds=given.seconds)
            for room in given.room
        }
    for room, (killed, total) in totals.items():
        print(f"{room}: {killed} of {total} noticed")


if __name__ == "__main__":
    main()
