"""An engine with worker processes on this machine; a worker that dies or exceeds its time limit is replaced."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from exhibit.engine.limits import UNLIMITED, Limits
from exhibit.engine.outcome import AHEAD, In, Out, Outcome, name_item
from exhibit.engine.worker import Worker, dump, read_outcome


class Runner:
    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "", limits: Limits | None = None) -> None:  # noqa: ARG002 - as all runners
        self.jobs = jobs or int(os.environ.get("EXHIBIT_JOBS") or 0) or os.cpu_count() or 1
        self._limits = limits or UNLIMITED

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; an item that exceeds its limits or kills its workers gets an error."""
        workers: list[Worker[Any, Any]] = []
        free: deque[Worker[Any, Any]] = deque()

        def answer(item: bytes, name: str) -> Outcome[Out]:
            try:
                worker = free.pop()
            except IndexError:  # all workers are busy: each thread has at most one
                worker = Worker.of(function, limits=self._limits)
                workers.append(worker)
            try:
                return read_outcome(worker.answer(item, name))
            finally:
                free.append(worker)

        waiting, flight = iter(items), deque[Future[Outcome[Out]]]()
        threads = ThreadPoolExecutor(self.jobs)
        try:
            while True:
                room = self.jobs * AHEAD - len(flight)
                flight.extend(threads.submit(answer, dump(item), name_item(item)) for item in islice(waiting, room))
                if not flight:
                    return
                yield flight.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.open = False
            threads.shutdown()
            for worker in workers:  # keep the idle processes for the next call
                worker.rest()
