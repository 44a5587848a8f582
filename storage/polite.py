"""Manners towards servers: requests sent again after pauses, and robots.txt as RFC 9309 reads it, by Protego."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from protego import Protego

from exhibit.storage.http import Deadline
from exhibit.storage.http_replies import HttpError

LONGEST_WAIT = 120.0
"""Seconds; a server that asks for more is reported rather than waited for."""
_LONGEST_PAUSE = 30.0
"""Seconds at which the growing pause between two tries stops growing."""
_TOO_MANY = 429  # HTTP: too many requests

Result = TypeVar("Result")


class Retries:
    """Does a step again while that may help; a server that is too busy for one thread is too busy for all."""

    def __init__(
        self,
        times: int,
        backoff: float,
        *,
        in_vain: int | None = None,
        stopped: threading.Event | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Try again so many times, first after `backoff` seconds.

        After `in_vain` steps in a row that failed in spite of it, further ones are done once: waiting for a server that
        fails for everybody would take hours. Nobody waits once `stopped` is set.
        """
        self._times, self._backoff, self._in_vain = times, backoff, in_vain
        self._stopped = stopped or threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._failed = 0
        self._resume = 0.0

    def __call__(self, step: Callable[[], Result], *, deadline: Deadline | None = None, spread: float = 1.0) -> Result:
        """Return the step's result, or raise its last HttpError; `spread` keeps threads from returning together."""
        ready = 0.0
        for tries in itertools.count():
            seconds = max(ready, self._resume) - time.monotonic()
            if seconds > 0 and (deadline is None or seconds < deadline.left):
                self._sleep(seconds)
            try:
                result = step()
            except HttpError as error:
                error.tries = tries + 1
                pause = error.wait or min(_LONGEST_PAUSE, self._backoff * 2**tries) * spread
                if not self._may_help(error, tries, pause, deadline):
                    self._failed += error.transient
                    raise
                ready = time.monotonic() + pause
                if error.status == _TOO_MANY:
                    self._resume = max(self._resume, ready)
            else:
                self._failed = 0
                return result
        raise AssertionError("unreachable: the last try returns or raises")

    def _may_help(self, error: HttpError, tries: int, pause: float, deadline: Deadline | None) -> bool:
        hopeless = self._in_vain is not None and self._failed >= self._in_vain
        in_time = pause <= LONGEST_WAIT and (deadline is None or pause < deadline.left)
        return error.transient and tries < self._times and in_time and not hopeless and not self._stopped.is_set()


class Rules:
    """What one robot may do on one host, by its own groups or those for everybody; without any, everything."""

    def __init__(self, robot: str = "", text: str = "") -> None:
        self._robot = robot
        self._parsed = Protego.parse(text.removeprefix("\ufeff"))

    @property
    def delay(self) -> float:
        """Seconds between two requests that the site asks for."""
        return max(0.0, self._parsed.crawl_delay(self._robot) or 0.0)

    def allow(self, path: str) -> bool:
        """Tell whether a path, with its query, may be fetched."""
        # with a host, which rules do not look at: a path such as //x would be taken for one
        return bool(self._parsed.can_fetch(f"http://host{path}", self._robot))
