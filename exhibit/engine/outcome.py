"""The seam: items in, outcomes out in the same order, whatever runs them."""

import errno
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TextIO, TypeVar, cast

from exhibit.engine.limits import Limits, memory_limited
from exhibit.runtime.command import is_quiet
from exhibit.schemas.errors import DocumentError, LimitError, ToolkitError

In = TypeVar("In")
Out = TypeVar("Out")

AHEAD = 4
"""Items under way per worker: enough to keep all busy, few enough that memory stays flat."""
TRIES = 3
"""How often an item is tried that kills its worker, or that a disk or a network fails."""

_PAUSES = (0.2, 1.0)
"""Seconds before the second and the third try of what a disk or a network failed."""
_PASSING = frozenset(
    {errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT}
    | {errno.ECONNRESET, errno.ECONNABORTED, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH}
)
"""Faults of a disk or a network that may be over a moment later; a full disk or a missing file is none of them."""
_LONGEST = 200
"""Characters of an item that an error tells."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome(Generic[Out]):
    """What became of one item: its value, or the error that set it aside."""

    value: Out | None
    error: ToolkitError | None = None

    def unwrap(self) -> Out:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return cast(Out, self.value)


class Engine(Protocol):
    """Applies a picklable function to items, holding only a few of them at a time."""

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; only ToolkitErrors are set aside, bugs are raised."""


def attempt(function: Callable[[In], Out], item: In) -> Outcome[Out]:
    """Apply the function once; again, a moment later, where a disk or a network failed it."""
    for pause in (*_PAUSES, None):
        try:
            return Outcome(function(item))
        except (ToolkitError, OSError) as error:
            if pause is None or not _may_pass(error):
                return _set_aside(error, item)
        time.sleep(pause)
    raise AssertionError("unreachable: the last try returns or raises")


def attempt_within(limits: Limits, function: Callable[[In], Out], item: In) -> Outcome[Out]:
    """Apply the function; an item that takes too much memory, or is nested too deep for it, is set aside."""
    try:
        with memory_limited(limits.memory):
            return attempt(function, item)
    except MemoryError:
        return Outcome(None, limits.large(named(item)))
    except RecursionError as error:
        _log.debug("%s", named(item), exc_info=error)
        return Outcome(None, LimitError(f"{named(item)}: nested too deep; set aside"))


def worker_died(item: object) -> Outcome[Out]:
    """Return the outcome of an item that no worker survived."""
    why = "out of memory, or a fault in a library"
    return Outcome(None, DocumentError(f"{named(item)}: its worker process died {TRIES} times ({why}); set aside"))


def worker_failed(item: object, signal: str) -> Outcome[Out]:
    """Return the outcome of an item over which a library ended the worker."""
    why = "a fault in a library, or too little memory"
    return Outcome(None, DocumentError(f"{named(item)}: its worker process ended with {signal} ({why}); set aside"))


def _may_pass(error: Exception) -> bool:
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in _PASSING


def _set_aside(error: Exception, item: object) -> Outcome[Out]:
    """Return the outcome that carries an error; raise it where it is nobody's document that is at fault."""
    if isinstance(error, ToolkitError):
        return Outcome(None, error)
    if not _may_pass(error):
        raise error
    return Outcome(None, ToolkitError(f"{named(item)}: {error}; tried {TRIES} times, set aside"))


def named(item: object) -> str:
    """Return what an error calls an item."""
    words = str(item)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


# ---------------------------------------------------------------- progress on stderr: a bar on a terminal, a line eve


Item = TypeVar("Item")

_EVERY = 5.0
"""Seconds between two lines in a log."""


def track(
    items: Iterable[Item], *, total: int | None, label: str, unit: str = "doc", stream: TextIO | None = None
) -> Iterator[Item]:
    """Yield the items and show how far they are; nothing is printed for work that takes under two seconds."""
    if is_quiet():
        yield from items
        return
    out = stream or sys.stderr
    if out.isatty():
        from tqdm import tqdm  # a fifth of what a worker imports, and it shows no bar

        yield from tqdm(items, total=total, desc=label, unit=unit, file=out, delay=2.0, leave=False)
        return
    started = last = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            done = f"{count}/{total}" if total else f"{count}"
            rate = count / (now - started)
            left = f", {_duration((total - count) / rate)} left" if total and total > count else ""
            print(f"{label}: {done} {unit}s, {rate:.1f}/s{left}", file=out, flush=True)


def _duration(seconds: float) -> str:
    """Return a time as people say it: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
