"""Read a finished run. Means are computed from its rows; stored intervals are used if the stored means agree.

run = RunResults("results/first")
run.means["char_recall@8"].mean
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.statistics import Table, summarise_by, summarise_run
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import COUNTS_FAILED, REPORT, RESULTS, SUMMARY, Means, RunQuestion, RunReply
from exhibit.schemas.run_folder import RunFolder, find_difference

ALL = "ALL"  # the name of the means over all datasets of a run


class RunResults(RunFolder):
    """A finished run with its tables and means."""

    judge_faults: Mapping[str, int] = {}
    """The number of times the judge failed or gave no readable mark, by message; empty if the run is read from disk."""

    def __init__(self, folder: Path | str, tables: Sequence[Table] = ()) -> None:
        """Open a run's folder; if `tables`, the run's scores, are given, no row is read."""
        super().__init__(folder)
        self._known = tables

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The scores by dataset; reading them raises an error if they do not match a summary.json of the run."""
        tables = {table.name: table for table in self._known or read_tables(self)}
        for table in tables.values() if not self.config.measured.parity else ():  # other projects' shares may exceed 1
            for name, column in table.values.items():
                outside = next((value for value in column if value is not None and not 0 <= value <= 1), None)
                if outside is not None and describe_metric(name).unit == "share":
                    fault = f"{name} is {outside:g} for a question, but must be from 0 to 1"
                    raise BundleError(f"{self.folder / table.name / RESULTS}: {fault}; evaluate again")
        self._means = {"": self._compute_means("", list(tables.values()))}
        self._means |= {name: self._compute_means(name, [table]) for name, table in tables.items()}
        return tables

    @property
    def means(self) -> Means:
        """The means over the run; each dataset has the same weight."""
        return self.means_of("")

    def means_of(self, dataset: str) -> Means:
        self.tables  # noqa: B018  (computes the means)
        return self._means[dataset]

    def _compute_means(self, name: str, tables: Sequence[Table]) -> Means:
        """Return the means of the rows with the stored intervals; raise an error if the stored means differ."""
        stored = self.read_file(SUMMARY, name)
        if not stored:
            return summarise_run(tables)
        means = summarise_run(tables, intervals=False)
        if wrong := find_difference(stored, means):
            fault = f"does not match the rows of the run: {wrong}; the file was changed after the run"
            raise BundleError(f"{self.folder / name / SUMMARY}: {fault}: evaluate again, or restore the file")
        return {
            metric: replace(estimate, ci95=known.ci95, pooled=known.pooled, macro=known.macro)
            for metric, estimate in means.items()
            if (known := stored[metric])
        }

    @property
    def columns(self) -> dict[str, Means]:
        """The means by dataset and, if there are several datasets, over the run."""
        means = {name: self.means_of(name) for name in self.datasets}
        return means | ({ALL: self.means} if len(means) > 1 else {})

    @property
    def report(self) -> Path:
        """The path of the report; the file exists only if a report was written."""
        return self.folder / REPORT

    @property
    def system_settings(self) -> dict[str, str]:
        """The settings that describe the tested system, without those that describe the version of the data."""
        other = ("format", "version", "datasets.")
        return {name: value for name, value in self.settings.items() if not name.startswith(other)}

    @property
    def commit(self) -> str:
        """The commit of the code, followed by `+` if files differed from it; empty if the commit is unknown."""
        commit = self.provenance.commit or ""
        return f"{commit}+" if commit and self.provenance.changed_files else commit

    def data_version(self, dataset: str) -> str:
        """Return the sha256 of a dataset's bundle.json or, without one, of its train.json."""
        known = self.provenance.data.get(dataset, {})
        return known.get("bundle.json") or self.config.datasets[dataset].train_sha256 or known.get("train.json") or ""

    @property
    def system(self) -> str:
        """The name of the system that was tested, such as `builtin routed` or `http localhost/ask`."""
        target = (self.config.target or "builtin").partition(":")[0]
        address = urlsplit(self.settings.get("target_url", ""))
        detail = self.settings.get("preset", "") if target == "builtin" else f"{address.hostname or ''}{address.path}"
        return f"{target} {detail}".rstrip()

    @property
    def question_count(self) -> int:
        return sum(len(table.ids) for table in self.tables.values())

    @property
    def failed_count(self) -> int:
        """The number of questions with at least one failed reply."""
        return sum(table.errors for table in self.tables.values())

    @property
    def first_error(self) -> str:
        """The error message of the first failed question; empty if no question failed."""
        rows = iter(self.rows if self.failed_count else ())
        errors = (error for row in rows for error in (row.reply.error, *(reply.error for reply in row.repeats)))
        return next(filter(None, errors), "")


def make_summary_json(means: Means) -> dict[str, Any]:
    return {name: estimate.as_json() for name, estimate in means.items()}


def kinds_of(labels: Sequence[Mapping[str, Any]], *, most: int = 60) -> list[str]:
    """Return the names of the labels by which questions can be grouped."""
    names = dict.fromkeys(name for row in labels for name in row)
    seen = {name: {str(row[name]) for row in labels if row.get(name) is not None} for name in names}
    return [name for name, values in seen.items() if 1 < len(values) <= min(most, max(2, len(labels) // 2))]


def compute_breakdown(table: Table) -> dict[str, dict[str, Means]]:
    grouped = [table.groups] if table.groups and any(table.groups in labels for labels in table.labels) else []
    names = dict.fromkeys([*kinds_of(table.labels), *grouped])
    return {name: summarise_by(table, name) for name in names}


def read_tables(folder: RunFolder) -> list[Table]:
    rows: dict[str, list[RunQuestion]] = {name: [] for name in folder.rows.names}
    contents: dict[str, list[str]] = {name: [] for name in rows}
    for row in folder.rows:
        contents[row.dataset].append(folder.content_of(row))
        failed = bool(row.reply.error)
        # a failed question has no other score, even if a score of −1 was requested
        scores = {name: None if failed and name not in COUNTS_FAILED else value for name, value in row.scores.items()}
        # the texts of all rows may not fit into memory
        left_out = {"gold": [], "gold_stages": [], "reply": RunReply(error=row.reply.error), "scores": scores}
        rows[row.dataset].append(row.model_copy(update=left_out))
    return [_make_table(name, rows[name], contents[name], folder.config.datasets[name].groups) for name in rows]


def _make_table(name: str, rows: Sequence[RunQuestion], contents: Sequence[str], groups: str | None) -> Table:
    rounds = min((len(row.repeats) for row in rows), default=0)
    return Table(
        name,
        [row.id for row in rows],
        [row.document for row in rows],
        _make_columns([row.scores for row in rows]),
        [row.failed for row in rows],
        [dict(row.labels) for row in rows],
        groups,
        contents,
        [row.outcome for row in rows],
        [_make_columns([row.repeats[number].scores for row in rows]) for number in range(rounds)],
    )


def _make_columns(rows: Sequence[Mapping[str, float | None]]) -> dict[str, list[float | None]]:
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
