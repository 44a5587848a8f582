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
    """Whether a reply to each case failed; empty if none did."""
    labels: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    groups: str | None = None
    """The label whose groups are averaged first, from `bundle.json`."""
    contents: Sequence[str] = field(default=(), repr=False)
    """A digest of each question with its expected answer, gold and documents; empty if unknown."""
    outcomes: Sequence[Outcome] = field(default=(), repr=False)
    rounds: Sequence[Mapping[str, Values]] = field(default=(), repr=False)
    """The values of each round, if every question was asked several times; `values` are then their means."""

    @classmethod
    def of_rounds(cls, tables: "Sequence[Table]") -> "Table":
        """Return the table of questions that were asked several times; each value is the mean over the rounds."""
        if len(tables) == 1:
            return tables[0]
        columns = {name: zip(*(table.values[name] for table in tables), strict=True) for name in tables[0].values}
        means = {name: [compute_mean(values) for values in column] for name, column in columns.items()}
        failed = [any(replies) for replies in zip(*(table.failed for table in tables), strict=True)]
        return replace(tables[0], values=means, failed=failed, rounds=[table.values for table in tables])

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

        values, *rounds = ({name: pick(one) for name, one in each.items()} for each in (self.values, *self.rounds))
        names = ("ids", "documents", "failed", "labels", "contents", "outcomes")
        columns: dict[str, Any] = {name: pick(getattr(self, name)) for name in names}
        return replace(self, values=values, rounds=rounds, **columns)

    def with_metrics(self, names: Container[str]) -> "Table":
        every = (self.values, *self.rounds)
        values, *rounds = ({name: each[name] for name in each if name in names} for each in every)
        return replace(self, values=values, rounds=rounds)


def compute_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are no such values."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
