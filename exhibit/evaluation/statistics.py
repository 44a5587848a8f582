"""Means of metrics, each with its number of values, its number of errors and a 95% bootstrap interval.

Rows of one document are not independent: a long contract that is hard to read is hard for all its
questions. So the bootstrap resamples whole documents with all their rows, never single rows. A bundle may
name a label by which its rows are grouped. Then each group is resampled separately, and the dataset's mean
is the mean of the groups' means. Without such a label, the dataset's mean is the mean over its rows. A
run's mean is the mean of its datasets' means.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.evaluation.score_table import Table, Values, compute_mean
from exhibit.schemas.run import Estimate as Estimate

MIN_DOCUMENTS = 10
"""An interval needs at least this many documents: with fewer, a bootstrap is too narrow."""
RESAMPLES = 1000  # resamples of the bootstrap, as usual for a 95% interval
BLOCK = 100
"""The number of resamples drawn at once: enough for speed, few enough for the memory."""
SEED = 20240819
"""An arbitrary number, always the same, so that the same values always have the same interval."""

EQUAL = 1e-9  # a smaller change is rounding
Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """The difference between the means of two runs, over the cases that have a value in both."""

    first: float | None
    second: float | None
    n: int
    ci95: Interval | None = None
    p: float | None = None
    """The probability of so large a difference by chance; None where there is no interval."""
    lost: int = 0
    """The number of cases that have a value in the first run only."""

    @property
    def mean(self) -> float | None:
        """The mean of the second run minus the mean of the first run; None if one of them is unknown."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def chance(self) -> str:
        """The p of the paired difference in words: `p 0.03`, `p < 0.001`; empty where there is no interval."""
        if self.p is None:
            return ""
        return f"p {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval excludes 0; False where there is no interval."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


# ---------------------------------------------------------------- means


def summarise(table: Table) -> dict[str, Estimate]:
    """Return the mean of each metric over a dataset."""
    return summarise_run([table])


def summarise_run(tables: Sequence[Table], *, intervals: bool = True) -> dict[str, Estimate]:
    """Return the mean of each metric over a run: the mean of its datasets' means."""
    names = dict.fromkeys(name for table in tables for name in table.values)
    having = {name: [table for table in tables if name in table.values] for name in names}
    return {name: _estimate(own, name, intervals=intervals) for name, own in having.items()}


def summarise_by(table: Table, label: str) -> dict[str, dict[str, Estimate]]:
    """Return the mean of each metric for every value of a label; cases without the label are under the value ""."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, labels in enumerate(table.labels):
        value = labels.get(label)
        rows["" if value is None else str(value)].append(row)
    return {value: summarise(table.only(rows[value])) for value in sorted(rows)}


def compute_macro_mean(values: Values, keys: Sequence[str]) -> float | None:
    """Return the mean of the means of groups; `keys` has the group of each value, such as its document."""
    groups: dict[str, list[float | None]] = defaultdict(list)
    for value, key in zip(values, keys, strict=True):
        groups[key].append(value)
    return compute_mean(map(compute_mean, groups.values()))


def _estimate(tables: Sequence[Table], name: str, *, intervals: bool) -> Estimate:
    strata = _stratify([(table, table.values[name]) for table in tables])
    values = [value for table in tables for value in table.values[name] if value is not None]
    errors = sum(table.errors for table in tables)
    datasets = sum(any(value is not None for value in table.values[name]) for table in tables)
    repeats = min(len(table.repeats) for table in tables)
    means = [_average(_stratify([(t, t.repeats[number][name]) for t in tables])) for number in range(repeats)]
    known = [one for one in means if one is not None]
    spread = stdev(known) if len(known) > 1 else None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    ends = _find_ci(strata) if intervals else None
    return Estimate(_average(strata), len(values), errors, ends, max(1, datasets), max(1, repeats), spread, deviation)


# ---------------------------------------------------------------- two runs


def compare(first: Sequence[Table], second: Sequence[Table]) -> dict[str, Difference]:
    """Return, for each metric that both runs have, how the second run differs over their common questions.

    Questions are paired by dataset and content (words, expected answer, gold, documents), not by id. A variant
    of a bundle and its control are paired by their common original question.
    """
    pairs = list(_pair_tables(first, second))
    names = dict.fromkeys(name for one, other in pairs for name in one.values if name in other.values)
    return {name: _subtract([pair for pair in pairs if all(name in t.values for t in pair)], name) for name in names}


@dataclass(frozen=True)
class Overlap:
    """The numbers of questions that two runs have in common, that failed in each, and that only one run has."""

    asked: int
    failed_before: int
    failed_after: int
    answered: int
    """Questions that failed in neither run; only they are compared."""
    only_before: int = 0
    only_after: int = 0
    changed: int = 0
    """Ids in both runs whose questions differ in words, expected answer, gold or documents."""
    not_comparable: tuple[str, ...] = ()
    """Datasets with the same name in both runs, but without a common question."""


def count_overlap(first: Sequence[Table], second: Sequence[Table]) -> Overlap:
    """Return how many questions two runs have in common, how many failed in each, and how many only one run has."""
    pairs = [(one, other, *_share_rows(one, other)) for one, other in _pair_by_name(first, second)]
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


def match_questions(first: Table, second: Table) -> Iterator[tuple[int, int]]:
    """Yield the row numbers of each common question in both tables, in the order of the first table."""
    return zip(*_share_rows(first, second), strict=True)


def _pair_by_name(first: Sequence[Table], second: Sequence[Table]) -> list[tuple[Table, Table]]:
    others = {table.name: table for table in second}
    twins = {table.pair: table for table in second if table.pair}
    found = ((table, others.get(table.name) or twins.get(table.pair or "")) for table in first)
    return [(table, other) for table, other in found if other is not None]


def _pair_tables(first: Sequence[Table], second: Sequence[Table]) -> Iterator[tuple[Table, Table]]:
    for one, other in _pair_by_name(first, second):
        rows, places = _share_rows(one, other)
        yield one.only(rows), other.only(places)


def _share_rows(first: Table, second: Table) -> tuple[list[int], list[int]]:
    """Return the row numbers of the common questions in both tables, matched by content, id, or common original."""
    if first.name != second.name:  # a variant and its control are matched by their original question
        twins = defaultdict[Any, list[int]](list)
        for at, labels in enumerate(second.labels):
            twins[labels.get("control")].append(at)
        pairs = [(row, at) for row, labels in enumerate(first.labels) for at in twins[labels.get("control")]]
        return [row for row, _ in pairs], [at for _, at in pairs]
    by_content = bool(first.contents) and bool(second.contents)
    place = {key: row for row, key in enumerate(_list_keys(second, by_content))}
    rows = [(row, place[key]) for row, key in enumerate(_list_keys(first, by_content)) if key in place]
    return [row for row, _ in rows], [at for _, at in rows]


def _list_keys(table: Table, by_content: bool) -> Iterator[Any]:
    """Yield the key by which each question is matched: its id, or its content and how often it occurred before."""
    if not by_content:
        yield from table.ids
        return
    seen: Counter[str] = Counter()
    for content in table.contents:
        seen[content] += 1
        yield content, seen[content]


def _subtract(pairs: Sequence[tuple[Table, Table]], name: str) -> Difference:
    def make_strata(pick: Callable[[float, float], float]) -> list[_Stratum]:
        columns = ((table, zip(table.values[name], other.values[name], strict=True)) for table, other in pairs)
        return _stratify(
            [(t, [None if a is None or b is None else pick(a, b) for a, b in rows]) for t, rows in columns]
        )

    before, after, change = make_strata(lambda a, _: a), make_strata(lambda _, b: b), make_strata(lambda a, b: b - a)
    count = sum(len(stratum.values) for stratum in change)
    lost = sum(
        a is not None and b is None for t, o in pairs for a, b in zip(t.values[name], o.values[name], strict=True)
    )
    drawn = _draw_means(change)
    if drawn is None:
        return Difference(_average(before), _average(after), count, lost=lost)
    mean, spread = _average(change) or 0.0, float(np.std(drawn))
    p = math.erfc(abs(mean) / spread / math.sqrt(2)) if spread else float(not mean)
    return Difference(_average(before), _average(after), count, _find_ends(drawn), p, lost)


def change_of(first: Table, second: Table, name: str) -> float:
    """Return the mean change of a metric over the common questions; 0 if no question has a value in both tables."""
    [(one, other)] = _pair_tables([first], [replace(second, name=first.name)])
    pairs = zip(one.values.get(name, ()), other.values.get(name, ()), strict=False)
    return _average(_stratify([(one, [None if a is None or b is None else b - a for a, b in pairs])])) or 0.0


# ---------------------------------------------------------------- the bootstrap


@dataclass(frozen=True)
class _Stratum:
    """A group of values that are averaged together, with the document of each value and the weight of the group."""

    values: tuple[float, ...]
    documents: tuple[str, ...]
    weight: float

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)


def _stratify(columns: Sequence[tuple[Table, Values]]) -> list[_Stratum]:
    """Return the values of a metric as weighted groups: datasets count equally, and so do the groups of a dataset."""
    datasets = [groups for table, values in columns if (groups := _group_values(table, values))]
    return [
        _Stratum(tuple(row[0] for row in rows), tuple(row[1] for row in rows), 1 / len(datasets) / len(groups))
        for groups in datasets
        for rows in groups
    ]


def _group_values(table: Table, values: Values) -> list[list[tuple[float, str]]]:
    groups: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row, value in enumerate(values):
        if value is not None:
            key = str(table.labels[row].get(table.groups)) if table.groups else ""
            groups[key].append((value, table.documents[row]))
    return [groups[key] for key in sorted(groups)]


def _average(strata: Sequence[_Stratum]) -> float | None:
    return math.fsum(stratum.weight * stratum.mean for stratum in strata) if strata else None


def _find_ci(strata: Sequence[_Stratum]) -> Interval | None:
    """Return the 95% bootstrap interval of the mean; the same values always give the same interval."""
    drawn = _draw_means(strata)
    return None if drawn is None else _find_ends(drawn)


def _find_ends(drawn: Floats) -> Interval:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _draw_means(strata: Sequence[_Stratum]) -> Floats | None:
    """Return the means of the bootstrap's resamples; None with too few documents."""
    documents = {(number, name) for number, stratum in enumerate(strata) for name in stratum.documents}
    if len(documents) < MIN_DOCUMENTS or any(len(set(stratum.documents)) < 2 for stratum in strata):
        return None
    drawn: Floats = np.sum([stratum.weight * _draw(stratum, number) for number, stratum in enumerate(strata)], axis=0)
    return drawn


def _draw(stratum: _Stratum, number: int) -> Floats:
    """Return the mean of each resample, which draws documents with all their rows; `number` is part of the seed."""
    # sorted by name, so that the order of the rows does not matter
    _, owner = np.unique(stratum.documents, return_inverse=True)
    sums, counts = np.bincount(owner, stratum.values).astype(float), np.bincount(owner).astype(float)
    chance = np.random.default_rng((SEED, number))
    means = []
    for _ in range(0, RESAMPLES, BLOCK):
        drawn = chance.integers(len(sums), size=(BLOCK, len(sums)))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return np.concatenate(means)
