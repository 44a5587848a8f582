"""A metric's values in eight bytes each: a run of 200,000 questions has some eighty such columns."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload


class Column(Sequence[float | None]):
    """One value a case, in order; None, where a metric does not apply, is kept as the number that equals nothing."""

    __slots__ = ("_numbers",)

    def __init__(self, values: Iterable[float | None] = ()) -> None:
        self._numbers = array("d")
        self.extend(values)

    def extend(self, values: Iterable[float | None]) -> None:
        """Add values at the end."""
        for value in values:
            if value is not None and math.isnan(value):
                raise ValueError("a metric gave NaN for a question; one that does not apply gives None")
            self._numbers.append(math.nan if value is None else value)

    @property
    def empty(self) -> bool:
        """Whether the metric applies to no case."""
        return all(map(math.isnan, self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> float | None: ...
    @overload
    def __getitem__(self, place: slice) -> list[float | None]: ...
    def __getitem__(self, place: int | slice) -> float | list[float | None] | None:
        if isinstance(place, slice):
            return [None if math.isnan(number) else number for number in self._numbers[place]]
        number = self._numbers[place]
        return None if math.isnan(number) else number

    def __iter__(self) -> Iterator[float | None]:
        return (None if number != number else number for number in self._numbers)

    def __eq__(self, other: object) -> bool:
        """Return whether the values are the same, whatever sequence holds the others."""
        return isinstance(other, Sequence) and len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return f"Column({list(self)!r})"
