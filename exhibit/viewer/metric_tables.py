"""The tables of metrics in a report or a comparison.

A cell has a mean, its interval and, if bounds are set for the metric, its band: good, acceptable or poor.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from exhibit.evaluation.bands import Scale
from exhibit.evaluation.judgement import EXPECTED
from exhibit.evaluation.metrics import GROUPS, About, Group, describe_metric, shorten_metrics
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.statistics import Difference
from exhibit.evaluation.text_tables import ceiling_of
from exhibit.schemas.run import Estimate, Means

_LABELLED = ("Retrieval", "Answers")
"""The groups of metrics that a breakdown by label shows."""
_MOST_VALUES = 45  # rows: CUAD has 41 kinds of clauses


class Cell(NamedTuple):
    """A mean as a table cell shows it: the value, its details, and its difference from the first run.

    Fields that are unknown are empty.
    """

    mean: str
    details: str = ""
    """The interval, the standard deviation, and the number of questions."""
    errors: int = 0
    share: float | None = None
    """The mean from 0 to 1, for a bar behind the number."""
    band: str = ""
    change: str = ""
    """The difference from the first run, with its interval."""
    kind: str = ""
    """`better` or `worse` where the difference is significant."""


class MetricRow(NamedTuple):
    """A table row: a metric, with a cell for each dataset or run."""

    metric: str
    about: About
    cells: list[Cell]

    @property
    def depth(self) -> str:
        """The cutoff of the metric; empty where it has none."""
        return self.metric.partition("@")[2]


class Breakdown(NamedTuple):
    """The means of a dataset for each value of one of its labels."""

    dataset: str
    label: str
    metrics: list[MetricRow]
    lines: list[tuple[str, list[Cell]]]
    left_out: int


def group_rows(rows: Sequence[MetricRow]) -> list[tuple[Group, list[MetricRow]]]:
    """Return each group of metrics with its rows, in the order of `GROUPS`; groups without rows are left out."""
    groups = ((group, [row for row in rows if row.about.group == group]) for group in GROUPS)
    return [(group, mine) for group, mine in groups if mine]


def run_columns(run: RunResults) -> dict[str, Means]:
    """Return a run's means by table column: first over all datasets, if there are several, then for each dataset."""
    each = {name: run.means_of(name) for name in run.datasets}
    if len(each) == 1:
        return each
    return {"": run.means, **each}


def make_metric_rows(columns: Mapping[str, Means], metrics: Iterable[str] | None, scale: Scale) -> list[MetricRow]:
    """Return a table row for each of `metrics` that was measured; if None, for a short selection of metrics."""
    names = dict.fromkeys(name for means in columns.values() for name in means)
    chosen = shorten_metrics(names, all_families=True) if metrics is None else metrics
    rows = []
    for metric in chosen:
        if any(means.get(metric) and means[metric].mean is not None for means in columns.values()):
            cells = [
                with_ceiling(metric, make_cell(metric, means.get(metric), scale, name), means)
                for name, means in columns.items()
            ]
            rows.append(MetricRow(metric, describe_metric(metric), cells))
    return rows


def make_breakdowns(run: RunResults, scale: Scale) -> list[Breakdown]:
    """Return a table of means for each label that divides the questions into groups."""
    tables = [
        _make_breakdown(name, label, values, scale)
        for name in run.datasets
        for label, values in run.means_by_label(name).items()
    ]
    return [table for table in tables if table is not None]


def _make_breakdown(dataset: str, label: str, values: Mapping[str, Means], scale: Scale) -> Breakdown | None:
    names = dict.fromkeys(name for means in values.values() for name in means)
    chosen = [name for name in shorten_metrics(names) if describe_metric(name).group in _LABELLED]
    if label == EXPECTED:  # the rows of one kind are comparable
        chosen = [
            name for name in names if describe_metric(name).group == "Answers" and describe_metric(name).unit == "share"
        ]
    metrics = make_metric_rows(values, chosen, scale)
    # a label with a different value for every second question is a name, not a kind
    if not metrics or not 1 < len(values) <= max(2, sum(map(_count_rows, values.values())) / 2):
        return None
    ordered = sorted(values.items(), key=lambda item: (-_count_rows(item[1]), item[0]))
    shown = ordered[:_MOST_VALUES]
    lines = [
        (value, [make_cell(row.metric, means.get(row.metric), scale, dataset) for row in metrics])
        for value, means in shown
    ]
    return Breakdown(dataset, label, metrics, lines, len(ordered) - len(lines))


def _count_rows(means: Means) -> int:
    return max((one.n for one in means.values()), default=0)


def make_cell(metric: str, one: Estimate | None, scale: Scale, dataset: str = "") -> Cell:
    """Return a metric's mean as a table cell, with its confidence interval and number of questions.

    The cell also has the value's band on the scale, if the scale has bands for this dataset. An unknown
    mean is shown as `–`.
    """
    if one is None or one.mean is None:
        return Cell("–", errors=one.errors if one else 0)
    described = describe_metric(metric)
    details = [f"{described.in_words(one.ci95[0])}–{described.in_words(one.ci95[1])}"] if one.ci95 else []
    details += [f"SD {described.in_words(one.std)}"] if one.std is not None and one.datasets == 1 else []
    details += [f"±{described.in_words(one.spread)} over {one.repeats} runs"] if one.spread is not None else []
    details += [f"mean of {one.datasets} benchmarks" if one.datasets > 1 else f"n {one.n:,}"]
    share = min(1.0, max(0.0, one.mean)) if described.unit == "share" else None
    bands = scale.of(dataset, metric)
    band = bands.band(one.mean).lower() if bands and dataset else ""
    return Cell(described.in_words(one.mean), " · ".join(details), one.errors, share, band)


def with_ceiling(metric: str, own: Cell, means: Means) -> Cell:
    """Return a cell with the highest reachable value of its metric added to the details, as `at most 80`.

    The cell is returned unchanged if the run did not measure this upper limit.
    """
    ceiling = means.get(ceiling_of(metric, means) or "")
    if ceiling is None or ceiling.mean is None or not own.details:
        return own
    return own._replace(details=f"{own.details} · at most {describe_metric(metric).in_words(ceiling.mean)}")


def compare_cell(metric: str, own: Cell, difference: Difference | None) -> Cell:
    """Return a cell with its change from the first run, and whether the change is significant."""
    if difference is None or difference.mean is None:
        return own
    described, change = describe_metric(metric), difference.mean
    ends = f" ({' to '.join(map(described.change_in_words, difference.ci95))})" if difference.ci95 else ""
    words, kind = "within chance", ""
    if not change:
        return own._replace(change="no change")
    if difference.beyond_chance:
        good = described.improves(change)
        words, kind = ("changed", "") if good is None else ("better", "better") if good else ("worse", "worse")
    return own._replace(change=f"{described.change_in_words(change)}{ends}, {words}", kind=kind)
