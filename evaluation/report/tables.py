"""Tables of means with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from exhibit.evaluation.metrics import GROUPS, About, about, shortened
from exhibit.evaluation.report.run import DatasetRun, Record, RecordedRun

_LABELLED = ("Retrieval", "Answers")
"""Groups of metrics that a breakdown by label shows."""
_MOST_VALUES = 45  # rows: CUAD has 41 kinds of clauses


class Cell(NamedTuple):
    """A mean as it is printed; the rest is empty where nothing is known."""

    mean: str
    interval: str = ""
    n: int = 0
    errors: int = 0
    share: float | None = None
    """The mean from 0 to 1, for a bar behind the number."""
    datasets: int = 0
    """Of how many datasets' means it is the mean; 0 where it is one over questions."""
    spread: str = ""
    """How much the mean moved between repeats of the run, where there were any."""


class MetricRow(NamedTuple):
    """A metric in all columns."""

    metric: str
    about: About
    cells: list[Cell]


class Breakdown(NamedTuple):
    """The means of a dataset for each value of one of its labels."""

    dataset: str
    label: str
    metrics: list[tuple[str, About]]
    lines: list[tuple[str, list[Cell]]]
    left_out: int


def main_table(run: RecordedRun) -> list[tuple[str, list[MetricRow]]]:
    """Return the metrics that tell most, by group, those that nothing has been measured for left out."""
    lines = _lines(run, shortened(run.summary, all_families=True))
    groups = ((group, [line for line in lines if line.about.group == group]) for group in GROUPS)
    return [(group, rows) for group, rows in groups if rows]


def whole_table(run: RecordedRun) -> list[MetricRow]:
    """Return every metric of the run."""
    return _lines(run, run.summary)


def breakdowns(run: RecordedRun) -> list[Breakdown]:
    """Return a table for each label whose values tell questions apart."""
    tables = [
        _breakdown(dataset, label, values) for dataset in run.datasets for label, values in dataset.breakdown.items()
    ]
    return [table for table in tables if table is not None]


def _breakdown(dataset: DatasetRun, label: str, values: Mapping[str, Record]) -> Breakdown | None:
    names = dict.fromkeys(name for means in values.values() for name in means)
    metrics = [
        name
        for name in shortened(names)
        if about(name).group in _LABELLED and any((v.get(name) or {}).get("mean") is not None for v in values.values())
    ]
    # a label with a value of its own for every other question is a name, not a kind
    if not metrics or not 1 < len(values) <= max(2, sum(map(_rows, values.values())) / 2):
        return None
    ordered = sorted(values.items(), key=lambda item: (-_rows(item[1]), item[0]))
    lines = [(value, [_cell(m, means.get(m)) for m in metrics]) for value, means in ordered[:_MOST_VALUES]]
    return Breakdown(dataset.name, label, [(m, about(m)) for m in metrics], lines, len(ordered) - len(lines))


def _rows(means: Mapping[str, Any]) -> int:
    return max((entry["n"] for entry in means.values()), default=0)


def _lines(run: RecordedRun, metrics: Iterable[str]) -> list[MetricRow]:
    summaries: Sequence[Record] = [run.summary, *(dataset.summary for dataset in run.datasets)]
    if len(run.datasets) == 1:
        summaries = [run.datasets[0].summary or run.summary]
    return [
        MetricRow(metric, about(metric), [_cell(metric, summary.get(metric)) for summary in summaries])
        for metric in metrics
        if any((summary.get(metric) or {}).get("mean") is not None for summary in summaries)
    ]


def _cell(metric: str, entry: Record | None) -> Cell:
    if not entry or entry["mean"] is None:
        return Cell("–", n=entry["n"] if entry else 0, errors=entry["errors"] if entry else 0)
    told = about(metric)
    low, high = entry.get("ci95") or (None, None)
    interval = "" if low is None or high is None else f"{told.in_words(low)}–{told.in_words(high)}"
    share = min(1.0, max(0.0, entry["mean"])) if told.unit == "share" else None
    datasets = entry.get("datasets", 0)
    spread = (
        f"±{told.in_words(entry['spread'])} over {entry['repeats']} runs" if entry.get("spread") is not None else ""
    )
    return Cell(told.in_words(entry["mean"]), interval, entry["n"], entry.get("errors", 0), share, datasets, spread)
