"""Evaluations in a notebook: figures with their intervals, failures, the report, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from exhibit.bundles import Bundle, format_html_link, format_html_paragraphs, format_html_table, import_extra
from exhibit.evaluation import compare as regression
from exhibit.evaluation.evaluate import evaluate as evaluate_run
from exhibit.evaluation.metrics import registered
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.text_tables import (
    ALL,
    choose_metrics,
    describe_not_compared,
    diff_lines,
    diff_rows,
    make_mean_notes,
    make_mean_rows,
    table_of,
)
from exhibit.runtime.command import print_note
from exhibit.schemas.run import REPORT, Means, RunQuestion
from exhibit.viewer.compare import Comparison as TwoRuns
from exhibit.viewer.compare import compare_two
from exhibit.viewer.report import write_report

if TYPE_CHECKING:
    from pandas import DataFrame


class Run(RunResults):
    """A finished run: its figures and questions as pandas tables, and its report."""

    def __init__(self, folder: Path | str, *, asked: Sequence[str] = ()) -> None:
        """Open the results folder of a run.

        `asked` are the metrics to show; by default a short selection is shown.
        """
        super().__init__(folder)
        self.asked = tuple(asked)

    @property
    def report(self) -> Path:
        return self.folder / REPORT

    @cached_property
    def questions(self) -> DataFrame:
        """One row per question: the question, the expected answer, the reply, the outcome and every score."""
        return _make_frame((_flatten_row(row) for row in self.rows), index=["dataset", "id"])

    @cached_property
    def summary(self) -> DataFrame:
        """One row per metric and dataset, with mean and interval; `ALL` is the mean over several datasets."""
        rows = [
            {"metric": metric, "dataset": name, **one.as_json()}
            for name, means in self._make_columns().items()
            for metric, one in means.items()
        ]
        for row in rows:
            row["low"], row["high"] = row.pop("ci95")
        return _make_frame(rows, index=["metric", "dataset"])

    def __repr__(self) -> str:
        return "\n".join(
            [table_of(self._make_columns(), self._choose_metrics()), *self._format_failed(), f"report: {self.report}"]
        )

    def _repr_html_(self) -> str:
        columns = self._make_columns()
        notes = format_html_paragraphs([*make_mean_notes(columns), *self._format_failed()])
        return (
            format_html_table(make_mean_rows(columns, self._choose_metrics()))
            + notes
            + format_html_link(self.report, "the report")
        )

    def _make_columns(self) -> dict[str, Means]:
        means = {name: self.means_of(name) for name in self.datasets}
        return means | ({ALL: self.means} if len(means) > 1 else {})

    def _choose_metrics(self) -> list[str]:
        return choose_metrics(self.means, self.asked)

    def _format_failed(self) -> list[str]:
        errors = [row.reply.error for row in self.rows if row.reply.error]
        return [f"{len(errors)} of {len(self.rows)} questions failed. The first: {errors[0]}"] if errors else []


def _flatten_row(row: RunQuestion) -> dict[str, Any]:
    fields: dict[str, Any] = {"dataset": row.dataset, "id": row.id, "question": row.question, "truth": row.truth}
    fields |= {"file": row.filename or ""}
    fields |= {"answer": row.reply.answer, "error": row.reply.error, "outcome": row.outcome, "reason": row.reason}
    return fields | {"seconds": row.reply.seconds, "confidence": row.reply.confidence, **row.scores}


def _make_frame(rows: Iterable[dict[str, Any]], *, index: list[str]) -> DataFrame:
    frame: DataFrame = import_extra("pandas").DataFrame(rows)
    return frame.set_index(index) if len(frame) else frame


class Comparison(TwoRuns):
    """The differences of a second run from a first, paired by question."""

    def __repr__(self) -> str:
        lines = diff_lines(self.differences, choose_metrics(self.differences), self.overlap)
        return "\n".join([self.better, "", *lines])

    def _repr_html_(self) -> str:
        rows = diff_rows(self.differences, choose_metrics(self.differences), self.overlap)
        worse = regression.describe_regressions(self.differences, self.regressions)
        return (
            format_html_paragraphs([self.better])
            + format_html_table(rows)
            + format_html_paragraphs([*describe_not_compared(self.overlap), *worse])
        )


def compare(first: Run | Path | str, second: Run | Path | str) -> Comparison:
    """Compare two runs, each given as a run or as its folder, on the questions that are the same in both."""
    runs = [run if isinstance(run, Run) else Run(run) for run in (first, second)]
    return Comparison(**vars(compare_two(runs[0], runs[1])))


Place = Bundle | Path | str


def evaluate(
    bundles: Place | Iterable[Place],
    *,
    target: str | Path | Callable[..., Any] = "builtin",
    target_url: str | None = None,
    preset: str | None = None,
    embedder: str | None = None,
    llm: str | None = None,
    top_k: int | None = None,
    file_type: str | Sequence[str] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    limit: int | None = None,
    sample_seed: int | None = None,
    ingest: Literal["auto", "never", "fresh"] | None = None,
    metrics: str | Sequence[str | Callable[..., float | None]] | None = None,
    judge: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    max_failures: float | None = None,
    output_dir: Path | str | None = None,
    run_name: str | None = None,
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Test a RAG system on bundles, and write a report.

    `target` is the name of a system, a .toml file, or a function. The function may be plain or async; it gets
    a question, and returns an answer, or an answer and passages. `settings` has settings by name for which
    this function has no parameter; `exhibit evaluate --settings` lists all settings. `metrics` are names, or
    functions that score a case.
    """
    named = {name: value for name, value in locals().items() if name not in ("bundles", "target", "settings")}
    given = {name: value for name, value in named.items() if value is not None}
    many = [bundles] if isinstance(bundles, Bundle | Path | str) else list(bundles)
    places = [str(one.root if isinstance(one, Bundle) else one) for one in many]
    function = target if callable(target) else None
    given |= {"dataset_paths": places, "target": "function" if function else str(target), **(settings or {})}
    with registered([] if metrics is None or isinstance(metrics, str) else metrics) as names:
        parsed = parse_settings(given | ({"metrics": names} if names else {}), where="evaluate()")
        parts = {"function": function} if function else None
        done = evaluate_run(parsed, parts=parts, warn=print_note, draw=write_report)
    return Run(done.folder, asked=parsed.metrics)
