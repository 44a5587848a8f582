"""What one item may take: seconds, and memory beyond what its worker had before it."""

import math
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from exhibit.runtime.command import add_arguments
from exhibit.schemas.errors import LimitError
from exhibit.schemas.parsing import read_beside

SECONDS = 120.0
"""Of one document: of 200 contracts of CUAD the longest, 111 pages, is read and split in half a second."""
MEMORY = 2 << 30
"""Bytes for one document: the same 111 pages take 12 MB."""
_MIB = 1 << 20  # bytes

_SHARE, _WHOLE_SECONDS = 1 / 12, 2_400_000
"""Of the limit of time, what reading any file may take in processor time, and the size at which it may take all of it.

With the usual limit: 10 s, and one more for each 20 KB. Of 205 PDFs of law the slowest takes 0.1 s for 100 KB.
"""
_LEAST_SECONDS = 5.0
"""Whatever the limit is: a worker's first file of a kind brings its library with it."""


class MemoryShare(NamedTuple):
    """Of the limit of memory, what reading any file of a kind may take, and the size at which it may take all of it."""

    least: float
    whole: int


PLAIN = MemoryShare(1 / 16, 8_000_000)
"""With the usual limit 128 MiB, which a picture needs to be unpacked, and 256 bytes for each byte of the file."""
PAGES = MemoryShare(1 / 48, 90_000_000)
"""Files that are read page by page: 43 MiB, and 24 bytes for each byte; those 205 PDFs take 2.7 MB."""
PACKED = MemoryShare(1 / 48, 2_000_000)
"""Archives of XML: 43 MiB, and 1 KiB for each byte; 300 pages of Word in 242 KB take 112 MB, their library 8 MB."""


@dataclass(frozen=True)
class Limits:
    """What one item may take; None is without limit."""

    seconds: float | None = SECONDS
    memory: int | None = MEMORY

    def late(self, name: str) -> LimitError:
        """Return the error of an item that took too long."""
        return LimitError(f"{name}: not done after {self.seconds:g} s (--item-timeout); set aside")

    def spent(self, name: str) -> LimitError:
        """Return the error of a file that was not read within what one of its size may take."""
        return LimitError(
            f"{name}: takes more processor time to read than a file of its size may "
            f"(a share of --item-timeout, {self.seconds or 0:g} s); set aside"
        )

    def large(self, name: str) -> LimitError:
        """Return the error of an item that took too much memory."""
        most = (self.memory or 0) // _MIB
        return LimitError(f"{name}: needs more than {most} MiB of memory (--item-memory); set aside")

    def for_reading(self, size: int, share: MemoryShare = PLAIN) -> "Limits":
        """Return what reading a file of so many bytes may take, of processor time and of memory."""
        seconds, memory = self.seconds, self.memory
        if seconds is not None:
            seconds = min(max(seconds * (_SHARE + size / _WHOLE_SECONDS), _LEAST_SECONDS), seconds)
        if memory is not None:
            memory = min(int(memory * (share.least + size / share.whole)), memory)
        return Limits(seconds, memory)


UNLIMITED = Limits(None, None)
_in_force = [Limits()]


@contextmanager
def limits_in_force(limits: Limits) -> Iterator[None]:
    """Let single calls within the block (`guarded`) have these limits: a command's flags hold for all that it does."""
    _in_force.append(limits)
    try:
        yield
    finally:
        _in_force.pop()


def limits_now() -> Limits:
    """Return what holds for a single call that is told nothing else."""
    return _in_force[-1]


def add_limit_arguments(parser: Any) -> None:
    """Add --item-timeout and --item-memory to a parser or a group of one."""
    add_arguments(parser, read_beside(__file__))


def limits_from(options: Any) -> Limits:
    """Return the limits that the flags ask for; the usual ones where there are no such flags."""
    return make_limits(getattr(options, "item_timeout", SECONDS), getattr(options, "item_memory", MEMORY // _MIB))


def make_limits(seconds: float, mebibytes: int) -> Limits:
    """Return limits from the figures of the command line, where 0 is without limit."""
    return Limits(seconds or None, mebibytes * _MIB or None)


# ---------------------------------------------------------------- in the process that does the work


_serving: list[Limits] = []
"""The limits of the items that this process works on, where it is a worker, which may be ended without harm."""


def serve_within(limits: Limits) -> None:
    """Say that this process is a worker: from now on reading has limits of its own."""
    _serving[:] = [limits]


def is_worker() -> bool:
    """Return whether this process is a worker, which has limits already and can have no worker of its own."""
    return bool(_serving)


@contextmanager
def reading(name: str, size: int, share: MemoryShare = PLAIN) -> Iterator[None]:
    """Let a worker read a file of so many bytes, and no longer than such a file may take; elsewhere do nothing.

    Processor time, which other work on the machine does not change. When it is over the system ends the process, even
    in a library that does not come back, and the signal that ended it tells why (`spent_by`).
    """
    if not _serving:
        yield
        return
    limits = _serving[0].for_reading(size, share)
    timed = limits.seconds is not None and hasattr(signal, "ITIMER_PROF")
    try:
        if timed:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, limits.seconds or 0)
        with memory_limited(limits.memory):
            yield
    except MemoryError as error:
        most = (limits.memory or 0) // _MIB
        raise LimitError(
            f"{name}: needs more than {most} MiB of memory to be read, too much for a file of {size} bytes "
            "(a share of --item-memory); set aside"
        ) from error
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


def spent_by(exitcode: int | None) -> bool:
    """Return whether a process that ended so had read a file for too long."""
    return hasattr(signal, "SIGPROF") and exitcode == -signal.SIGPROF


@contextmanager
def _data_limit(choose: Callable[[float, float], float]) -> Iterator[None]:
    """Let this process have the limit of memory that is chosen by the one it has and the highest; on Linux alone."""
    if sys.platform != "linux":
        yield
        return
    import resource  # Windows has no such module

    usual, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = choose(*(math.inf if limit == resource.RLIM_INFINITY else limit for limit in (usual, hard)))
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY if most == math.inf else int(most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (usual, hard))


def memory_limited(most: int | None) -> AbstractContextManager[None]:
    """Let this process take so many bytes more and no further; Linux alone can say so."""
    return nullcontext() if most is None else _data_limit(lambda usual, hard: min(_data_bytes() + most, usual, hard))


def programs_unlimited() -> AbstractContextManager[None]:
    """Let programs that are started in the block take memory as they like: a browser reserves far more than it uses."""
    return _data_limit(lambda _, hard: hard)


def memory_left() -> int | None:
    """Return how many bytes more this process may take, None without limit: not all libraries survive its end."""
    if sys.platform != "linux":
        return None
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return None if most == resource.RLIM_INFINITY else max(most - _data_bytes(), 0)


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


# ---------------------------------------------------------------- programs that a worker starts: run to their end, en


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
    # not in the working folder, where a program may look for settings of its own: it may come from elsewhere
    root = Path.cwd().anchor
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=root) as process:
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
