"""One change at a time in a copy of the tree, and the tests that reach it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench._mutants import reach
from bench._mutants.changes import Change, changed
from schemas.errors import ToolkitError

Outcome = Literal["noticed", "too slow", "survived", "no test runs it"]

_MOST_SECONDS = 20.0
"""Of the processor, for the tests of one change as they take unchanged; the quickest that reach it come first."""
_SLACK, _TIMES = 60.0, 10.0
"""A change whose tests take so many times longer, and a minute more, is noticed by the clock: it never ends."""
_NOT_COPIED = (".git", ".venv", "datasets_out", "results", "__pycache__", ".*_cache", ".hypothesis", "images")
_FAILED = (1, 2, 3, 4)
"""Exit codes of pytest: a test failed, or the changed file could not even be imported."""


@dataclass(frozen=True)
class Reach:
    """Seconds of each test, and for each file the tests that call the function that begins at a line."""

    seconds: dict[str, float]
    calls: dict[str, dict[int, list[str]]]

    def tests_of(self, change: Change, source: str) -> list[str]:
        """Return the tests of a change, the quickest first; of a line outside functions those that use its file."""
        by_line = self.calls[change.file]
        begin, end, remembers = _function(source, change.line)
        lines = [line for line in by_line if begin <= line <= end] if not remembers else list(by_line)
        tests = {test for line in lines for test in by_line[line]}
        # tests that bear the file's name may reach it in a process of their own, or read what it says of itself
        name = Path(change.file).stem
        tests |= {test for test in self.seconds if f"/test_{name}.py::" in test or f"[{name}]" in test}
        if not by_line and not tests:
            tests = set(self.seconds)  # only names and types: whoever uses it calls nothing in it
        chosen: list[str] = []
        total = 0.0
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 0.0), test)):
            total += self.seconds.get(test, 0.0)
            if chosen and total > _MOST_SECONDS:
                break
            chosen.append(test)
        return chosen


def _function(source: str, line: int) -> tuple[int, int, bool]:
    """Return the lines of the innermost function around a line, and whether what it returned may be remembered."""
    inner: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body[0].lineno <= line <= _end(node):
            inner = node if inner is None or node.lineno > inner.lineno else inner
    if inner is None:
        return 0, sys.maxsize, False
    first = min([inner.lineno, *(decorator.lineno for decorator in inner.decorator_list)])
    return first, _end(inner), any("cache" in ast.unparse(decorator) for decorator in inner.decorator_list)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


class Workshop:
    """A copy of the tree in which tests are run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED), dirs_exist_ok=True)

    def reach(self, files: Sequence[str], tests: Sequence[str]) -> Reach:
        """Run tests unchanged and return what they reach; a failure among them is an error."""
        noted = self.folder / "reach.json"
        told = {reach.REACH: str(noted), reach.FILES: os.pathsep.join(files)}
        code, said = self._pytest(["-p", reach.__name__, *tests], seconds=None, variables=told)
        if code != 0:
            raise ToolkitError(f"the tests fail before anything is changed:\n{said[-2000:]}")
        seen = json.loads(noted.read_text(encoding="utf-8"))
        calls = {file: {int(line): t for line, t in lines.items()} for file, lines in seen["calls"].items()}
        return Reach(seen["seconds"], calls)

    def attempt(self, change: Change, known: Reach) -> Outcome:
        """Make a change, run its tests until one fails, and take it back."""
        path = self.folder / change.file
        source = path.read_text(encoding="utf-8")
        tests = known.tests_of(change, source)
        if not tests:
            return "no test runs it"
        listed = self.folder / "tests.txt"
        listed.write_text("\n".join(tests), encoding="utf-8")
        usual = sum(known.seconds.get(test, 0.0) for test in tests)
        path.write_text(changed(source, change), encoding="utf-8")
        try:
            code, _ = self._pytest(["-x", f"@{listed}"], seconds=_SLACK + _TIMES * usual)
        finally:
            path.write_text(source, encoding="utf-8")
        if code is None:
            return "too slow"
        return "noticed" if code in _FAILED else "survived"

    def _pytest(
        self, arguments: Sequence[str], *, seconds: float | None, variables: dict[str, str] | None = None
    ) -> tuple[int | None, str]:
        """Return pytest's exit code, None when its time was over, and what it said."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=line"]
        command += ["-m", "not slow and not extra and not server and not llm and not data", *arguments]
        # a file changed twice within a second has the same date: compiled code of the first would be taken for it
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.folder),
            **(variables or {}),
        }
        with (self.folder / "said.txt").open("wb+") as said:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=said, stderr=said, start_new_session=True
            )
            try:
                code: int | None = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # the tests' own processes, too
                    process.wait()
            said.seek(0)
            return code, said.read().decode("utf-8", "replace")


def clock() -> float:
    """Return seconds that only go up."""
    return time.monotonic()
