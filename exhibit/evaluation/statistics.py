"""Means of metrics, each with its number of values, its number of errors and a 95% bootstrap interval.

Rows of one document are not independent: a long contract that is hard to read is hard for all its questions. So the
bootstrap resamples whole documents with all their rows. A bundle may name a label by which its rows are grouped: then
each group is resampled separately, and the dataset's mean is the mean of the groups' means. A run's mean is the mean
of its datasets' means.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.schemas.run import Estimate, Interval, Outcome

MIN_DOCUMENTS = 10  # an interval needs at least this many documents; with fewer, the bootstrap's interval is too narrow
RESAMPLES = 1000  # the usual number for a 95% interval
BLOCK = 100  # resamples drawn at once: enough for speed, few enough for the memory
SEED = 20240819  # an arbitrary number, always the same, so that the same values always have the same interval

Floats = npt.NDArray[np.float64]
Values = Sequence[float | None]  # one value for each case; None, never 0, if the metric does not apply


@dataclass(frozen=True)
class Table:
    """The scores of a dataset: for each metric, a value per case, in the order of `ids`."""

    name: str
    ids: Sequence[int | str]
    documents: Sequence[str]  # the document of each case; cases of the same document are resampled together
    values: Mapping[str, Values]
    failed: Sequence[bool] = ()  # whether a reply to each case failed; empty if none did
    labels: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    groups: str | None = None  # the label whose groups are averaged first, from `bundle.json`
    contents: Sequence[str] = field(default=(), repr=False)  # digests of questions, answers, gold and documents
    outcomes: Sequence[Outcome] = field(default=(), repr=False)
    rounds: Sequence[Mapping[str, Values]] = field(default=(), repr=False)  # with `--repeat`; `values` are the means

    @classmethod
    def of_rounds(cls, tables: "Sequence[Table]") -> "Table":
        """Return the scores of questions that were asked in several rounds; each value is the mean over the rounds."""
        if len(tables) == 1:
            return tables[0]
        columns = {name: zip(*(table.values[name] for table in tables), strict=True) for name in tables[0].values}
        means = {name: [compute_mean(values) for values in column] for name, column in columns.items()}
        failed = [any(replies) for replies in zip(*(table.failed for table in tables), strict=True)]
        return replace(tables[0], values=means, failed=failed, rounds=[table.values for table in tables])

    @property
    def pair(self) -> str | None:
        """The label that links a variant of a bundle with its control; None for any other dataset."""
        return self.labels[0].get("pair") if self.labels else None

    @property
    def errors(self) -> int:
        return sum(self.failed)

    def only(self, rows: Sequence[int]) -> "Table":
        def pick(column: Sequence[Any]) -> list[Any]:
            return [column[row] for row in rows] if column else []

        values, *rounds = ({name: pick(held) for name, held in each.items()} for each in (self.values, *self.rounds))
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


def summarise_run(tables: Sequence[Table], *, intervals: bool = True) -> dict[str, Estimate]:
    """Return the mean of each metric over a run: the mean of its datasets' means."""
    names = dict.fromkeys(name for table in tables for name in table.values)
    return {name: _estimate([t for t in tables if name in t.values], name, intervals=intervals) for name in names}


def summarise_by(table: Table, label: str) -> dict[str, dict[str, Estimate]]:
    """Return the mean of each metric for every value of a label; cases without the label have the value ""."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, labels in enumerate(table.labels):
        value = labels.get(label)
        rows["" if value is None else str(value)].append(row)
    return {value: summarise_run([table.only(rows[value])]) for value in sorted(rows)}


def compute_macro_mean(values: Values, keys: Sequence[str]) -> float | None:
    """Return the mean of the means of groups; `keys` has the group of each value."""
    groups: dict[str, list[float | None]] = defaultdict(list)
    for value, key in zip(values, keys, strict=True):
        groups[key].append(value)
    return compute_mean(map(compute_mean, groups.values()))


def _estimate(tables: Sequence[Table], name: str, *, intervals: bool) -> Estimate:
    strata = _stratify([(table, table.values[name]) for table in tables])
    values = [value for table in tables for value in table.values[name] if value is not None]
    datasets = sum(any(value is not None for value in table.values[name]) for table in tables)
    repeats = min(len(table.rounds) for table in tables)
    rounds = [_average(_stratify([(t, t.rounds[number][name]) for t in tables])) for number in range(repeats)]
    known = [mean for mean in rounds if mean is not None]
    return Estimate(
        _average(strata),
        len(values),
        errors=sum(table.errors for table in tables),
        ci95=_find_interval(_bootstrap(strata)) if intervals else None,
        datasets=max(1, datasets),
        repeats=max(1, repeats),
        spread=stdev(known) if len(known) > 1 else None,
        std=float(np.std(values, ddof=1)) if len(values) > 1 else None,
    )


@dataclass(frozen=True)
class Difference:
    """The paired difference between two runs' means, over the cases that have a value in both."""

    first: float | None
    second: float | None
    n: int
    ci95: Interval | None = None
    p: float | None = None  # the probability of so large a difference by chance; None without an interval
    lost: int = 0  # the number of cases that have a value in the first run only

    @property
    def mean(self) -> float | None:
        """The mean of the second run minus the mean of the first run; None if one of them is unknown."""
        return None if self.first is None or self.second is None else self.second - self.first

    @property
    def chance(self) -> str:
        """The p value of the paired difference as text, such as `p 0.03` or `p < 0.001`; empty if it is unknown."""
        return "" if self.p is None else f"p {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval excludes 0; False without an interval."""
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


def compare(first: Sequence[Table], second: Sequence[Table]) -> dict[str, Difference]:
    pairs = [_keep_common(before, after) for before, after in _pair_by_name(first, second)]
    names = dict.fromkeys(name for before, after in pairs for name in before.values if name in after.values)
    return {name: _subtract([pair for pair in pairs if all(name in t.values for t in pair)], name) for name in names}


def change_of(first: Table, second: Table, name: str) -> float:
    """Return the mean change of a metric over the common questions; 0 if no question has a value in both tables."""
    before, after = _keep_common(first, second)
    pairs = zip(before.values.get(name, ()), after.values.get(name, ()), strict=False)
    return _average(_stratify([(before, [None if a is None or b is None else b - a for a, b in pairs])])) or 0.0


def _subtract(pairs: Sequence[tuple[Table, Table]], name: str) -> Difference:
    columns: list[list[tuple[Table, Values]]] = [[], [], []]
    lost = 0
    for first, second in pairs:
        rows = list(zip(first.values[name], second.values[name], strict=True))
        lost += sum(a is not None and b is None for a, b in rows)
        known = [(a, b, b - a) if a is not None and b is not None else (None, None, None) for a, b in rows]
        for position, column in enumerate(columns):
            column.append((first, [values[position] for values in known]))
    before, after, change = map(_stratify, columns)
    count = sum(len(stratum.values) for stratum in change)
    drawn = _bootstrap(change)
    p = None
    if drawn is not None:
        mean, spread = _average(change) or 0.0, float(np.std(drawn))
        p = math.erfc(abs(mean) / spread / math.sqrt(2)) if spread else float(not mean)
    return Difference(_average(before), _average(after), count, _find_interval(drawn), p, lost)


@dataclass(frozen=True)
class Overlap:
    asked: int  # questions of both runs
    failed_before: int
    failed_after: int
    answered: int  # questions that failed in neither run; only these are compared
    only_before: int = 0
    only_after: int = 0


def count_overlap(first: Sequence[Table], second: Sequence[Table]) -> Overlap:
    pairs = [(old, new, rows) for old, new in _pair_by_name(first, second) for rows in _match_rows(old, new)]
    failed = [(any(old.failed[a : a + 1]), any(new.failed[b : b + 1])) for old, new, (a, b) in pairs]
    return Overlap(
        asked=len(failed),
        failed_before=sum(before for before, _ in failed),
        failed_after=sum(after for _, after in failed),
        answered=failed.count((False, False)),
        only_before=sum(len(table.ids) for table in first) - len(failed),
        only_after=sum(len(table.ids) for table in second) - len(failed),
    )


def _pair_by_name(first: Sequence[Table], second: Sequence[Table]) -> list[tuple[Table, Table]]:
    """Pair the datasets of two runs by their name; a variant of a bundle is paired with its control."""
    others = {table.name: table for table in second}
    twins = {table.pair: table for table in second if table.pair}
    pairs = ((table, others.get(table.name) or twins.get(table.pair or "")) for table in first)
    return [(table, other) for table, other in pairs if other is not None]


def _keep_common(first: Table, second: Table) -> tuple[Table, Table]:
    rows = _match_rows(first, second)
    return first.only([row for row, _ in rows]), second.only([row for _, row in rows])


def _match_rows(first: Table, second: Table) -> list[tuple[int, int]]:
    """Return the row numbers of the common questions in both tables: equal contents or, without these, equal ids."""
    by_content = bool(first.contents) and bool(second.contents)
    if first.name != second.name and first.pair:  # a variant and its control: match their common originals
        keys = [[labels.get("control") for labels in table.labels] for table in (first, second)]
    else:
        keys = [list(number_repeats(t.contents)) if by_content else list(t.ids) for t in (first, second)]
    rows = defaultdict[Any, list[int]](list)
    for row, key in enumerate(keys[1]):
        rows[key].append(row)
    return [(row, other) for row, key in enumerate(keys[0]) for other in rows.get(key, ())]


def number_repeats(contents: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    """Yield the content of each question with the number of its occurrence: a question may be asked twice."""
    seen: Counter[Any] = Counter()
    for content in contents:
        seen[content] += 1
        yield content, seen[content]


class _Stratum(NamedTuple):
    values: list[float]  # the values of a dataset or of one of its groups
    documents: list[str]  # the document of each value
    weight: float


def _stratify(columns: Sequence[tuple[Table, Values]]) -> list[_Stratum]:
    """Return the values of a metric as weighted groups: equal weights for datasets, and for the groups of a dataset."""
    datasets: list[dict[str, list[tuple[float, str]]]] = []
    for table, values in columns:
        groups: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for row, value in enumerate(values):
            if value is not None:
                key = str(table.labels[row].get(table.groups)) if table.groups else ""
                groups[key].append((value, table.documents[row]))
        datasets += [groups] if groups else []
    return [
        _Stratum([value for value, _ in rows], [name for _, name in rows], 1 / len(datasets) / len(groups))
        for groups in datasets
        for _, rows in sorted(groups.items())
    ]


def _average(strata: Sequence[_Stratum]) -> float | None:
    return math.fsum(s.weight * (math.fsum(s.values) / len(s.values)) for s in strata) if strata else None


def _find_interval(means: Floats | None) -> Interval | None:
    if means is None:
        return None
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _bootstrap(strata: Sequence[_Stratum]) -> Floats | None:
    """Return the mean of each bootstrap resample; None if there are too few documents."""
    documents = {(number, name) for number, stratum in enumerate(strata) for name in stratum.documents}
    if len(documents) < MIN_DOCUMENTS or any(len(set(stratum.documents)) < 2 for stratum in strata):
        return None
    means = np.zeros(RESAMPLES)
    for number, stratum in enumerate(strata):
        # sorted by name, so that the order of the rows does not matter
        _, owner = np.unique(stratum.documents, return_inverse=True)
        sums, counts = np.bincount(owner, stratum.values).astype(float), np.bincount(owner).astype(float)
        chance = np.random.default_rng((SEED, number))
        for start in range(0, RESAMPLES, BLOCK):
            drawn = chance.integers(len(sums), size=(BLOCK, len(sums)))
            means[start : start + BLOCK] += stratum.weight * (sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return means


def summarise_confidences(sure: Values, answerable: Sequence[bool], values: Mapping[str, Values]) -> dict[str, Any]:
    """Return the means of metrics, weighted by the confidences of the replies; empty if no reply has a confidence."""
    exists = [known for weight, known in zip(sure, answerable, strict=True) if weight is not None]
    if not exists:
        return {}
    weighted = {}
    for name, column in values.items():
        known = [(a, b) for a, b in zip(column, sure, strict=True) if a is not None and b is not None]
        if total := math.fsum(weight for _, weight in known):
            weighted[name] = math.fsum(value * weight for value, weight in known) / total
    return {"questions": len(exists), "answerable": sum(exists), "weighted": weighted}
