"""Processes on this machine: a few items in flight, results in order, a worker that is late or dies replaced."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import TypeVar

from exhibit.engine._crew import Crew
from exhibit.engine.limits import UNLIMITED, Limits
from exhibit.engine.outcome import AHEAD, Outcome

In = TypeVar("In")
Out = TypeVar("Out")


class Runner:
    """Applies the function in worker processes."""

    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "", limits: Limits | None = None) -> None:  # noqa: ARG002 - as all runners
        self.jobs = jobs or os.cpu_count() or 1
        self._limits = limits or UNLIMITED

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; an item that passes its limits or kills its workers is set aside."""
        waiting = iter(items)
        flight: deque[Future[Outcome[Out]]] = deque()
        crew = Crew(function, self._limits, size=self.jobs)
        try:
            while True:
                flight.extend(crew.submit(item) for item in islice(waiting, self.jobs * AHEAD - len(flight)))
                if not flight:
                    return
                yield flight.popleft().result()
        finally:
            crew.close()
