"""Tables of means with their intervals: of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from exhibit.evaluation.metrics import GROUPS, About, about, shortened
from exhibit.evaluation.statistics import Difference
from exhibit.evaluation.terminal import Scale
from exhibit.schemas.run import Estimate, Means
from exhibit.schemas.run_folder import RunFolder

_LABELLED = ("Retrieval", "Answers")
"""Groups of metrics that a breakdown by label shows."""
_MOST_VALUES = 45  # rows: CUAD has 41 kinds of clauses


class Cell(NamedTuple):
    """A mean as it is printed; the rest is empty where nothing is known."""

    mean: str
    details: str = ""
    """Its interval, its standard deviation, what it is taken over."""
    errors: int = 0
    share: float | None = None
    """The mean from 0 to 1, for a bar behind the number."""
    band: str = ""
    change: str = ""
    """By how much it differs from the first run, with the interval of that."""
    kind: str = ""
    """`better` or `worse` where that is more than chance."""


class MetricRow(NamedTuple):
    """A metric in all columns."""

    metric: str
    about: About
    cells: list[Cell]

    @property
    def depth(self) -> str:
        """How many passages it reads, empty where that means nothing."""
        return self.metric.partition("@")[2]


class Breakdown(NamedTuple):
    """The means of a dataset for each value of one of its labels."""

    dataset: str
    label: str
    metrics: list[MetricRow]
    lines: list[tuple[str, list[Cell]]]
    left_out: int


def by_group(rows: Sequence[MetricRow]) -> list[tuple[str, list[MetricRow]]]:
    """Return the rows by group of metrics, in the order of the groups."""
    groups = ((group, [row for row in rows if row.about.group == group]) for group in GROUPS)
    return [(group, mine) for group, mine in groups if mine]


def run_columns(run: RunFolder) -> dict[str, Means]:
    """Return a run's means by column: all datasets where there are several, then each."""
    each = {name: run.means_of(name) for name in run.datasets}
    if len(each) == 1:
        return {name: means or run.means for name, means in each.items()}
    return {"": run.means, **each}


def metric_rows(columns: Mapping[str, Means], metrics: Iterable[str] | None, scale: Scale) -> list[MetricRow]:
    """Return a row for each metric that something has been measured for; without `metrics` those that tell most."""
    names = dict.fromkeys(name for means in columns.values() for name in means)
    chosen = shortened(names, all_families=True) if metrics is None else metrics
    rows = []
    for metric in chosen:
        if any(means.get(metric) and means[metric].mean is not None for means in columns.values()):
            cells = [cell(metric, means.get(metric), scale, name) for name, means in columns.items()]
            rows.append(MetricRow(metric, about(metric), cells))
    return rows


def breakdowns(run: RunFolder, scale: Scale) -> list[Breakdown]:
    """Return a table for each label whose values tell questions apart."""
    tables = [
        _breakdown(name, label, values, scale) for name in run.datasets for label, values in run.breakdown(name).items()
    ]
    return [table for table in tables if table is not None]


def _breakdown(dataset: str, label: str, values: Mapping[str, Means], scale: Scale) -> Breakdown | None:
    names = dict.fromkeys(name for means in values.values() for name in means)
    chosen = [name for name in shortened(names) if about(name).group in _LABELLED]
    metrics = metric_rows(values, chosen, scale)
    # a label with a value of its own for every other question is a name, not a kind
    if not metrics or not 1 < len(values) <= max(2, sum(map(_rows, values.values())) / 2):
        return None
    ordered = sorted(values.items(), key=lambda item: (-_rows(item[1]), item[0]))
    shown = ordered[:_MOST_VALUES]
    lines = [
        (value, [cell(row.metric, means.get(row.metric), scale, dataset) for row in metrics]) for value, means in shown
    ]
    return Breakdown(dataset, label, metrics, lines, len(ordered) - len(lines))


def _rows(means: Means) -> int:
    return max((one.n for one in means.values()), default=0)


def cell(metric: str, one: Estimate | None, scale: Scale, dataset: str = "") -> Cell:
    """Return a mean as it is printed."""
    if one is None or one.mean is None:
        return Cell("–", errors=one.errors if one else 0)
    told = about(metric)
    details = [f"{told.in_words(one.ci95[0])}–{told.in_words(one.ci95[1])}"] if one.ci95 else []
    details += [f"SD {told.in_words(one.std)}"] if one.std is not None and one.datasets == 1 else []
    details += [f"±{told.in_words(one.spread)} over {one.repeats} runs"] if one.spread is not None else []
    details += [f"mean of {one.datasets} benchmarks" if one.datasets > 1 else f"n {one.n:,}"]
    share = min(1.0, max(0.0, one.mean)) if told.unit == "share" else None
    bands = scale.of(dataset, metric)
    band = bands.band(one.mean).lower() if bands and dataset else ""
    return Cell(told.in_words(one.mean), " · ".join(details), one.errors, share, band)


def compared(metric: str, own: Cell, difference: Difference | None) -> Cell:
    """Return a cell with its change from the first run, and whether that is more than chance."""
    if difference is None or difference.mean is None:
        return own
    told, change = about(metric), difference.mean
    ends = f" ({' to '.join(signed(told, end) for end in difference.ci95)})" if difference.ci95 else ""
    words, kind = "within chance", ""
    if not change:
        return own._replace(change="no change")
    if difference.beyond_chance:
        good = told.improves(change)
        words, kind = ("changed", "") if good is None else ("better", "better") if good else ("worse", "worse")
    return own._replace(change=f"{signed(told, change)}{ends}, {words}", kind=kind)


def signed(told: About, value: float) -> str:
    """Return a change with its sign, as the page shows it."""
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{told.in_words(abs(value))}"
