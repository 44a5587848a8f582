"""Evaluations in a notebook: figures with their intervals, failures, the report, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exhibit.bundles import Bundle, import_extra
from exhibit.evaluation.evaluate import evaluate as evaluate_run
from exhibit.evaluation.metrics import registered
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.text_tables import choose_metrics, table_of
from exhibit.runtime.command import print_note
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.compare import Comparison, compare_two
from exhibit.viewer.report import write_report

if TYPE_CHECKING:
    from pandas import DataFrame

Place = Bundle | Path | str


class Run(RunResults):
    """A finished run: its figures and questions as pandas tables, and its report."""

    def __init__(self, folder: Path | str, *, asked: Sequence[str] = ()) -> None:
        """Open the results folder of a run; `asked` are the metrics to show, by default a short selection."""
        super().__init__(folder)
        self.asked = tuple(asked)

    @cached_property
    def questions(self) -> DataFrame:
        """One row per question: the question, the expected answer, the reply, the outcome and every score."""
        return _make_frame((_flatten_row(row) for row in self.rows), index=["dataset", "id"])

    @cached_property
    def summary(self) -> DataFrame:
        """One row per metric and dataset, with mean and interval; `ALL` is the mean over several datasets."""
        rows = [
            {"metric": metric, "dataset": name, **estimate.as_json()}
            for name, means in self.columns.items()
            for metric, estimate in means.items()
        ]
        for row in rows:
            row["low"], row["high"] = row.pop("ci95")
        return _make_frame(rows, index=["metric", "dataset"])

    def __repr__(self) -> str:
        errors = [row.reply.error for row in self.rows if row.reply.error]
        failed = f"{len(errors)} of {len(self.rows)} questions failed. The first: {errors[0]}" if errors else ""
        table = table_of(self.columns, choose_metrics(self.means, self.asked))
        return "\n".join(filter(None, [table, failed, f"report: {self.report}"]))


def _flatten_row(row: RunQuestion) -> dict[str, Any]:
    fields: dict[str, Any] = {"dataset": row.dataset, "id": row.id, "question": row.question, "truth": row.truth}
    fields |= {"file": row.filename or "", "answer": row.reply.answer, "error": row.reply.error, "outcome": row.outcome}
    fields |= {"reason": row.reason, "seconds": row.reply.seconds, "confidence": row.reply.confidence}
    return fields | row.scores


def _make_frame(rows: Iterable[dict[str, Any]], *, index: list[str]) -> DataFrame:
    frame: DataFrame = import_extra("pandas").DataFrame(rows)
    return frame.set_index(index) if len(frame) else frame


def compare(first: Run | Path | str, second: Run | Path | str) -> Comparison:
    """Compare two runs, each given as a run or as its folder, on the questions that are the same in both."""
    runs = [run if isinstance(run, Run) else Run(run) for run in (first, second)]
    return compare_two(runs[0], runs[1])


def evaluate(
    bundles: Place | Iterable[Place],
    *,
    target: str | Path | Callable[..., Any] = "builtin",
    metrics: str | Sequence[str | Callable[..., float | None]] | None = None,
    **settings: Any,
) -> Run:
    """Test a RAG system on bundles, and write a report.

    `target` is the name of a system, a .toml file, or a function. The function may be plain or async; it gets
    a question, and returns an answer, or an answer and passages. `metrics` are names, or functions that score a case.
    `settings` are further settings by name, such as `preset="naive"`, `limit=10` or `run_name="first"`. The command
    `exhibit evaluate --settings` lists all settings.
    """
    many = [bundles] if isinstance(bundles, Bundle | Path | str) else list(bundles)
    places = [str(bundle.root if isinstance(bundle, Bundle) else bundle) for bundle in many]
    function = target if callable(target) else None
    given = {name: value for name, value in settings.items() if value is not None}
    given |= {"dataset_paths": places, "target": "function" if function else str(target)}
    with registered([] if metrics is None or isinstance(metrics, str) else metrics) as names:
        given |= {} if metrics is None else {"metrics": names or metrics}
        parts = {"function": function} if function else None
        parsed = parse_settings(given, where="evaluate()")
        done = evaluate_run(parsed, parts=parts, warn=print_note, draw=write_report)
    return Run(done.folder, asked=parsed.metrics)
