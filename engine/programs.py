"""Programs that a worker starts: run to their end, ended with all that they started, their memory looked at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from exhibit.engine.limits import Limits

_LOOK = 0.2
"""Seconds between two looks, each of which takes about a millisecond."""
LEAST = 1 << 30
"""Bytes that programs may take in any case: a browser with an empty page has 150 MB."""


@contextmanager
def programs_watched(limits: Limits, name: str) -> Iterator[None]:
    """End the largest program below this process when all together pass the limit of memory; raise LimitError then.

    Linux alone tells. The block must not outlive its program: what it waits for must fail when the program is gone.
    """
    if limits.memory is None or sys.platform != "linux":
        yield
        return
    over, stop = threading.Event(), threading.Event()
    watch = threading.Thread(target=_watch, args=(max(limits.memory, LEAST), over, stop), daemon=True)
    watch.start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise limits.large(name) from error
        raise
    finally:
        stop.set()
        watch.join()


def _watch(most: int, over: threading.Event, stop: threading.Event) -> None:
    while not stop.wait(_LOOK):
        taken = {pid: _private_bytes(pid) for pid in programs_below(os.getpid())}
        if sum(taken.values()) > most:
            over.set()
            with suppress(ProcessLookupError):
                os.kill(max(taken, key=lambda pid: taken[pid]), signal.SIGKILL)


def run_program(
    command: Sequence[str], *, seconds: float, given: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Return what a program wrote; one that is not done in time is ended, with all that it started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        try:
            written, said = process.communicate(given, timeout=seconds)
        except BaseException:
            with suppress(OSError, MemoryError):  # where what it wrote took all memory, it is ended alone
                end_programs(process.pid)
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, written, said)


def end_programs(pid: int) -> None:
    """End what a process started, and what that started: a browser makes a group of its own."""
    for program in programs_below(pid):
        with suppress(OSError):
            os.kill(program, signal.SIGKILL)


def programs_below(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started; Linux alone tells."""
    if sys.platform != "linux":
        return []
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # the name in parentheses may hold anything: what follows its last parenthesis is plain
                parent = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
                children[int(parent)].append(int(entry.name))
    programs, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        programs += below
        waiting += below
    return programs


def _private_bytes(pid: int) -> int:
    """Return the memory that a process shares with no other, as near as the kernel tells quickly."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return 0
    return max(0, resident - shared) * os.sysconf("SC_PAGE_SIZE")
