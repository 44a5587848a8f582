"""Runs a function in a separate process, and measures the memory of that process and its children."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from bench.convert import measure_tree_memory
from exhibit.schemas.errors import ToolkitError

Result = TypeVar("Result")

_EVERY = 0.1
"""The seconds between two samples of memory."""
_LOOKED = 2.0
"""The seconds for which the machine's load is observed before a measurement."""
BUSY = 0.15
"""The greatest share of the cores that other programs may use; an idle machine uses some hundredths."""


@dataclass(frozen=True)
class Apart(Generic[Result]):
    """The result of a function that ran in a separate process, with its seconds and its peak memory."""

    value: Result
    seconds: float
    peak: int
    """The peak bytes of the process and its children; shared pages count once."""


def run_apart(work: Callable[..., Result], *arguments: Any, **options: Any) -> Apart[Result]:
    """Run a picklable function in a new process and measure it; its errors are raised in this process."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run_work, args=(theirs, work, arguments, options))
    started = time.perf_counter()
    process.start()
    theirs.close()
    peak = 0
    try:
        while not ours.poll(_EVERY):
            peak = max(peak, measure_tree_memory(process.pid or 0))
        succeeded, value = ours.recv()
    except EOFError:
        raise ToolkitError("the measured process died: out of memory, or a fault in a library") from None
    finally:
        process.join()
    if not succeeded:
        raise value
    return Apart(cast(Result, value), time.perf_counter() - started, peak)


def _run_work(answer: Connection, work: Callable[..., Any], arguments: Any, options: Any) -> None:
    try:
        answer.send((True, work(*arguments, **options)))
    except Exception as error:  # any error is raised again in the parent
        answer.send((False, error))


@dataclass
class Clock:
    """A counter of processor seconds by stage; on a busy machine, these are more reliable than wall-clock time."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time_stage(self, name: str) -> Iterator[None]:
        """Add the processor time of the `with` block to the stage of this name."""
        started = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - started

    def wrap_timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of the function that adds its processor time to the stage of this name."""

        def count_time(*arguments: Any, **options: Any) -> Any:
            with self.time_stage(name):
                return function(*arguments, **options)

        return count_time


def measure_resident(kind: str) -> int:
    """Return the resident memory of this process in bytes; 0 if it is unknown.

    The kind `RssAnon` is the process's own memory, `RssFile` that of mapped files.
    """
    status = Path("/proc/self/status")
    told = status.read_text(encoding="utf-8").partition(f"{kind}:")[2].split() if status.is_file() else []
    return 1024 * int(told[0]) if told else 0


def measure_busy_share(seconds: float = _LOOKED, *, stat: Path = Path("/proc/stat")) -> float:
    """Return the share of all cores that other programs use, measured while this process sleeps.

    Without `/proc/stat` it is computed from the load average of the last minute, which may include this
    command's own last measurement.
    """
    if not stat.is_file():
        return min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    before = _read_ticks(stat)
    time.sleep(seconds)
    after = _read_ticks(stat)
    return 1 - (after[1] - before[1]) / max(1, after[0] - before[0])


def _read_ticks(stat: Path) -> tuple[int, int]:
    """Return the total ticks of all cores, and their idle ticks."""
    ticks = [int(number) for number in stat.read_text(encoding="utf-8").partition("\n")[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def refuse_busy(what: str, share: float) -> None:
    """Raise an error if other programs use too much of the processor; the times would not be reproducible.

    `share` is the part of the machine that other programs use. `what` names the measurement in the message.
    """
    if share > BUSY:
        raise ToolkitError(
            f"{what}: not measured, since other programs use {100 * share:.0f}% of this machine; wait until they end, "
            "or give --busy, and the page says so"
        )


def describe_machine() -> dict[str, Any]:
    """Return a description of the machine: its kind, its processors, and its load before the measurement."""
    return {**describe_machine_kind(), "load": os.getloadavg()[0], "busy": measure_busy_share()}


def describe_machine_kind() -> dict[str, Any]:
    """Return the properties that two machines must share for their figures to be comparable."""
    system = os.uname()
    return {"system": system.sysname, "machine": system.machine, "cores": os.cpu_count() or 1}
