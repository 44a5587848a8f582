"""A process that has loaded what the tests import from others, and forks one that runs pytest for each line it reads.

Most of a short test run is loading numpy, pydantic and the like; a forked process has them already. It is started with
a JSON file whose `modules` are loaded first. Each line it reads is JSON with `arguments`, `said` (the file that takes
what pytest prints) and `seconds`; each is answered by a line with pytest's exit code, null when its time was over.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

_PAUSE = 0.02
"""Seconds between two looks at a process that runs: short beside the half second that a run takes at least."""


def run(arguments: Sequence[str], said: str, seconds: float | None) -> int | None:
    """Run pytest in a forked process; return its exit code, None when its time was over."""
    process = os.fork()
    if not process:
        _become_pytest(arguments, said)
    return await_end(process, seconds)


def await_end(process: int, seconds: float | None) -> int | None:
    """Return the exit code of a forked process that leads a group, None when its time was over; then end all of it."""
    begin = time.monotonic()
    code: int | None = None
    while seconds is None or time.monotonic() - begin < seconds:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(_PAUSE)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # the processes that tests started, too
    if code is None:
        os.waitpid(process, 0)
    return code


def redirect(said: str) -> None:
    """Give this process no input, and a file for what it prints."""
    for stream, path, mode in ((0, os.devnull, os.O_RDONLY), (1, said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        os.dup2(os.open(path, mode, 0o600), stream)
    os.dup2(1, 2)


def _become_pytest(arguments: Sequence[str], said: str) -> NoReturn:
    """Run pytest in this process and end it: nothing of the parent's may run afterwards."""
    code = 3
    try:
        os.setsid()
        redirect(said)
        code = int(pytest.main(list(arguments)))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main() -> None:
    """Load the modules, then run pytest for each line until the input ends."""
    for name in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["modules"]:
        with suppress(Exception):  # what cannot be loaded by itself is loaded by the tests, as ever
            importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(asked["arguments"], asked["said"], asked["seconds"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
