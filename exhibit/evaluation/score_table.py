"""The scores of a dataset as a table with a column of values for each metric; None if the metric does not apply."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from exhibit.schemas.run import Outcome

Values = Sequence[float | None]
"""One value for each case; None, never 0, if the metric does not apply."""


@dataclass(frozen=True)
class Table:
    """The scores of a dataset: for each metric, one value per case, in the order of `ids`."""

    name: str
    ids: Sequence[int | str]
    documents: Sequence[str]
    """The document of each case; cases of the same document are resampled together."""
    values: Mapping[str, Values]
    failed: Sequence[bool] = ()
    """Whether the reply to each case failed; empty if none did."""
    labels: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    groups: str | None = None
    """The label whose groups are averaged first, from `bundle.json`."""
    contents: Sequence[str] = field(default=(), repr=False)
    """A digest of each question with its expected answer, gold and documents; empty if unknown."""
    outcomes: Sequence[Outcome] = field(default=(), repr=False)

    @property
    def pair(self) -> str | None:
        """The label that a variant of a bundle and its control share; None if the dataset is neither."""
        return self.labels[0].get("pair") if self.labels else None

    @property
    def errors(self) -> int:
        return sum(self.failed)

    def has_failed(self, row: int) -> bool:
        return bool(self.failed) and self.failed[row]

    def only(self, rows: Sequence[int]) -> "Table":
        def pick(column: Sequence[Any]) -> list[Any]:
            return [column[row] for row in rows] if column else []

        values = {name: pick(column) for name, column in self.values.items()}
        names = ("ids", "documents", "failed", "labels", "contents", "outcomes")
        columns: dict[str, Any] = {name: pick(getattr(self, name)) for name in names}
        return replace(self, values=values, **columns)

    def with_metrics(self, names: Container[str]) -> "Table":
        return replace(self, values={name: column for name, column in self.values.items() if name in names})


def compute_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are no such values."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
