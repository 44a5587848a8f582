"""What one item may take: seconds, and memory beyond what its worker had before it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from schemas.errors import LimitError

SECONDS = 120.0
"""Of one document: of 200 contracts of CUAD the longest, 111 pages, is read and split in half a second."""
MEMORY = 2 << 30
"""Bytes for one document: the same 111 pages take 12 MB."""
_MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one item may take; None is without limit."""

    seconds: float | None = SECONDS
    memory: int | None = MEMORY

    def late(self, name: str) -> LimitError:
        """Return the error of an item that took too long."""
        return LimitError(f"{name}: not done after {self.seconds:g} s (--item-timeout); set aside")

    def large(self, name: str) -> LimitError:
        """Return the error of an item that took too much memory."""
        most = (self.memory or 0) // _MIB
        return LimitError(f"{name}: needs more than {most} MiB of memory (--item-memory); set aside")


UNLIMITED = Limits(None, None)


def add_limit_arguments(parser: Any, **defaults: object) -> None:
    """Add --item-timeout and --item-memory to a parser or a group of one."""
    parser.add_argument(
        "--item-timeout",
        type=_seconds,
        metavar="S",
        help=f"seconds that one document may take before it is set aside (default: {SECONDS:g}; 0: no limit)",
        **{"default": SECONDS, **defaults},
    )
    parser.add_argument(
        "--item-memory",
        type=_mebibytes,
        metavar="MIB",
        help=f"memory that one document may take before it is set aside (default: {MEMORY // _MIB}; 0: no limit)",
        **{"default": MEMORY // _MIB, **defaults},
    )


def limits_from(options: Any) -> Limits:
    """Return the limits that the flags ask for; the usual ones where there are no such flags."""
    return make_limits(getattr(options, "item_timeout", SECONDS), getattr(options, "item_memory", MEMORY // _MIB))


def make_limits(seconds: float, mebibytes: int) -> Limits:
    """Return limits from the figures of the command line, where 0 is without limit."""
    return Limits(seconds or None, mebibytes * _MIB or None)


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or more seconds")
    return number


def _mebibytes(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


# ---------------------------------------------------------------- in the process that does the work


@contextmanager
def memory_limited(most: int | None) -> Iterator[None]:
    """Let this process take so many bytes more and no further; Linux alone can say so."""
    if most is None or sys.platform != "linux":
        yield
        return
    import resource  # Windows has no such module

    used = _data_bytes()
    usual, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + most if hard == resource.RLIM_INFINITY else min(used + most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (usual, hard))


def _data_bytes() -> int:
    """Return the private memory that this process has mapped, as the kernel counts it for the limit."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def time_limited(limits: Limits, name: str) -> Iterator[None]:
    """Raise LimitError in the block when its time is over: in Python code alone, and in the main thread alone.

    A library that does not come back is only ended with its process: that is what workers are for.
    """
    main = threading.current_thread() is threading.main_thread()
    if limits.seconds is None or not main or not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise limits.late(name)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limits.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
