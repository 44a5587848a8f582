"""Which tests call which functions: a pytest plug-in that notes it while the unchanged tests run.

It is loaded by `pytest -p bench._mutants.reach` in a copy of the tree, and writes JSON to the file that the variable
MUTANTS_REACH names: the seconds of each test, for each file of MUTANTS_FILES the tests that call the function that
begins at a line, those that are called before the first test runs, and the modules of others that the tests' files
import. What a fixture calls that several tests share is called by all of them; its seconds are told apart from theirs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

REACH, FILES = "MUTANTS_REACH", "MUTANTS_FILES"


class Recorder:
    """Notes each call of a function of the files watched under the test that is running."""

    def __init__(self, files: list[str]) -> None:
        self._files = {str(Path(file).resolve()): file for file in files}
        self._now: set[tuple[str, int]] = set()
        self.calls: dict[str, dict[int, list[str]]] = {file: {} for file in files}
        self.seconds: dict[str, float] = {}
        self.setups: dict[str, float] = {}
        self.uses: dict[str, list[str]] = {}
        self._of_setup: dict[str, set[tuple[str, int]]] = {}
        self._shared = 0.0
        self.early: dict[str, list[int]] = {}
        self.modules: list[str] = []

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename in self._files:
            body = not code.co_flags & CO_OPTIMIZED  # of a module or a class, which is run when its file is loaded
            self._now.add((code.co_filename, 0 if body else code.co_firstlineno))

    def watch(self) -> None:
        """Note calls from now on."""
        threading.settrace(self)
        sys.settrace(self)

    def _rest(self) -> None:
        sys.settrace(None)
        threading.settrace(None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record what one test calls, its fixtures included."""
        self._now.clear()
        self._shared = 0.0
        begin = _spent()
        self.watch()
        try:
            return (yield)
        finally:
            self._rest()
            self.seconds[item.nodeid] = _spent() - begin - self._shared
            self.uses[item.nodeid] = used = [name for name in _fixtures(item) if name in self.setups]
            for path, line in self._now.union(*(self._of_setup[name] for name in used)):
                self.calls[self._files[path]].setdefault(line, []).append(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Record what a fixture calls that more than one test may use: the first of them alone pays for it."""
        if fixturedef.scope == "function":
            return (yield)
        outer, self._now = self._now, set()
        shared, begin = self._shared, _spent()
        try:
            return (yield)
        finally:
            took = _spent() - begin - (self._shared - shared)  # less those that were set up within it
            name = _name(fixturedef)
            self.setups[name] = max(self.setups.get(name, 0.0), took)
            self._of_setup[name] = self._of_setup.get(name, set()) | self._now
            self._shared += took
            self._now |= outer

    def pytest_collection_finish(self) -> None:
        """Note what was loaded and called so far; of what is loaded not this tree's own files, which may be changed."""
        self._rest()
        for path, line in sorted(place for place in self._now if place[1]):
            self.early.setdefault(self._files[path], []).append(line)
        here = f"{Path.cwd()}{os.sep}"
        own = {name for name, module in sys.modules.items() if str(getattr(module, "__file__", here)).startswith(here)}
        self.modules = [name for name in sys.modules if name.partition(".")[0] not in own and name not in own]

    def pytest_sessionfinish(self) -> None:
        """Write what was seen."""
        seen = {
            "seconds": self.seconds, "setups": self.setups, "uses": self.uses,
            "calls": self.calls, "early": self.early, "modules": self.modules,
        }  # fmt: skip
        Path(os.environ[REACH]).write_text(json.dumps(seen), encoding="utf-8")


def _fixtures(item: pytest.Item) -> list[str]:
    known = getattr(item, "_fixtureinfo", None)
    return [_name(one) for some in known.name2fixturedefs.values() for one in some] if known else []


def _name(fixture: pytest.FixtureDef[Any]) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


def _spent() -> float:
    """Return the seconds of the processor of this process and those it started: others may use this machine."""
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Record from now on, in the process that was asked to."""
    if os.environ.get(REACH):
        recorder = Recorder(os.environ[FILES].split(os.pathsep))
        early_config.pluginmanager.register(recorder, "mutants-reach")
        recorder.watch()
