"""The runs of a results folder, oldest first, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exhibit.engine import track
from exhibit.evaluation.provenance import read_provenance
from exhibit.evaluation.records import CONFIG, SUMMARY, read_json, read_tables
from exhibit.evaluation.report.run import settings
from exhibit.evaluation.statistics import Estimate, Table, summarise
from exhibit.schemas.errors import ToolkitError

Record = dict[str, Any]

_APART = ("format", "version", "datasets.")
"""Settings that say nothing of what was asked of the system, or that are told as the data's version."""


@dataclass(frozen=True)
class TrendRun:
    """A run that ended: what it was told, what it stood on, and what it measured."""

    folder: Path
    started: str
    """ISO 8601, UTC."""
    config: Record
    provenance: Record
    tables: Mapping[str, Table] = field(repr=False)
    means: Mapping[str, Mapping[str, Estimate]] = field(repr=False)
    """By dataset and metric."""

    @property
    def name(self) -> str:
        """The run's folder."""
        return self.folder.name

    @property
    def asked(self) -> dict[str, str]:
        """What was asked of the system, as names and values."""
        return {name: value for name, value in settings(self.config) if not name.startswith(_APART)}

    @property
    def commit(self) -> str:
        """The commit, with a mark where files differed from it; empty where it is unknown."""
        commit = str(self.provenance.get("commit") or "")
        return f"{commit}+" if commit and self.provenance.get("changed_files") else commit

    def data_version(self, dataset: str) -> str:
        """The digest of a dataset's bundle.json, or of train.json where that is all there is."""
        known = (self.provenance.get("data") or {}).get(dataset) or {}
        told = (self.config.get("datasets") or {}).get(dataset) or {}
        return str(known.get("bundle.json") or told.get("train_sha256") or known.get("train.json") or "")

    def kind(self, dataset: str) -> tuple[str, ...]:
        """Return what runs must have in common for their figures to mean the same."""
        measured = self.config.get("measured") or {}
        groups = (self.config["datasets"].get(dataset) or {}).get("groups")
        target = str(self.config.get("target") or "builtin").partition(":")[0]
        return (dataset, target, str(measured.get("parity") or ""), str(measured.get("judge") or ""), str(groups or ""))

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
        return [run.means[self.dataset].get(metric) for run in self.runs]


def read_runs(folder: Path, *, where: Mapping[str, Sequence[str]] | None = None) -> tuple[list[TrendRun], list[str]]:
    """Return the runs that ended, oldest first, and a note for each that is passed over."""
    if not folder.is_dir():
        raise ToolkitError(f"{folder}: no such folder; evaluate_rag.py writes its runs to results/")
    folders = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    runs, notes = [], []
    for place in track(folders, total=len(folders), label="runs", unit="run"):
        if not (place / SUMMARY).is_file():
            notes.append(f"{place}: has not ended; go on with --resume --run-name {place.name}")
            continue
        try:
            runs.append(_read(place))
        except ToolkitError as error:
            notes.append(f"{error}; passed over")
    runs = [run for run in runs if _wanted(run, where or {})]
    if not runs:
        raise ToolkitError(
            "\n".join([f"{folder}: no run that ended{' and has these settings' if where else ''}", *notes])
        )
    return sorted(runs, key=lambda run: (run.started, run.name)), notes


def make_series(runs: Iterable[TrendRun]) -> list[Series]:
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


def _read(folder: Path) -> TrendRun:
    config, provenance = read_json(folder / CONFIG), read_provenance(folder)
    tables = {table.name: table for table in read_tables(folder)}
    means = {name: _means(folder / name / SUMMARY, table) for name, table in tables.items()}
    started = str(provenance.get("started") or "")
    if not started:  # a run made before this was written: its settings were the first file of it
        started = datetime.fromtimestamp((folder / CONFIG).stat().st_mtime, UTC).isoformat(timespec="seconds")
    return TrendRun(folder, started, config, provenance, tables, means)


def _means(path: Path, table: Table) -> dict[str, Estimate]:
    """Return a dataset's means as the run wrote them, or taken anew where it did not."""
    if not path.is_file():
        return summarise(table)
    return {name: _estimate(told) for name, told in read_json(path).items()}


def _estimate(told: Mapping[str, Any]) -> Estimate:
    low, high = told.get("ci95") or (None, None)
    return Estimate(
        told.get("mean"),
        int(told.get("n") or 0),
        int(told.get("errors") or 0),
        None if low is None or high is None else (low, high),
    )


def _wanted(run: TrendRun, where: Mapping[str, Sequence[str]]) -> bool:
    told = dict(settings(run.config))
    return all((told.get(name) or told.get(f"config.{name}")) in values for name, values in where.items())
