"""Runs the tests in several processes: `pytest -p tests.testers --testers 3`.

The processes are forked when all tests are collected, so that the tests are imported and compiled once, not once a
process, which was a sixth of the processor time. A file is run by one process, for what its tests share; large files
come first, as they take longest, so that all processes end together.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
_FORK = get_context("fork")
_importing: list[int] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--testers", type=int, default=1, help="processes that run the tests")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a second process import the tests from the end, so that of a new copy each compiles one half."""
    whole = [Path(argument).resolve() for argument in session.config.args] == [_HERE]
    if not whole or session.config.option.testers < 2:
        return
    if process := os.fork():
        _importing.append(process)
        return
    for path in sorted(_HERE.rglob("test_*.py"), reverse=True):
        # collection, which comes to it again, tells what is wrong with it
        with suppress(BaseException):
            import_module(".".join(path.relative_to(_HERE.parent).with_suffix("").parts))
    os._exit(0)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Take what is imported by now out of the garbage collector's sight: it stays, and there is a million of it."""
    while _importing:
        os.kill(_importing[-1], signal.SIGKILL)
        os.waitpid(_importing.pop(), 0)
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Let the processes share the files, and report what they say of each test."""
    if session.testsfailed or session.config.option.collectonly or session.config.option.testers < 2:
        return None
    session.config._tmp_path_factory.getbasetemp()  # one folder for all
    session.config.pluginmanager.get_plugin("terminalreporter").showfspath = False
    next_file = _FORK.Value("i", 0)
    files = _by_file(session.items)
    processes: dict[Connection, int] = {}
    for _ in range(min(session.config.option.testers, len(files))):
        here, there = _FORK.Pipe(duplex=False)
        if process := os.fork():
            there.close()
            processes[here] = process
        else:
            _Tester(session, there).run(files, next_file)
    try:
        _report(session, processes)
    finally:
        for process in processes.values():
            os.kill(process, signal.SIGKILL)
    return True


def _by_file(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    files = defaultdict[Path, list[pytest.Item]](list)
    for item in items:
        files[item.path].append(item)
    return [files[path] for path in sorted(files, key=lambda path: -path.stat().st_size)]


def _report(session: pytest.Session, processes: dict[Connection, int]) -> None:
    """Pass on what the processes say until the last has ended."""
    hook, running = session.config.hook, dict.fromkeys(processes, "")
    while running:
        for connection in wait(list(running)):
            assert isinstance(connection, Connection)
            try:
                said = connection.recv()
            except EOFError:
                status = os.waitstatus_to_exitcode(os.waitpid(processes.pop(connection), 0)[1])
                if file := running.pop(connection) or status:
                    text = f"the process that ran the tests of {file} ended with {status}"
                    hook.pytest_runtest_logreport(
                        report=pytest.TestReport(str(file), (str(file), 0, ""), {}, "failed", text, "call")
                    )
                continue
            if isinstance(said, str):
                running[connection] = said
            else:
                hook.pytest_runtest_logreport(
                    report=hook.pytest_report_from_serializable(config=session.config, data=said)
                )
        if session.shouldfail:
            raise session.Failed(session.shouldfail)


class _Tester:
    """A process that runs tests and says of each what became of it."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session, self._connection = session, connection

    def run(self, files: list[list[pytest.Item]], next_file: Any) -> None:
        """Run the tests of one file after the other, and end."""
        plugins = self._session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(self)
        capture = plugins.get_plugin("capturemanager")
        capture.stop_global_capturing()  # its files are the first process's
        capture.start_global_capturing()
        capture.suspend_global_capture()
        status = 1
        try:
            items = _taken(files, next_file)
            item, path = next(items, None), None
            while item:
                if item.path != path:
                    path = item.path
                    self._connection.send(item.nodeid.partition("::")[0])
                following = next(items, None)
                self._session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                item = following
            self._connection.send("")
            status = 0
        finally:
            os._exit(status)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send it, unless all it says is that a fixture was made and ended well."""
        if report.when == "call" or not report.passed:
            hook = self._session.config.hook
            self._connection.send(hook.pytest_report_to_serializable(config=self._session.config, report=report))


def _taken(files: list[list[pytest.Item]], next_file: Any) -> Iterator[pytest.Item]:
    """Yield the tests of every file that no other process has taken."""
    while True:
        with next_file.get_lock():
            number, next_file.value = next_file.value, next_file.value + 1
        if number >= len(files):
            return
        yield from files[number]
