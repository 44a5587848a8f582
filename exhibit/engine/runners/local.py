"""An engine with worker processes on this machine; a worker that dies or exceeds its time limit is replaced."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Generic

from exhibit.engine.limits import UNLIMITED, Limits
from exhibit.engine.outcome import AHEAD, In, Out, Outcome, name_item
from exhibit.engine.worker import Workplace, dump, read_outcome


class Runner:
    """An engine that applies a function to items in worker processes on this machine."""

    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "", limits: Limits | None = None) -> None:  # noqa: ARG002 - as all runners
        self.jobs = jobs or int(os.environ.get("EXHIBIT_JOBS") or 0) or os.cpu_count() or 1
        self._limits = limits or UNLIMITED

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; an item that exceeds its limits or kills its workers gets an error."""
        waiting = iter(items)
        flight: deque[Future[Outcome[Out]]] = deque()
        crew = _Crew(function, self._limits, size=self.jobs)
        try:
            while True:
                flight.extend(crew.submit(item) for item in islice(waiting, self.jobs * AHEAD - len(flight)))
                if not flight:
                    return
                yield flight.popleft().result()
        finally:
            crew.close()


class _Crew:
    """Runs items in up to `size` workers, with one thread per worker; results are futures."""

    def __init__(self, function: Callable[[Any], Any], limits: Limits, *, size: int) -> None:
        self._function, self._limits, self._size = function, limits, size
        self._crew: list[tuple[threading.Thread, Workplace]] = []
        self._jobs: SimpleQueue[tuple[Future[Outcome[Any]], bytes, str] | None] = SimpleQueue()

    def submit(self, item: object) -> Future[Outcome[Any]]:
        """Queue an item; each of the first `size` items starts a worker."""
        future: Future[Outcome[Any]] = Future()
        self._jobs.put((future, dump(item), name_item(item)))
        if len(self._crew) < self._size:
            place = Workplace.of(self._function, self._limits)
            thread = threading.Thread(target=self._run_jobs, args=(place,), daemon=True)
            self._crew.append((thread, place))
            thread.start()
        return future

    def _run_jobs(self, place: Workplace) -> None:
        while (job := self._jobs.get()) is not None:
            future, item, name = job
            try:
                future.set_result(read_outcome(place.answer(item, name)))
            except BaseException as error:
                future.set_exception(error)

    def close(self) -> None:
        """Stop the items that are being processed; keep idle worker processes for the next call of `map`."""
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        for _, place in self._crew:
            place.open = False
            self._jobs.put(None)
        for thread, place in self._crew:
            thread.join(10)  # with a timeout: when the program exits, the thread may already be gone
            place.leave(keep=True)


class OneWorker(Generic[In, Out]):
    """A worker process that runs one item at a time and is reused for all items, until an item kills it."""

    def __init__(self, function: Callable[[In], Out], *, limits: Limits) -> None:
        self.place = Workplace.of(function, limits)

    def run(self, item: In) -> Out:
        """Return the function's result for an item; raise LimitError when it exceeds its limits."""
        result: Out = read_outcome(self.place.answer(dump(item), name_item(item))).unwrap()
        return result

    def close(self) -> None:
        """Stop the process and the programs that it started."""
        self.place.leave()
