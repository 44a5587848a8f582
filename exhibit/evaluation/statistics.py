"""Means that say how sure they are: n, errors, and a 95% interval from a bootstrap over documents.

Rows of one document are not independent: a long contract that is hard to read is hard for all its questions. So
documents are drawn, with all their rows, and never rows. A dataset's mean is the mean over its rows, or, where it has
groups, of the groups' means; a run's mean is that of its datasets' means. Documents are drawn within each group.
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import stdev
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from exhibit.schemas.run import Estimate as Estimate

RESAMPLES = 1000  # of the bootstrap, as usual for an interval of 95%
BLOCK = 100
"""Resamples drawn at once: enough to be quick, few enough to be small."""
_FEW, _REMEMBERED = 256, 1024
"""Values up to which an interval is remembered, and how many are: small groups and neighbouring depths share many."""
SEED = 20240819
"""Any number: the same for all, so that the same values always have the same interval."""

EQUAL = 1e-9  # a change below this is rounding
Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]
Values = Sequence[float | None]
"""One value a case; None where the metric does not apply, never 0."""


@dataclass(frozen=True)
class Difference:
    """By how much the second run's mean is higher, over the cases that both have a value for."""

    first: float | None
    second: float | None
    n: int
    ci95: Interval | None = None

    @property
    def mean(self) -> float | None:
        """The second mean less the first."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval leaves out 0; never where there is none."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


@dataclass(frozen=True)
class Table:
    """A dataset's values: under each metric's name one a case, in the order of `ids`."""

    name: str
    ids: Sequence[int | str]
    documents: Sequence[str]
    """What each case is about: cases of the same document are drawn together."""
    values: Mapping[str, Values]
    failed: Sequence[int] = ()
    """How often each case got an error for a reply: 0 or 1, up to the number of repeats; empty when none did."""
    labels: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    groups: str | None = None
    """The label by which the mean is taken first, as `bundle.json` says."""
    repeats: Sequence[Mapping[str, Values]] = field(default=(), repr=False)
    """The values of each time that the questions were asked, where it was more than once; `values` are their means."""
    contents: Sequence[str] = field(default=(), repr=False)
    """A digest of each question: its words, expected answer, gold and documents; empty where they are not known."""

    @classmethod
    def of_repeats(cls, tables: "Sequence[Table]") -> "Table":
        """Return one table of the same questions asked several times: the mean over the replies to each."""
        first = tables[0]
        if len(tables) == 1:
            return first
        repeats = [table.values for table in tables]
        means = {
            name: Column(mean(column) for column in zip(*(values[name] for values in repeats), strict=True))
            for name in first.values
        }
        failed = [sum(times) for times in zip(*(table.failed for table in tables), strict=True)]
        return replace(first, values=means, failed=failed, repeats=repeats)

    @property
    def pair(self) -> str | None:
        """What a variant of a bundle and its control have in common; None for any other dataset."""
        return self.labels[0].get("pair") if self.labels else None

    @property
    def errors(self) -> int:
        """How many replies are errors."""
        return sum(self.failed)

    def has_failed(self, row: int) -> bool:
        """Return whether a case got an error for a reply, at least once."""
        return bool(self.failed) and bool(self.failed[row])

    def only(self, rows: Sequence[int]) -> "Table":
        """Return the table of some rows."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            documents=[self.documents[row] for row in rows],
            values=_rows_of(self.values, rows),
            failed=[self.failed[row] for row in rows] if self.failed else (),
            labels=[self.labels[row] for row in rows] if self.labels else (),
            repeats=[_rows_of(one, rows) for one in self.repeats],
            contents=[self.contents[row] for row in rows] if self.contents else (),
        )


def _rows_of(values: Mapping[str, Values], rows: Sequence[int]) -> "dict[str, Column]":
    return {name: Column(column[row] for row in rows) for name, column in values.items()}


# ---------------------------------------------------------------- means


def summarise(table: Table) -> dict[str, Estimate]:
    """Return each metric's mean over a dataset."""
    return summarise_run([table])


def summarise_run(tables: Sequence[Table]) -> dict[str, Estimate]:
    """Return each metric's mean over a run: the mean of its datasets' means."""
    names = dict.fromkeys(name for table in tables for name in table.values)
    return {name: _estimate([table for table in tables if name in table.values], name) for name in names}


def summarise_by(table: Table, label: str) -> dict[str, dict[str, Estimate]]:
    """Return each metric's mean for every value of a label; cases without it are under the empty name."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, labels in enumerate(table.labels):
        value = labels.get(label)
        rows["" if value is None else str(value)].append(row)
    return {value: summarise(table.only(rows[value])) for value in sorted(rows)}


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values there are, None where there is none."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def macro(values: Values, keys: Sequence[str]) -> float | None:
    """Return the mean of the means of each key: every document, or dataset, counts alike whatever its rows."""
    groups: dict[str, list[float | None]] = defaultdict(list)
    for value, key in zip(values, keys, strict=True):
        groups[key].append(value)
    return mean(map(mean, groups.values()))


def _estimate(tables: Sequence[Table], name: str) -> Estimate:
    strata = _strata([(table, table.values[name]) for table in tables])
    values = [value for table in tables for value in table.values[name] if value is not None]
    errors = sum(table.errors for table in tables)
    datasets = sum(any(value is not None for value in table.values[name]) for table in tables)
    repeats = min(len(table.repeats) for table in tables)
    means = [_mean(_strata([(t, t.repeats[number][name]) for t in tables])) for number in range(repeats)]
    known = [one for one in means if one is not None]
    spread = stdev(known) if len(known) > 1 else None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Estimate(
        _mean(strata), len(values), errors, _interval(strata), max(1, datasets), max(1, repeats), spread, deviation
    )


# ---------------------------------------------------------------- two runs


def compare(first: Sequence[Table], second: Sequence[Table]) -> dict[str, Difference]:
    """Return how the second run differs from the first over the same questions, for the metrics that both have.

    Questions are paired by dataset and content (words, expected answer, gold, documents), not by id. A variant of a
    bundle and its control are paired by the question that both come from.
    """
    pairs = list(_pairs(first, second))
    names = dict.fromkeys(name for one, other in pairs for name in one.values if name in other.values)
    return {name: _difference([pair for pair in pairs if all(name in t.values for t in pair)], name) for name in names}


@dataclass(frozen=True)
class Overlap:
    """How many questions two runs share, and what became of those in each."""

    asked: int
    failed_before: int
    failed_after: int
    answered: int
    """Those that neither run failed at: what is compared."""
    only_before: int = 0
    only_after: int = 0
    changed: int = 0
    """Ids that both runs have, of questions with other words, another expected answer, other gold or documents."""
    not_comparable: tuple[str, ...] = ()
    """Datasets that both runs have by name, without one question in common."""


def overlap(first: Sequence[Table], second: Sequence[Table]) -> Overlap:
    """Return which questions two runs can be compared over."""
    pairs = [(one, other, *_shared_rows(one, other)) for one, other in _namesakes(first, second)]
    failed = [
        (one.has_failed(a), other.has_failed(b))
        for one, other, rows, at in pairs
        for a, b in zip(rows, at, strict=True)
    ]
    asked = len(failed)
    same = [({one.ids[row] for row in rows}, set(one.ids) & set(other.ids)) for one, other, rows, _ in pairs]
    return Overlap(
        asked=asked,
        failed_before=sum(before for before, _ in failed),
        failed_after=sum(after for _, after in failed),
        answered=sum(not before and not after for before, after in failed),
        only_before=sum(len(table.ids) for table in first) - asked,
        only_after=sum(len(table.ids) for table in second) - asked,
        changed=sum(len(ids - paired) for paired, ids in same),
        not_comparable=tuple(one.name for one, other, rows, _ in pairs if not rows and one.ids and other.ids),
    )


def same_questions(first: Table, second: Table) -> Iterator[tuple[int, int]]:
    """Yield the rows of both tables that have the same question, in the order of the first."""
    return zip(*_shared_rows(first, second), strict=True)


def _namesakes(first: Sequence[Table], second: Sequence[Table]) -> list[tuple[Table, Table]]:
    others = {table.name: table for table in second}
    twins = {table.pair: table for table in second if table.pair}
    found = ((table, others.get(table.name) or twins.get(table.pair or "")) for table in first)
    return [(table, other) for table, other in found if other is not None]


def _pairs(first: Sequence[Table], second: Sequence[Table]) -> Iterator[tuple[Table, Table]]:
    for one, other in _namesakes(first, second):
        rows, places = _shared_rows(one, other)
        yield one.only(rows), other.only(places)


def _shared_rows(first: Table, second: Table) -> tuple[list[int], list[int]]:
    """Return the rows of the first table that the second has too, and where: by content, or by id without it."""
    if first.name != second.name:  # a variant and its control: by the question of the parent
        twins = defaultdict[Any, list[int]](list)
        for at, labels in enumerate(second.labels):
            twins[labels.get("control")].append(at)
        pairs = [(row, at) for row, labels in enumerate(first.labels) for at in twins[labels.get("control")]]
        return [row for row, _ in pairs], [at for _, at in pairs]
    by_content = bool(first.contents) and bool(second.contents)
    place = {key: row for row, key in enumerate(_keys(second, by_content))}
    rows = [(row, place[key]) for row, key in enumerate(_keys(first, by_content)) if key in place]
    return [row for row, _ in rows], [at for _, at in rows]


def _keys(table: Table, by_content: bool) -> Iterator[Any]:
    """Yield what tells a question from the others; the second of two alike pairs with the second of the other run."""
    if not by_content:
        yield from table.ids
        return
    seen: Counter[str] = Counter()
    for content in table.contents:
        seen[content] += 1
        yield content, seen[content]


def _difference(pairs: Sequence[tuple[Table, Table]], name: str) -> Difference:
    def strata(pick: Callable[[float, float], float]) -> list[_Stratum]:
        columns = ((table, zip(table.values[name], other.values[name], strict=True)) for table, other in pairs)
        return _strata([(t, [None if a is None or b is None else pick(a, b) for a, b in rows]) for t, rows in columns])

    before, after, change = strata(lambda a, _: a), strata(lambda _, b: b), strata(lambda a, b: b - a)
    return Difference(_mean(before), _mean(after), sum(len(stratum.values) for stratum in change), _interval(change))


def change_of(first: Table, second: Table, name: str) -> float:
    """Return the change of a mean over the questions of both runs; 0 where no question has both values."""
    [(one, other)] = _pairs([first], [replace(second, name=first.name)])
    pairs = zip(one.values.get(name, ()), other.values.get(name, ()), strict=False)
    return _mean(_strata([(one, [None if a is None or b is None else b - a for a, b in pairs])])) or 0.0


# ---------------------------------------------------------------- the bootstrap


@dataclass(frozen=True)
class _Stratum:
    """Values that are averaged together, the document of each, and what their mean counts for."""

    values: tuple[float, ...]
    documents: tuple[str, ...]
    weight: float

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)


def _strata(columns: Sequence[tuple[Table, Values]]) -> list[_Stratum]:
    """Return the groups of each dataset that have values; each dataset counts alike, and so does each of its groups."""
    datasets = [groups for table, values in columns if (groups := _grouped(table, values))]
    return [
        _Stratum(tuple(row[0] for row in rows), tuple(row[1] for row in rows), 1 / len(datasets) / len(groups))
        for groups in datasets
        for rows in groups
    ]


def _grouped(table: Table, values: Values) -> list[list[tuple[float, str]]]:
    groups: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row, value in enumerate(values):
        if value is not None:
            key = str(table.labels[row].get(table.groups)) if table.groups else ""
            groups[key].append((value, table.documents[row]))
    return [groups[key] for key in sorted(groups)]


def _mean(strata: Sequence[_Stratum]) -> float | None:
    return math.fsum(stratum.weight * stratum.mean for stratum in strata) if strata else None


def _interval(strata: Sequence[_Stratum]) -> Interval | None:
    """Return the middle 95% of the means that drawing documents anew gives, the same each time it is asked."""
    few = sum(len(stratum.values) for stratum in strata) <= _FEW
    return _few_interval(tuple(strata)) if few else _drawn_interval(strata)


@lru_cache(_REMEMBERED)
def _few_interval(strata: tuple[_Stratum, ...]) -> Interval | None:
    return _drawn_interval(strata)


def _drawn_interval(strata: Sequence[_Stratum]) -> Interval | None:
    if not strata or any(len(set(stratum.documents)) < 2 for stratum in strata):
        return None
    drawn = [stratum.weight * _draw(stratum, number) for number, stratum in enumerate(strata)]
    low, high = np.percentile(np.sum(drawn, axis=0), [2.5, 97.5])
    return float(low), float(high)


def _draw(stratum: _Stratum, number: int) -> Floats:
    """Return the mean of each resample: as many documents as there are, drawn with replacement, with all their rows."""
    # in the order of their names, so that the order of the rows does not matter
    _, owner = np.unique(stratum.documents, return_inverse=True)
    sums, counts = np.bincount(owner, stratum.values).astype(float), np.bincount(owner).astype(float)
    chance = np.random.default_rng((SEED, number))
    means = []
    for _ in range(0, RESAMPLES, BLOCK):
        drawn = chance.integers(len(sums), size=(BLOCK, len(sums)))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return np.concatenate(means)


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
