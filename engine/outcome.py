"""The seam: items in, outcomes out in the same order, whatever runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from schemas.errors import ToolkitError

In = TypeVar("In")
Out = TypeVar("Out")


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
    """Apply the function once."""
    try:
        return Outcome(function(item))
    except ToolkitError as error:
        return Outcome(None, error)
