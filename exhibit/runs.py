"""Evaluations in a notebook: figures with their intervals, what failed, the report, and two runs compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhibit import _html
from exhibit.evaluation.command import with_fetched
from exhibit.evaluation.evaluate import Run
from exhibit.evaluation.evaluate import evaluate as evaluate_run
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.replies import Failures
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.statistics import Difference, Estimate, Overlap, overlap
from exhibit.evaluation.statistics import compare as compare_tables
from exhibit.evaluation.terminal import (
    ALL,
    diff_lines,
    diff_rows,
    is_regression,
    mean_notes,
    mean_rows,
    not_compared,
    shown_metrics,
    table_of,
)
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import ToolkitError


@dataclass(frozen=True)
class Evaluation:
    """A run that ended."""

    run: Run
    asked: tuple[str, ...] = ()
    """The metrics that were asked for; none means the ones that tell most are shown."""

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.run.folder

    @property
    def report(self) -> Path:
        """The report, a page for a browser."""
        return self.run.report

    @property
    def summary(self) -> dict[str, Estimate]:
        """Every metric's mean over the run, with its interval."""
        return self.run.summary

    @property
    def failures(self) -> Failures:
        """How many questions failed."""
        return self.run.failures

    def __repr__(self) -> str:
        return "\n".join([table_of(self._columns(), self._metrics()), *self._failed(), f"report: {self.report}"])

    def _repr_html_(self) -> str:
        columns = self._columns()
        told = _html.paragraphs([*mean_notes(columns), *self._failed()])
        return _html.table(mean_rows(columns, self._metrics())) + told + _html.link(self.report, "the report")

    def _columns(self) -> dict[str, dict[str, Estimate]]:
        means = self.run.by_dataset()
        return means | ({ALL: self.summary} if len(means) > 1 else {})

    def _metrics(self) -> list[str]:
        return shown_metrics(self.summary, self.asked)

    def _failed(self) -> list[str]:
        failures = self.failures
        if not failures.failed:
            return []
        return [f"{failures.failed} of {failures.asked} questions failed. The first: {failures.first}"]


@dataclass(frozen=True)
class Comparison:
    """How a second run differs from a first, paired by question."""

    differences: dict[str, Difference]
    overlap: Overlap

    @property
    def regressions(self) -> list[str]:
        """The metrics that are worse beyond chance."""
        return [name for name, difference in self.differences.items() if is_regression(name, difference)]

    def __repr__(self) -> str:
        return "\n".join(diff_lines(self.differences, shown_metrics(self.differences), self.overlap))

    def _repr_html_(self) -> str:
        rows = diff_rows(self.differences, shown_metrics(self.differences), self.overlap)
        worse = [f"worse beyond chance: {', '.join(self.regressions)}"] if self.regressions else []
        return _html.table(rows) + _html.paragraphs([*not_compared(self.overlap), *worse])


def evaluate_settings(given: Mapping[str, Any], *, parts: Mapping[str, Any] | None = None) -> Evaluation:
    """Run an evaluation with settings by their names, and `parts` instead of those that they name."""
    parsed = parse_settings(given, where="evaluate()")
    return Evaluation(evaluate_run(with_fetched(parsed), parts=parts, warn=print_note), parsed.metrics)


def compare(first: Evaluation | Path | str, second: Evaluation | Path | str) -> Comparison:
    """Compare two runs, each an evaluation or its folder."""
    folders = [run.folder if isinstance(run, Evaluation) else Path(run) for run in (first, second)]
    before, after = (read_tables(folder) for folder in folders)
    differences = compare_tables(before, after)
    if not differences:
        raise ToolkitError(f"{folders[0]} and {folders[1]} have no dataset and metric in common")
    return Comparison(differences, overlap(before, after))
