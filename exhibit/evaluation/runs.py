"""Read a finished run. Its stored means are used if they agree with its rows.

run = RunResults("results/first")
run.means["char_recall@8"].mean
"""

from collections.abc import Mapping, Sequence
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

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The scores by dataset; reading them raises an error if they do not match a summary.json of the run."""
        tables = {table.name: table for table in read_tables(self)}
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
        """Return the stored means, or those of the rows if none are stored; raise an error if the two differ."""
        stored: Means = self.read_file(SUMMARY, name)
        if stored and (wrong := find_difference(stored, summarise_run(tables, intervals=False))):
            fault = f"does not match the rows of the run: {wrong}; the file was changed after the run"
            raise BundleError(f"{self.folder / name / SUMMARY}: {fault}: evaluate again, or restore the file")
        return stored or summarise_run(tables)

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
        return {n: v for n, v in self.settings.items() if not n.startswith(("format", "version", "datasets."))}

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
    return [_read_table(folder, name) for name in folder.rows.names]


def _read_table(folder: RunFolder, name: str) -> Table:
    rows: list[RunQuestion] = []
    contents: list[str] = []
    for row in folder.rows_of(name):
        contents.append(folder.content_of(row))
        failed = bool(row.reply.error)
        # a failed question has no other score, even if a score of −1 was requested
        scores = {name: None if failed and name not in COUNTS_FAILED else value for name, value in row.scores.items()}
        # the texts of all rows may not fit into memory
        left_out = {"gold": [], "gold_stages": [], "reply": RunReply(error=row.reply.error), "scores": scores}
        rows.append(row.model_copy(update=left_out))
    rounds = min((len(row.repeats) for row in rows), default=0)
    return Table(
        name, [row.id for row in rows], [row.document for row in rows], _make_columns([row.scores for row in rows]),
        [row.failed for row in rows], [dict(row.labels) for row in rows], folder.config.datasets[name].groups,
        contents, [row.outcome for row in rows],
        [_make_columns([row.repeats[number].scores for row in rows]) for number in range(rounds)],
    )  # fmt: skip


def _make_columns(rows: Sequence[Mapping[str, float | None]]) -> dict[str, list[float | None]]:
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
