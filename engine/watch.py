"""The memory of programs that a worker starts, looked at while they run: what takes too much is ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
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


def programs_below(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
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
