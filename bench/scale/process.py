"""Work in a process of its own, with the memory that it and its children take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar, cast

from bench.convert import tree_memory
from schemas.errors import ToolkitError

Result = TypeVar("Result")

_EVERY = 0.1
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Apart(Generic[Result]):
    """What some work returned, and what it took."""

    value: Result
    seconds: float
    peak: int
    """Bytes of the process and its children at the worst moment seen, shared pages once."""


def run_apart(work: Callable[..., Result], *arguments: Any, **options: Any) -> Apart[Result]:
    """Run picklable work in a fresh process; an error it raises is raised here."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, work, arguments, options))
    started = time.perf_counter()
    process.start()
    theirs.close()
    peak = 0
    try:
        while not ours.poll(_EVERY):
            peak = max(peak, tree_memory(process.pid or 0))
        succeeded, value = ours.recv()
    except EOFError:
        raise ToolkitError("the measured process died: out of memory, or a fault in a library") from None
    finally:
        process.join()
    if not succeeded:
        raise value
    return Apart(cast(Result, value), time.perf_counter() - started, peak)


def _work(answer: Connection, work: Callable[..., Any], arguments: Any, options: Any) -> None:
    try:
        answer.send((True, work(*arguments, **options)))
    except Exception as error:  # whatever it is, the parent raises it
        answer.send((False, error))


@dataclass
class Clock:
    """Processor seconds by stage: on a machine that does other things, too, they say more than the clock."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside under a name."""
        started = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - started

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time counted."""

        def counted(*arguments: Any, **options: Any) -> Any:
            with self.stage(name):
                return function(*arguments, **options)

        return counted


def machine() -> dict[str, Any]:
    """Return what a reader must know of the machine: its kind, its processors, and how busy it was before."""
    system = os.uname()
    return {
        "system": system.sysname,
        "machine": system.machine,
        "cores": os.cpu_count() or 1,
        "load": os.getloadavg()[0],
    }
