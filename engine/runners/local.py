"""Processes on this machine: a few items in flight, results in order, a worker's death survived."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TypeVar

from engine.outcome import Outcome, attempt
from schemas.errors import ToolkitError

In = TypeVar("In")
Out = TypeVar("Out")

_AHEAD = 4
"""Items in flight per worker: enough to keep all busy, few enough that memory stays flat."""


class Runner:
    """Applies the function in worker processes."""

    def __init__(self, *, jobs: int) -> None:
        self.jobs = jobs

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; an item that kills its worker twice is set aside."""
        waiting = iter(items)
        flight: deque[tuple[In, Future[Outcome[Out]]]] = deque()
        pool = self._pool(self.jobs)
        try:
            while True:
                while len(flight) < self.jobs * _AHEAD and (item := next(waiting, None)) is not None:
                    flight.append((item, pool.submit(attempt, function, item)))
                if not flight:
                    return
                item, future = flight.popleft()
                try:
                    yield future.result()
                except BrokenProcessPool:
                    # Which item did it is not known: each of those in flight gets a worker of its own.
                    pool.shutdown(wait=False, cancel_futures=True)
                    for suspect in [item, *(other for other, _ in flight)]:
                        yield self._alone(function, suspect)
                    flight.clear()
                    pool = self._pool(self.jobs)
        finally:
            _stop(pool)

    def _alone(self, function: Callable[[In], Out], item: In) -> Outcome[Out]:
        for _ in range(2):
            pool = self._pool(1)
            try:
                return pool.submit(attempt, function, item).result()
            except BrokenProcessPool:
                continue
            finally:
                _stop(pool)
        return Outcome(None, ToolkitError(f"{item}: the worker process died on it twice; set aside"))

    def _pool(self, jobs: int) -> ProcessPoolExecutor:
        # spawn: the same on every system, and no lock or browser is inherited half-way
        return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_prepare_worker)


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, which stops the workers itself; and never outlive it, even when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _stop(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
