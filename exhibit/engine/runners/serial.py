"""Runs one item after another in this process and applies no limits: for debugging, and for small work."""

from collections.abc import Callable, Iterable, Iterator

from exhibit.engine.limits import UNLIMITED, Limits
from exhibit.engine.outcome import In, Out, Outcome, attempt_within


class Runner:
    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "", limits: Limits | None = None) -> None:
        """Accept the options of all runners, which have no effect here."""

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        return (attempt_within(UNLIMITED, function, item) for item in items)
