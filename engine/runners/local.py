"""Processes on this machine: a few items in flight, results in order, a worker's death survived."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TypeVar

from engine._spawn import Context, belongs_to_script
from engine.outcome import AHEAD, TRIES, Outcome, attempt, worker_died

In = TypeVar("In")
Out = TypeVar("Out")


class Runner:
    """Applies the function in worker processes."""

    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "") -> None:  # noqa: ARG002 - as all runners
        self.jobs = jobs or os.cpu_count() or 1
        self._script = False

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; an item that keeps killing its worker is set aside."""
        waiting = iter(items)
        flight: deque[tuple[In, Future[Outcome[Out]]]] = deque()
        self._script = belongs_to_script(function)
        pool = self._pool(self.jobs)
        try:
            while True:
                for item in islice(waiting, self.jobs * AHEAD - len(flight)):
                    flight.append((item, _submit(pool, function, item)))
                if not flight:
                    return
                item, future = flight.popleft()
                try:
                    yield future.result()
                except BrokenProcessPool:
                    # Which item did it is not known: those in flight run one by one.
                    pool.shutdown(wait=False, cancel_futures=True)
                    flight.appendleft((item, future))
                    yield from self._one_by_one(function, flight)
                    pool = self._pool(self.jobs)
        finally:
            _stop(pool)

    def _one_by_one(
        self, function: Callable[[In], Out], flight: deque[tuple[In, Future[Outcome[Out]]]]
    ) -> Iterator[Outcome[Out]]:
        """Yield the outcomes of a broken pool's items, each alone with a worker."""
        pool = self._pool(1)
        try:
            while flight:
                item, future = flight.popleft()
                if _finished(future):
                    yield future.result()
                    continue
                outcome: Outcome[Out] = worker_died(item)
                for _ in range(TRIES - 1):  # it was tried once among others
                    try:
                        outcome = pool.submit(attempt, function, item).result()
                        break
                    except BrokenProcessPool:
                        _stop(pool)
                        pool = self._pool(1)
                yield outcome
        finally:
            _stop(pool)

    def _pool(self, jobs: int) -> ProcessPoolExecutor:
        # spawn: the same on every system, and no lock or browser is inherited half-way
        context = get_context("spawn") if self._script else Context()
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare_worker)


def _submit(pool: ProcessPoolExecutor, function: Callable[[In], Out], item: In) -> Future[Outcome[Out]]:
    """Return the future of an item, a broken one where a worker died while nobody looked."""
    try:
        return pool.submit(attempt, function, item)
    except BrokenProcessPool as error:
        broken: Future[Outcome[Out]] = Future()
        broken.set_exception(error)
        return broken


def _finished(future: Future[Outcome[Out]]) -> bool:
    return future.done() and not future.cancelled() and not isinstance(future.exception(), BrokenProcessPool)


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
