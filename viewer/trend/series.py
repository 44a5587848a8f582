"""The runs of a results folder, oldest first, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from exhibit.engine import track
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.statistics import Table, summarise
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import CONFIG, SUMMARY, Estimate, Means
from exhibit.schemas.run_folder import RunFolder

_APART = ("format", "version", "datasets.")
"""Settings that say nothing of what was asked of the system, or that are told as the data's version."""


class TrendRun(RunFolder):
    """A run with its values in memory, to be compared with others."""

    @property
    def asked(self) -> dict[str, str]:
        """What was asked of the system, as names and values."""
        return {name: value for name, value in self.settings.items() if not name.startswith(_APART)}

    @property
    def commit(self) -> str:
        """The commit, with a mark where files differed from it; empty where it is unknown."""
        commit = self.provenance.commit or ""
        return f"{commit}+" if commit and self.provenance.changed_files else commit

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The values by dataset."""
        return {table.name: table for table in read_tables(self)}

    @cached_property
    def means_by_dataset(self) -> dict[str, Means]:
        """The means as the run wrote them, or taken anew where it did not."""
        return {name: self.means_of(name) or summarise(table) for name, table in self.tables.items()}

    def data_version(self, dataset: str) -> str:
        """The digest of a dataset's bundle.json, or of train.json where that is all there is."""
        known = self.provenance.data.get(dataset, {})
        return known.get("bundle.json") or self.config.datasets[dataset].train_sha256 or known.get("train.json") or ""

    def kind(self, dataset: str) -> tuple[str, ...]:
        """Return what runs must have in common for their figures to mean the same."""
        measured, groups = self.config.measured, self.config.datasets[dataset].groups
        target = (self.config.target or "builtin").partition(":")[0]
        return (dataset, target, measured.parity or "", measured.judge or "", groups or "")

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(len(table.ids) for table in self.tables.values())

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return sum(sum(map(bool, table.failed)) for table in self.tables.values())


@dataclass(frozen=True)
class Series:
    """Runs over one dataset that can be compared with each other, oldest first."""

    dataset: str
    title: str
    """The dataset, with whatever else tells it from the other series."""
    runs: tuple[TrendRun, ...]

    @property
    def tables(self) -> list[Table]:
        """The values of each run."""
        return [run.tables[self.dataset] for run in self.runs]

    def means(self, metric: str) -> list[Estimate | None]:
        """Return a metric's mean in each run."""
        return [run.means_by_dataset[self.dataset].get(metric) for run in self.runs]


def read_runs(folder: Path, *, where: Mapping[str, Sequence[str]] | None = None) -> tuple[list[TrendRun], list[str]]:
    """Return the runs that ended, oldest first, and a note for each that is passed over."""
    if not folder.is_dir():
        raise ToolkitError(f"{folder}: no such folder; evaluate_rag.py writes its runs to results/")
    folders = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    runs: list[TrendRun] = []
    notes = []
    for place in track(folders, total=len(folders), label="runs", unit="run"):
        if not (place / SUMMARY).is_file():
            notes.append(f"{place}: has not ended; go on with --resume --run-name {place.name}")
            continue
        try:
            run = TrendRun(place)
            run.means_by_dataset  # noqa: B018  (read now: what is wrong with a run is told, and the others are read)
            runs.append(run)
        except ToolkitError as error:
            notes.append(f"{error}; passed over")
    runs = [run for run in runs if _wanted(run, where or {})]
    if not runs:
        raise ToolkitError(
            "\n".join([f"{folder}: no run that ended{' and has these settings' if where else ''}", *notes])
        )
    return sorted(runs, key=lambda run: (run.provenance.started, run.name)), notes


def make_series(runs: Sequence[TrendRun]) -> list[Series]:
    """Return the runs by dataset and system, each series in the runs' order."""
    kinds: dict[tuple[str, ...], list[TrendRun]] = {}
    for run in runs:
        for dataset in run.tables:
            kinds.setdefault(run.kind(dataset), []).append(run)
    # what all kinds of a dataset have in common need not be said
    names = ("", "", "parity ", "judged by ", "means by ")
    titles = {}
    for kind in sorted(kinds):
        others = [other for other in kinds if other[0] == kind[0]]
        telling = [
            f"{names[n]}{part or 'none'}" for n, part in enumerate(kind) if n and {o[n] for o in others} != {part}
        ]
        titles[kind] = ", ".join([kind[0], *telling])
    return [Series(kind[0], title, tuple(kinds[kind])) for kind, title in titles.items()]


def _wanted(run: TrendRun, where: Mapping[str, Sequence[str]]) -> bool:
    told = run.settings
    return all((told.get(name) or told.get(f"config.{name}")) in values for name, values in where.items())
