"""Tables of means with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evaluation.report.run import DatasetRun, Record, Run
from evaluation.report.wording import Name, name_of, shown

_GROUPS = {
    "Retrieval": ("char_recall@8", "char_precision@8", "document_hit@1", "drm@8", "recall@10", "ndcg@10", "span_f1"),
    "Answers": (
        "answer_f1",
        "answer_exact_match",
        "abstention_accuracy",
        "false_refusal_rate",
        "groundedness",
        "relevance",
    ),
    "Citations": (
        "any_citation",
        "citations_matched",
        "citation_format_compliance",
        "references_exist",
        "statute_citation_accuracy",
        "case_law_citation_accuracy",
        "precedent_matching",
        "legal_terminology_accuracy",
    ),
    "Cost": ("latency", "answer_length"),
}
_BY_LABEL = ("char_recall@8", "char_precision@8", "document_hit@1", "answer_f1", "abstention_accuracy")
_MOST_VALUES = 45


class Cell(NamedTuple):
    """A mean as it is printed; the rest is empty where nothing is known."""

    mean: str
    interval: str = ""
    n: int = 0
    errors: int = 0
    share: float | None = None
    """The mean from 0 to 1, for a bar behind the number."""


class Line(NamedTuple):
    """A metric in all columns."""

    metric: str
    name: Name
    cells: list[Cell]


class Breakdown(NamedTuple):
    """The means of a dataset for each value of one of its labels."""

    dataset: str
    label: str
    metrics: list[tuple[str, Name]]
    lines: list[tuple[str, list[Cell]]]
    left_out: int


def main_table(run: Run) -> list[tuple[str, list[Line]]]:
    """Return the metrics that tell most, by group, those that nothing has been measured for left out."""
    groups = ((title, _lines(run, metrics)) for title, metrics in _GROUPS.items())
    return [(title, lines) for title, lines in groups if lines]


def whole_table(run: Run) -> list[Line]:
    """Return every metric of the run."""
    return _lines(run, run.summary)


def breakdowns(run: Run) -> list[Breakdown]:
    """Return a table for each label whose values tell questions apart."""
    tables = [
        _breakdown(dataset, label, values) for dataset in run.datasets for label, values in dataset.breakdown.items()
    ]
    return [table for table in tables if table is not None]


def _breakdown(dataset: DatasetRun, label: str, values: Mapping[str, Record]) -> Breakdown | None:
    metrics = [m for m in _BY_LABEL if any((v.get(m) or {}).get("mean") is not None for v in values.values())]
    # a label with a value of its own for every other question is a name, not a kind
    if not metrics or not 1 < len(values) <= max(2, sum(map(_rows, values.values())) / 2):
        return None
    ordered = sorted(values.items(), key=lambda item: (-_rows(item[1]), item[0]))
    lines = [(value, [_cell(m, means.get(m)) for m in metrics]) for value, means in ordered[:_MOST_VALUES]]
    return Breakdown(dataset.name, label, [(m, name_of(m)) for m in metrics], lines, len(ordered) - len(lines))


def _rows(means: Mapping[str, Any]) -> int:
    return max((entry["n"] for entry in means.values()), default=0)


def _lines(run: Run, metrics: Iterable[str]) -> list[Line]:
    summaries: Sequence[Record] = [run.summary, *(dataset.summary for dataset in run.datasets)]
    if len(run.datasets) == 1:
        summaries = [run.datasets[0].summary or run.summary]
    return [
        Line(metric, name_of(metric), [_cell(metric, summary.get(metric)) for summary in summaries])
        for metric in metrics
        if any((summary.get(metric) or {}).get("mean") is not None for summary in summaries)
    ]


def _cell(metric: str, entry: Record | None) -> Cell:
    if not entry or entry["mean"] is None:
        return Cell("–", n=entry["n"] if entry else 0, errors=entry["errors"] if entry else 0)
    low, high = entry.get("ci95") or (None, None)
    interval = "" if low is None or high is None else f"{shown(metric, low)}–{shown(metric, high)}"
    share = min(1.0, max(0.0, entry["mean"])) if name_of(metric).unit == "%" else None
    return Cell(shown(metric, entry["mean"]), interval, entry["n"], entry.get("errors", 0), share)
