"""Workers that share the items of one map, looked after by a thread: who is late is stopped, who dies is replaced."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import Any

from exhibit.engine._worker import STARTING, Bug, Worker, dump, hire
from exhibit.engine.limits import Limits
from exhibit.engine.outcome import TRIES, Outcome, named, worker_died
from exhibit.schemas.errors import ToolkitError

_LOOK = 0.25
"""Seconds between two looks at the clock: a limit is passed by no more than this."""


@dataclass(eq=False)
class _Job:
    item: object
    data: bytes
    future: Future[Outcome[Any]] = field(default_factory=Future)
    tries: int = 0


@dataclass(eq=False)
class _Place:
    """A worker, and what it is at; no job while it prepares itself."""

    worker: Worker
    since: float
    ready: bool = False
    job: _Job | None = None

    def deadline(self, limits: Limits) -> float:
        if not self.ready:
            return self.since + STARTING
        if self.job is None or limits.seconds is None:
            return float("inf")
        return self.since + limits.seconds


class Crew:
    """Runs items in up to `size` workers; results are futures."""

    def __init__(self, work: bytes, limits: Limits, *, size: int, script: bool, keep: bool = True) -> None:
        """Begin without workers: each of the first items brings one; `keep`: idle ones are kept for the next map."""
        self._work, self._limits = work, limits
        self._size, self._script, self._keep = size, script, keep
        self._places: list[_Place] = []
        self._waiting: deque[_Job] = deque()
        self._lock = threading.Lock()
        self._bell, self._ring = Pipe(duplex=False)
        self._open = True
        self._false_starts = 0
        self._thread = threading.Thread(target=self._look_after, daemon=True)
        self._thread.start()

    def submit(self, item: object) -> Future[Outcome[Any]]:
        """Return the future of an item."""
        job = _Job(item, dump(item))
        with self._lock:
            self._waiting.append(job)
            free = sum(place.job is None for place in self._places)
            if free < len(self._waiting) and len(self._places) < self._size:
                self._places.append(self._hire())
        self._ring.send_bytes(b"!")
        return job.future

    def close(self) -> None:
        """Stop what is still under way; workers that are idle rest until the next map."""
        self._open = False
        self._ring.send_bytes(b".")
        self._thread.join(10)  # not for ever: at the end of a program it may be gone without a word
        for place in self._places:
            if self._keep and place.ready and place.job is None:
                place.worker.rest()
            else:
                place.worker.stop()
        self._places.clear()
        self._bell.close()
        self._ring.close()

    # ---------------------------------------------------------------- in the thread

    def _look_after(self) -> None:
        try:
            while self._open:
                self._look()
        except Exception as error:  # a bug of this file must not leave anybody waiting
            self._fail(None, Bug(error, traceback.format_exc()))

    def _look(self) -> None:
        with self._lock:
            self._hand_out()
            places: dict[object, _Place] = {place.worker.pipe: place for place in self._places}
        for pipe in wait(
            [self._bell, *(place.worker.pipe for place in places.values())], self._patience(places.values())
        ):
            if pipe is self._bell:
                self._bell.recv_bytes()
            else:
                self._take(places[pipe])
        now = time.monotonic()
        for place in list(self._places):
            if now >= place.deadline(self._limits):
                self._stop_late(place)

    def _patience(self, places: Any) -> float | None:
        """Return how long to sleep at most: nobody has a deadline while nothing is under way."""
        return _LOOK if any(place.deadline(self._limits) < float("inf") for place in places) else None

    def _hand_out(self) -> None:
        for place in self._places:
            if not self._waiting:
                return
            if place.ready and place.job is None:
                place.job = self._waiting.popleft()
                place.job.tries += 1
                place.since = time.monotonic()
                place.worker.begin(place.job.data)

    def _take(self, place: _Place) -> None:
        """Deliver a worker's answer, or replace it where it died."""
        job = place.job
        try:
            answer = place.worker.answer()
        except Exception as error:  # what was sent cannot be read here: the program's fault, not the item's
            answer = Bug(error, "while its outcome was read")
        if answer is None:
            self._died(place)
            return
        if isinstance(answer, Bug):
            self._fail(job, answer)
        elif job is not None:
            _deliver(job, answer)
        place.ready, place.job = True, None

    def _died(self, place: _Place) -> None:
        """Try an item again whose worker died; one that every worker dies of is set aside."""
        job = place.job
        if not place.ready:
            self._start_again("ended before they began")
        elif job is not None and (told := place.worker.last_words(self._limits, named(job.item))):
            _deliver(job, told)
        elif job is not None and job.tries < TRIES:
            with self._lock:
                self._waiting.appendleft(job)
        elif job is not None:
            _deliver(job, worker_died(job.item))
        self._replace(place)

    def _stop_late(self, place: _Place) -> None:
        if place.job is not None:
            _deliver(place.job, Outcome(None, self._limits.late(named(place.job.item))))
        elif not place.ready:
            self._start_again(f"were not ready after {STARTING:g} s")
        self._replace(place)

    def _start_again(self, what: str) -> None:
        """Let another worker try to begin; after so many false starts the machine is at fault, and no item."""
        self._false_starts += 1
        if self._false_starts >= TRIES:
            error = ToolkitError(
                f"{TRIES} worker processes {what}: this machine is too busy, or has no memory left; "
                "run the command again when it has, or with fewer --jobs"
            )
            self._fail(None, Bug(error, ""))

    def _fail(self, job: _Job | None, bug: Bug) -> None:
        """Raise a bug where the item's outcome is asked for; one of no item, for all that wait."""
        with self._lock:
            jobs = [job] if job else [*self._waiting, *(place.job for place in self._places if place.job)]
            if job is None:
                self._waiting.clear()
        for one in jobs:
            if not one.future.done():
                one.future.set_exception(bug.raised())

    def _replace(self, place: _Place) -> None:
        """End a worker; another takes its place where there is work for it."""
        place.worker.stop()
        with self._lock:
            self._places.remove(place)
            if self._waiting:
                self._places.append(self._hire())

    def _hire(self) -> _Place:
        since = time.monotonic()  # its time runs from when it is asked, however soon it begins
        worker = hire(script=self._script)
        worker.assign(self._work)
        return _Place(worker, since)


def _deliver(job: _Job, outcome: Outcome[Any]) -> None:
    if not job.future.done():
        job.future.set_result(outcome)
