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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench._mutants import nursery, reach, seedbed
from bench._mutants.changes import Change, changed
from exhibit.schemas.errors import ToolkitError

Outcome = Literal["noticed", "too slow", "survived", "no test runs it"]

_MOST_SECONDS = 20.0
"""Of the processor, for the tests of one change as they take unchanged; the quickest that reach it come first."""
_SLACK, _LEAST, _TIMES = 60.0, 5.0, 10.0
"""A change whose tests take so many times longer, and a minute more, is noticed by the clock: it never ends. So is one
of whose tests a single one takes so many times longer, and five seconds of the processor more."""
_NOT_COPIED = (
    ".git",
    ".venv",
    "build",
    "dist",
    "datasets_out",
    "results",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "images",
)
_NOTED, _LISTED, _SAID = "reach.json", "tests.txt", "said.txt"
_FLAGS = (
    "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=line",
    "-m", "not slow and not extra and not server and not llm and not data",
)  # fmt: skip


@dataclass(frozen=True)
class Reach:
    """Seconds of each test, and for each file the tests that call the function that begins at a line."""

    seconds: dict[str, float]
    calls: dict[str, dict[int, list[str]]]
    early: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For each file the functions, by line, that are called before the first test runs."""
    setups: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each fixture that tests share."""
    uses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Those that a test uses."""

    def takes(self, *tests: str) -> float:
        """Return the seconds of some tests when no others run."""
        shared = {name for test in tests for name in self.uses.get(test, ())}
        return sum(self.seconds.get(test, 0.0) for test in tests) + sum(self.setups[name] for name in shared)

    def runs_early(self, change: Change, source: str) -> bool:
        """Return whether the function around a change runs while files are loaded, so that they must be loaded anew."""
        begin, end, _ = _function(source, change.line)
        return any(begin <= line <= end for line in self.early.get(change.file, ()))

    def callers(self, change: Change, source: str) -> set[str]:
        """Return the tests that call the function of a change."""
        by_line = self.calls[change.file]
        begin, end, remembers = self._lines(change, source)
        lines = [line for line in by_line if begin <= line <= end] if not remembers else list(by_line)
        return set().union(*(by_line[line] for line in lines))

    def _named(self, change: Change) -> set[str]:
        """Return the tests that bear a file's name: they may read what it says of itself."""
        name = Path(change.file).stem
        return {test for test in self.seconds if f"/test_{name}.py::" in test or f"[{name}]" in test}

    def is_called(self, change: Change, source: str) -> bool:
        """Return whether a test calls the function of a change, or bears its file's name."""
        return bool(self.callers(change, source) or self._named(change))

    def _lines(self, change: Change, source: str) -> tuple[int, int, bool]:
        begin, end, remembers = _function(source, change.line)
        if self.runs_early(change, source):
            begin, end = 0, sys.maxsize  # what it returned may be a constant of any file
        return begin, end, remembers

    def tests_of(self, change: Change, source: str) -> list[str]:
        """Return the tests of a change, the quickest first; outside functions those that use the name come first."""
        # what no test calls may run in a process that one starts, as all that workers do: those that use its file
        tests = self.callers(change, source) or set().union(*self.calls[change.file].values())
        tests |= self._named(change)
        # a constant is used by other files, whose tests need not call anything here: those come last
        outside = self._lines(change, source)[0] == 0
        others = set(self.seconds) - tests if outside else set()
        near = self._near(change, source) if outside else set()
        chosen: list[str] = []
        for test in (test for some in (near, tests - near, others) for test in self._quickest_first(some)):
            if chosen and self.takes(*chosen, test) > _MOST_SECONDS:
                break
            chosen.append(test)
        return chosen

    def _near(self, change: Change, source: str) -> set[str]:
        """Return the tests that call a function of the file which names what a line outside functions sets."""
        lines = _readers(source, change.line)
        return {test for line, tests in self.calls[change.file].items() if line in lines for test in tests}

    def _quickest_first(self, tests: set[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.takes(test), test))


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


def _readers(source: str, line: int) -> set[int]:
    """Return where the functions begin that read what a line sets: a constant, an attribute, their own default."""
    nodes = list(ast.walk(ast.parse(source)))
    set_there = [n for n in nodes if isinstance(n, ast.Assign | ast.AnnAssign) and n.lineno <= line <= _end(n)]
    names = {name for node in set_there for name in _names(node, ast.Store)}
    lines = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= line < node.body[0].lineno or names & _names(node, ast.Load):
                lines.add(first)
    return lines


def _names(node: ast.AST, how: type[ast.expr_context]) -> set[str]:
    named = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, how)]
    return {n.id if isinstance(n, ast.Name) else n.attr for n in named}


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


class _Server:
    """A process that runs tests, asked and answered line by line in JSON."""

    def __init__(self, command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, env=variables, text=True,
            encoding="utf-8", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, order: Mapping[str, Any]) -> Any:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        return self.receive()

    def receive(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise ToolkitError("the process that runs the tests ended; is there memory left?")
        return json.loads(line)

    def end(self) -> None:
        self._process.communicate()


class Workshop:
    """A copy of the tree in which tests are run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self._nursery: _Server | None = None
        self._seedbed: _Server | None = None
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED), dirs_exist_ok=True)

    def reach(self, files: Sequence[str], tests: Sequence[str]) -> Reach:
        """Run tests unchanged and return what they reach; a failure among them is an error."""
        told = {reach.REACH: str(self.folder / _NOTED), reach.FILES: os.pathsep.join(files)}
        command = [sys.executable, "-m", "pytest", *_FLAGS, "-p", reach.__name__, *tests]
        # compiled code of the unchanged files is kept, for the trials to read
        ran = subprocess.run(
            command, cwd=self.folder, env={**self._environment(), **told}, capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            raise ToolkitError(f"the tests fail before anything is changed:\n{(ran.stdout + ran.stderr)[-2000:]}")
        return self._noted()

    def _noted(self) -> Reach:
        seen = json.loads((self.folder / _NOTED).read_text(encoding="utf-8"))
        calls = {file: {int(line): t for line, t in lines.items()} for file, lines in seen["calls"].items()}
        return Reach(seen["seconds"], calls, seen["early"], seen["setups"], seen["uses"])

    def share(self, other: Workshop) -> None:
        """Let another workshop know what this one noted."""
        for path in [self.folder / _NOTED, *self.folder.rglob("__pycache__/*.pyc")]:
            copy = other.folder / path.relative_to(self.folder)
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(path, copy)

    def attempt(self, change: Change, known: Reach) -> Outcome:
        """Make a change, run its tests until one fails, and take it back."""
        path = self.folder / change.file
        source = path.read_text(encoding="utf-8")
        tests = known.tests_of(change, source)
        if not tests:
            return "no test runs it"
        limits = {test: _LEAST + _TIMES * known.takes(test) for test in tests}
        usual = known.takes(*tests)
        in_place = not known.runs_early(change, source)
        if in_place and self._seedbed is None:
            self._seedbed = self._planted(known)  # while the files are as they were
        path.write_text(changed(source, change), encoding="utf-8")
        try:
            code = self._try(change, source, limits, in_place=in_place, seconds=_SLACK + _TIMES * usual)
        finally:
            path.write_text(source, encoding="utf-8")
        if code is None or code == -signal.SIGPROF:
            return "too slow"
        if code != 0:
            return "noticed"
        return "survived" if known.is_called(change, source) else "no test runs it"

    def _try(
        self, change: Change, source: str, limits: Mapping[str, float], *, in_place: bool, seconds: float
    ) -> int | None:
        """Return pytest's exit code, None when its time was over."""
        order: dict[str, Any]
        if in_place and self._seedbed is not None:
            order = {"change": asdict(change), "source": source, "tests": dict(limits), "seconds": seconds}
            code = self._seedbed.ask(order)
            if code != seedbed.RELOAD:
                return code  # type: ignore[no-any-return]
        (self.folder / _LISTED).write_text("\n".join(limits), encoding="utf-8")
        self._nursery = self._nursery or self._started(nursery.__name__, _NOTED)
        order = {"arguments": [*_FLAGS, "-x", f"@{_LISTED}"], "said": _SAID, "seconds": seconds}
        return self._nursery.ask(order)  # type: ignore[no-any-return]

    def _planted(self, known: Reach) -> _Server:
        """Return the process that has collected the tests, once it has."""
        files = sorted({test.partition("::")[0] for test in known.seconds})
        server = self._started(seedbed.__name__, _SAID, *_FLAGS, "-x", *files)
        server.receive()
        return server

    def _started(self, *command: str) -> _Server:
        # a file changed twice within a second has the same date: compiled code of the first would be taken for it
        return _Server(command, self.folder, {**self._environment(), "PYTHONDONTWRITEBYTECODE": "1"})

    def close(self) -> None:
        """End the processes that run tests."""
        for server in (self._nursery, self._seedbed):
            if server is not None:
                server.end()
        self._nursery = self._seedbed = None

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder)}


def clock() -> float:
    """Return seconds that only go up."""
    return time.monotonic()
