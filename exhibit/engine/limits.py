"""Limits of time and memory for processing one item, such as a document, and for the programs that it starts."""

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
from typing import Any, NamedTuple

from exhibit.runtime.command import parse_natural, parse_seconds
from exhibit.schemas.errors import LimitError

_MIB = 1 << 20  # bytes
SECONDS = 120.0  # for one document: the longest of 200 CUAD contracts (111 pages) is read and split in 0.5 s
MEMORY = 2 << 30  # bytes for one document: the same 111 pages take 12 MB
_MIN_SECONDS = 5.0  # processor seconds for even the smallest file: the first file of a kind also loads its library
_TIME_SHARE, _FULL_TIME_BYTES = 1 / 12, 2_400_000  # the share for every file; the bytes that add a whole limit


class MemoryShare(NamedTuple):
    least: float
    whole: int


PLAIN = MemoryShare(1 / 16, 8_000_000)  # by default 128 MiB, to decompress an image, plus 256 times the file's size
PAGES = MemoryShare(1 / 48, 90_000_000)  # files read page by page: 43 MiB, plus 24 times the file's size
PACKED = MemoryShare(1 / 48, 2_000_000)  # archives of XML: 43 MiB, plus 1,000 times the file's size


@dataclass(frozen=True)
class Limits:
    seconds: float | None = SECONDS
    memory: int | None = MEMORY

    def late(self, name: str) -> LimitError:
        return LimitError(f"{name}: left out, because it took more than {self.seconds:g} s; raise --item-timeout")

    def spent(self, name: str) -> LimitError:
        return LimitError(
            f"{name}: left out, because reading it takes more processor time than the limit for its size; "
            f"raise --item-timeout, now {self.seconds or 0:g} s"
        )

    def make_memory_error(self, name: str) -> LimitError:
        most = (self.memory or 0) // _MIB
        return LimitError(f"{name}: left out, because it needs more than {most} MiB of memory; raise --item-memory")

    def for_reading(self, size: int, share: MemoryShare = PLAIN) -> "Limits":
        seconds, memory = self.seconds, self.memory
        if seconds is not None:
            seconds = min(max(seconds * (_TIME_SHARE + size / _FULL_TIME_BYTES), _MIN_SECONDS), seconds)
        if memory is not None:
            memory = min(int(memory * (share.least + size / share.whole)), memory)
        return Limits(seconds, memory)


UNLIMITED = Limits(None, None)
_in_force = [Limits()]


@contextmanager
def apply_limits(limits: Limits) -> Iterator[None]:
    _in_force.append(limits)
    try:
        yield
    finally:
        _in_force.pop()


def get_limits() -> Limits:
    return _in_force[-1]


def add_limit_arguments(parser: Any) -> None:
    parser.add_argument(
        "--item-timeout", type=parse_seconds, metavar="S", default=SECONDS,
        help=f"time limit for one document, in seconds (default: {SECONDS:g}; 0: no limit)",
    )  # fmt: skip
    parser.add_argument(
        "--item-memory", type=parse_natural, metavar="MIB", default=MEMORY // _MIB,
        help=f"memory limit for one document, in MiB (default: {MEMORY // _MIB}; 0: no limit)",
    )  # fmt: skip


def read_limits(options: Any) -> Limits:
    mebibytes = getattr(options, "item_memory", MEMORY // _MIB)
    return Limits(getattr(options, "item_timeout", SECONDS) or None, mebibytes * _MIB or None)


# ---------------------------------------------------------------- limits inside a worker


_serving: list[Limits] = []  # the limits of the current item if this process is a worker, else empty


def serve_within(limits: Limits) -> None:
    _serving[:] = [limits]


def is_worker() -> bool:
    return bool(_serving)


@contextmanager
def limit_reading(name: str, size: int, share: MemoryShare = PLAIN) -> Iterator[None]:
    """In a worker, limit the processor time and memory for reading a file of `size` bytes; elsewhere do nothing."""
    if not _serving:
        yield
        return
    limits = _serving[0].for_reading(size, share)
    timed = limits.seconds is not None and hasattr(signal, "ITIMER_PROF")
    try:
        if timed:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, limits.seconds or 0)
        with limit_memory(limits.memory):
            yield
    except MemoryError as error:
        raise LimitError(
            f"{name}: reading it needs more than {(limits.memory or 0) // _MIB} MiB of memory, the limit for a file of "
            f"{size} bytes; raise the limit with --item-memory"
        ) from error
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


@contextmanager
def _set_data_limit(choose: Callable[[float, float], float]) -> Iterator[None]:
    """Limit this process's memory (RLIMIT_DATA) within the block; on other systems than Linux, do nothing."""
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


def limit_memory(most: int | None) -> AbstractContextManager[None]:
    if most is None:
        return nullcontext()
    return _set_data_limit(lambda usual, hard: min(_read_memory_pages("self", 5) + most, usual, hard))


def lift_memory_limit() -> AbstractContextManager[None]:
    return _set_data_limit(lambda _, hard: hard)


def _read_memory_pages(pid: int | str, column: int, less: int | None = None) -> int:
    """Return a column of a process's statm file in bytes; column 5 is private memory, as RLIMIT_DATA measures it."""
    columns = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return (int(columns[column]) - (int(columns[less]) if less else 0)) * os.sysconf("SC_PAGE_SIZE")


# ---------------------------------------------------------------- programs that a worker starts


_CHECK_SECONDS = 0.2  # seconds between two checks, each of which takes about a millisecond
MIN_PROGRAM_BYTES = 1 << 30  # memory that programs may always use: a browser with an empty page uses 150 MB


@contextmanager
def watch_programs(limits: Limits, name: str) -> Iterator[None]:
    """Kill the largest child program when all child programs together exceed the memory limit, and raise LimitError."""
    if limits.memory is None or sys.platform != "linux":
        yield
        return
    over, stop = threading.Event(), threading.Event()
    watch = threading.Thread(target=_watch, args=(max(limits.memory, MIN_PROGRAM_BYTES), over, stop), daemon=True)
    watch.start()
    try:
        yield
    except Exception as error:
        if over.is_set():
            raise limits.make_memory_error(name) from error
        raise
    finally:
        stop.set()
        watch.join()


def _watch(most: int, over: threading.Event, stop: threading.Event) -> None:
    while not stop.wait(_CHECK_SECONDS):
        taken: dict[int, int] = {}
        for pid in list_programs(os.getpid()):
            with suppress(OSError, ValueError, IndexError):  # the program has just ended
                taken[pid] = _read_memory_pages(pid, 1, less=2)  # resident memory without shared memory
        if sum(taken.values()) > most:
            over.set()
            with suppress(ProcessLookupError):
                os.kill(max(taken, key=lambda pid: taken[pid]), signal.SIGKILL)


def run_program(
    command: Sequence[str], *, seconds: float, given: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program and return its output; after `seconds`, kill it and all its children and raise an error."""
    pipe = subprocess.PIPE
    # do not run in the working folder, where the program could read a stranger's settings
    root = Path.cwd().anchor
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=root) as process:
        try:
            stdout, stderr = process.communicate(given, timeout=seconds)
        except BaseException:
            with suppress(OSError, MemoryError):  # MemoryError: the program's output has used up all memory
                end_programs(process.pid)
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def end_programs(pid: int) -> None:
    for program in list_programs(pid):
        with suppress(OSError):
            os.kill(program, signal.SIGKILL)


def list_programs(pid: int) -> list[int]:
    """Return the ids of all descendants of a process; on other systems than Linux, an empty list."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*/stat") if sys.platform == "linux" else ():
        with suppress(OSError, ValueError, IndexError):
            # the name in parentheses may contain any character; the fields after the last parenthesis are plain
            parent = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            children[int(parent)].append(int(entry.parent.name))
    programs = children[pid]
    for program in programs:
        programs += children[program]
    return programs
