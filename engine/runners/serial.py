"""One item after another in this process: for debugging, and for work too small to share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from engine.outcome import Outcome, attempt

In = TypeVar("In")
Out = TypeVar("Out")


class Runner:
    """Applies the function here and now."""

    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "") -> None:  # noqa: ARG002 - as all runners
        self.jobs = 1

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item."""
        for item in items:
            yield attempt(function, item)
