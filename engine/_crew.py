"""Workers that share the items of one map: who is late is stopped, who dies is replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from exhibit.engine._worker import Work, Worker, belongs_to_script, dump, hire, outcome_in
from exhibit.engine.limits import Limits
from exhibit.engine.outcome import TRIES, Outcome, named, worker_died
from exhibit.schemas.errors import ToolkitError

In = TypeVar("In")
Out = TypeVar("Out")

_STARTING = 300.0
"""Seconds that a worker may take to import what it is sent, on a machine that is busy with other things."""
_LOOK = 0.25
"""Seconds between two looks at the clock: a limit is passed by no more than this."""


class Place:
    """Where one worker works at a time; it begins with the first item."""

    def __init__(self, work: bytes, limits: Limits, script: bool = False) -> None:
        self._work, self._limits, self._script = work, limits, script
        self.worker: Worker | None = None
        self.open = True
        """False: whoever waits for an answer here waits no longer."""

    def answer(self, item: bytes, name: str) -> bytes:
        """Return an item's outcome as it travels; one whose worker died is tried again, and then set aside."""
        try:
            for _ in range(TRIES):
                worker, began = self._ready(), time.monotonic()
                worker.send(item)
                if not self._answers(worker, self._limits.seconds, began):
                    self.leave()
                    return dump(Outcome(None, self._limits.late(name)))
                data = worker.answer()
                if data is not None:
                    return data
                told = worker.last_words(self._limits, name)
                self.leave()
                if told is not None:
                    return dump(told)
            return dump(worker_died(name))
        except BaseException:
            self.leave()
            raise

    def leave(self, *, keep: bool = False) -> None:
        """Let the worker go: it ends, with the programs that it started, or rests until the next map."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.rest() if keep else worker.stop()

    def _ready(self) -> Worker:
        """Return a worker that has its work; after so many false starts the machine is at fault, and no item."""
        for _ in range(TRIES):
            if self.worker is not None:
                return self.worker
            began = time.monotonic()  # its time runs from when it is asked, however soon it begins
            worker = self.worker = hire(script=self._script)
            worker.send(self._work)
            in_time = self._answers(worker, _STARTING, began)
            what = "ended before they began" if in_time else f"were not ready after {_STARTING:g} s"
            data = worker.answer() if in_time else None
            if data is not None:
                outcome_in(data)
                return worker
            self.leave()
        raise ToolkitError(
            f"{TRIES} worker processes {what}: this machine is too busy, or has no memory left; "
            "run the command again when it has, or with fewer --jobs"
        )

    def _answers(self, worker: Worker, seconds: float | None, began: float) -> bool:
        """Return whether a worker says something, or dies, in time."""
        while not worker.await_answer(_LOOK):
            if not self.open:
                raise CancelledError
            if seconds is not None and time.monotonic() >= began + seconds:
                return False
        return True


def _work(function: Callable[[Any], Any], limits: Limits) -> tuple[bytes, Limits, bool]:
    """Return what a place is made of: the work as it is sent, its limits, and whether the script goes with it."""
    return dump(Work.of(dump(function), limits)), limits, belongs_to_script(function)


class OneWorker(Generic[In, Out]):
    """Takes one item at a time, in a process that keeps what it has opened (a browser) until an item costs it."""

    def __init__(self, function: Callable[[In], Out], *, limits: Limits) -> None:
        self.place = Place(*_work(function, limits))

    def run(self, item: In) -> Out:
        """Return what the function gives for an item; raise LimitError where it passes its limits."""
        result: Out = outcome_in(self.place.answer(dump(item), named(item))).unwrap()
        return result

    def close(self) -> None:
        """End the process, and the programs that it started."""
        self.place.leave()


class Crew:
    """Runs items in up to `size` workers, each looked after by a thread; results are futures."""

    def __init__(self, function: Callable[[Any], Any], limits: Limits, *, size: int) -> None:
        """Begin without workers: each of the first items brings one."""
        self._open_place, self._size = partial(Place, *_work(function, limits)), size
        self._looked_after: list[tuple[threading.Thread, Place]] = []
        self._jobs: SimpleQueue[tuple[Future[Outcome[Any]], bytes, str] | None] = SimpleQueue()

    def submit(self, item: object) -> Future[Outcome[Any]]:
        """Return the future of an item."""
        future: Future[Outcome[Any]] = Future()
        self._jobs.put((future, dump(item), named(item)))
        if len(self._looked_after) < self._size:
            place = self._open_place()
            thread = threading.Thread(target=self._look_after, args=(place,), daemon=True)
            self._looked_after.append((thread, place))
            thread.start()
        return future

    def _look_after(self, place: Place) -> None:
        while (job := self._jobs.get()) is not None:
            future, item, name = job
            try:
                future.set_result(outcome_in(place.answer(item, name)))
            except BaseException as error:
                future.set_exception(error)

    def close(self) -> None:
        """Stop what is still under way; workers that are idle rest until the next map."""
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        for _, place in self._looked_after:
            place.open = False
            self._jobs.put(None)
        for thread, place in self._looked_after:
            thread.join(10)  # not for ever: at the end of a program it may be gone without a word
            place.leave(keep=True)
