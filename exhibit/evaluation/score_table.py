"""The scores of a dataset as a table: for each metric a column of values, with None where the metric does not apply."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from exhibit.schemas.run import Outcome

Values = Sequence[float | None]
"""One value for each case; None where the metric does not apply, never 0."""


@dataclass(frozen=True)
class Table:
    """The scores of a dataset: for each metric, one value per case, in the order of `ids`."""

    name: str
    ids: Sequence[int | str]
    documents: Sequence[str]
    """The document of each case: cases of the same document are resampled together."""
    values: Mapping[str, Values]
    failed: Sequence[int] = ()
    """The number of failed replies of each case, from 0 to the number of repeats; empty when no reply failed."""
    labels: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    groups: str | None = None
    """The label whose groups are averaged first, from `bundle.json`."""
    repeats: Sequence[Mapping[str, Values]] = field(default=(), repr=False)
    """The values of each round, where the questions were asked several times; `values` are their means."""
    contents: Sequence[str] = field(default=(), repr=False)
    """A digest of each question with its expected answer, gold and documents; empty where they are unknown."""
    outcomes: Sequence[Outcome] = field(default=(), repr=False)
    """The outcome of each question; empty where they are unknown."""

    @classmethod
    def of_repeats(cls, tables: "Sequence[Table]") -> "Table":
        """Return one table for repeated questions: each value is the mean over the repetitions of the question."""
        first = tables[0]
        if len(tables) == 1:
            return first
        repeats = [table.values for table in tables]
        means = {
            name: [compute_mean(column) for column in zip(*(values[name] for values in repeats), strict=True)]
            for name in first.values
        }
        failed = [sum(times) for times in zip(*(table.failed for table in tables), strict=True)]
        return replace(first, values=means, failed=failed, repeats=repeats)

    @property
    def pair(self) -> str | None:
        """The label `pair`, which is the same for a variant of a bundle and for its control.

        None if the dataset is not part of such a pair.
        """
        return self.labels[0].get("pair") if self.labels else None

    @property
    def errors(self) -> int:
        """The number of questions with a failed reply."""
        return sum(map(bool, self.failed))

    def has_failed(self, row: int) -> bool:
        """Return whether any reply of a case is an error."""
        return bool(self.failed) and bool(self.failed[row])

    def only(self, rows: Sequence[int]) -> "Table":
        """Return a table with only these rows."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            documents=[self.documents[row] for row in rows],
            values=_select_rows(self.values, rows),
            failed=[self.failed[row] for row in rows] if self.failed else (),
            labels=[self.labels[row] for row in rows] if self.labels else (),
            repeats=[_select_rows(one, rows) for one in self.repeats],
            contents=[self.contents[row] for row in rows] if self.contents else (),
            outcomes=[self.outcomes[row] for row in rows] if self.outcomes else (),
        )


def _select_rows(values: Mapping[str, Values], rows: Sequence[int]) -> dict[str, Values]:
    return {name: [column[row] for row in rows] for name, column in values.items()}


def compute_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if all values are None or there are no values."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
