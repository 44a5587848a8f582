"""A pytest process that has collected the tests, and forks one that runs some of them with functions changed in place.

Collecting the tests of a room takes seconds, as it loads all that they import; a forked process has it done. Each line
it reads is JSON with `change` (the fields of a `Change`), `source` (its file's, unchanged), `tests` (in order, with the
seconds of the processor that each may take) and `seconds`; each is answered by a line with pytest's exit code, null
when its time was over, or "reload" where the change is not one of functions alone. The first argument is the file that
takes what is printed, the others are pytest's.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from bench._mutants.changes import Change, changed_tree
from bench._mutants.nursery import await_end, redirect
from bench._mutants.swap import exchange, exchanged

RELOAD = "reload"


class Seedbed:
    """Runs the tests that it is told to, each time in a process of their own."""

    def __init__(self, orders: TextIO, answers: TextIO) -> None:
        self._orders, self._answers = orders, answers
        self._limits: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Answer lines until there are none; in a forked process, let pytest run the tests of one line."""
        items = {item.nodeid: item for item in session.items}
        self._tell("ready")
        for line in self._orders:
            order = json.loads(line)
            change = Change(**order["change"])
            path = Path.cwd() / change.file
            # the file itself is changed when this is read, for the processes that tests start
            codes = exchanged(str(path), ast.parse(order["source"]), changed_tree(order["source"], change))
            if codes is None:
                self._tell(RELOAD)
                continue
            chosen = [items[test] for test in order["tests"]]
            process = os.fork()
            if not process:
                os.setsid()
                self._limits = order["tests"]
                exchange(str(path), codes)
                session.items = chosen
                return None
            self._tell(await_end(process, order["seconds"]))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """End the process where a test takes longer than it may: a loop that never ends would take minutes."""
        signal.setitimer(signal.ITIMER_PROF, self._limits[item.nodeid])  # of the processor: others use it, too
        return (yield)

    def _tell(self, answer: Any) -> None:
        print(json.dumps(answer), file=self._answers, flush=True)


def main() -> None:
    """Collect the tests, then serve until the input ends."""
    seedbed = Seedbed(os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8"))
    redirect(sys.argv[1])
    code = 3
    try:
        code = int(pytest.main(sys.argv[2:], plugins=[seedbed]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)  # a forked process must do nothing else of its parent's, and the parent has nothing left to do


if __name__ == "__main__":
    main()
