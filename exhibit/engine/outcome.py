"""The interface of an engine, which maps items to outcomes in the order of the items."""

import errno
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TextIO, TypeVar, cast

from exhibit.engine.limits import Limits, limit_memory
from exhibit.runtime.command import is_quiet
from exhibit.schemas.errors import DocumentError, LimitError, ToolkitError

In = TypeVar("In")
Out = TypeVar("Out")

AHEAD = 4  # items in flight per worker: enough to keep all workers busy, few enough that memory stays flat
TRIES = 3  # attempts for an item that kills its worker, or that fails with a transient disk or network error
DIED = f"died {TRIES} times"
_RETRY_SECONDS = (0.2, 1.0)  # seconds before the second and the third attempt after a transient error
_TRANSIENT = frozenset(
    {errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT}
    | {errno.ECONNRESET, errno.ECONNABORTED, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH}
)  # transient errors of a disk or a network; a full disk or a missing file is not transient
_MAX_NAME_CHARS = 200  # most characters of an item's name in an error message
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome(Generic[Out]):
    value: Out | None
    error: ToolkitError | None = None

    def unwrap(self) -> Out:
        if self.error is not None:
            raise self.error
        return cast(Out, self.value)


class Engine(Protocol):
    """The interface of an engine, which applies a function to items and has only a few items in memory at a time."""

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; a ToolkitError becomes an outcome, any other error is raised."""


def attempt_within(limits: Limits, function: Callable[[In], Out], item: In) -> Outcome[Out]:
    """Return the outcome of applying the function to an item, with a memory limit; retry after transient errors."""
    pauses = iter(_RETRY_SECONDS)
    while True:
        try:
            with limit_memory(limits.memory):
                return Outcome(function(item))
        except MemoryError:
            return Outcome(None, limits.make_memory_error(name_item(item)))
        except RecursionError as error:
            _log.debug("%s", name_item(item), exc_info=error)
            return Outcome(None, LimitError(f"{name_item(item)}: left out, because it is nested too deeply"))
        except (ToolkitError, OSError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            transient = isinstance(cause, OSError) and cause.errno in _TRANSIENT
            pause = next(pauses, None) if transient else None
            if pause is None and isinstance(error, ToolkitError):
                return Outcome(None, error)
            if pause is None and not transient:
                raise
            if pause is None:
                return Outcome(None, ToolkitError(f"{name_item(item)}: left out after {TRIES} tries: {error}"))
        time.sleep(pause)


def report_death(item: object, how: str) -> Outcome[Out]:
    why = "out of memory, or a fault in a library"
    return Outcome(None, DocumentError(f"{name_item(item)}: left out, because its worker process {how} ({why})"))


def name_item(item: object) -> str:
    words = str(item)
    return words if len(words) <= _MAX_NAME_CHARS else f"{words[:_MAX_NAME_CHARS]}…"


Item = TypeVar("Item")
_LOG_SECONDS = 5.0  # seconds between two lines of progress in a log


def track(
    items: Iterable[Item], *, total: int | None, label: str, unit: str = "doc", stream: TextIO | None = None
) -> Iterator[Item]:
    """Yield the items and show progress; work that takes under two seconds prints nothing."""
    if is_quiet():
        yield from items
        return
    # import here: the import is a fifth of a worker's start-up time, and workers show no progress bar
    from tqdm import tqdm

    out = stream or sys.stderr
    if out.isatty():
        yield from tqdm(items, total=total, desc=label, unit=unit, file=out, delay=2.0, leave=False)
        return
    started = shown = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - shown >= _LOG_SECONDS:
            shown = now
            options: Any = {"total": total, "prefix": label, "unit": unit, "bar_format": _LOG_LINE}
            print(tqdm.format_meter(count, elapsed=now - started, **options), file=out, flush=True)


_LOG_LINE = "{desc}: {n_fmt}/{total_fmt} {unit}s, {rate_fmt}, {remaining} left"
