"""Which run made a metric worse: each run against the one before it, and against the level of the runs before it.

A step is one paired comparison, as `diff` makes it: worse when the 95% interval of the change leaves out 0. Over many
runs and metrics chance alone gives such steps, so with enough runs a step must also be larger than the series' usual
step. A level is the mean, question by question, of the runs since the last change; a run that leaves it begins a new
one, so that a decline too slow for any single step is found too; its bar rises with the number of runs and metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from exhibit.engine import track
from exhibit.evaluation.metrics import about, shortened
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.statistics import (
    EQUAL,
    Difference,
    Move,
    Table,
    compare,
    mean,
    mean_of,
    move,
    overlap,
    summarise,
)
from exhibit.evaluation.terminal import is_regression
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


_LEVEL = 0.05
"""How often a series in which nothing changed may be said to have changed, over all its runs and metrics."""
_OTHERS = 3
"""Other steps that a series must have for its usual step to be known: of two, the larger may be the odd one."""
_DEVIATION = 1.4826  # standard deviations of a normal variable in the median of its sizes
_OUTSTANDING = 0.99865
"""A step must be larger than this share of usual ones, three standard deviations, with Student's t for few steps."""
_LIKELY = 1.0  # standard errors below which no interval leaves out 0, so that none is drawn
_STEPS = 20_001
"""Of the integral for Student's t: within 0.01% of scipy's values, which would add 143 MB to the installation."""


@dataclass(frozen=True)
class Fall:
    """A metric that a run made worse."""

    metric: str
    step: Difference
    """Against the run before."""
    by_step: bool
    by_level: bool
    """Whether it is also, or only, seen against the level of the runs before."""
    usual: float | None
    """The median size of the other steps of the series; None where there are too few to tell."""
    level: tuple[float, float] | None = None
    """The level before, and from this run on."""


@dataclass(frozen=True)
class Regression:
    """A run that is worse than the one before it on one dataset."""

    series: Series = field(repr=False)
    at: int
    """The run's place in the series."""
    prior: int
    """The place of the run that it is compared with: the last before it that was asked the same questions."""
    falls: tuple[Fall, ...]
    """The metrics that fell, the surest first."""
    more_failed: int = 0
    """How many more questions failed than before."""
    stands: bool = True
    """Whether the newest run is still worse than the run before this one."""

    @property
    def run(self) -> str:
        """The run's name."""
        return self.series.runs[self.at].name

    @property
    def before(self) -> str:
        """The name of the run that it is compared with."""
        return self.series.runs[self.prior].name


def watched_metrics(series: Series, asked: Sequence[str] = (), *, every: bool = False) -> list[str]:
    """Return the metrics that are followed: those asked for, or those that a short table shows and can get worse."""
    names = dict.fromkeys(name for run in series.runs for name in run.means_by_dataset[series.dataset])
    if asked:
        return [name for name in names if {name, name.partition("@")[0]} & set(asked)]
    chosen = list(names) if every else shortened(names)
    return [name for name in chosen if about(name).better != "neither" and about(name).gate]


def find_regressions(series: Series, metrics: Sequence[str]) -> list[Regression]:
    """Return the runs that made a metric worse, or failed more questions, oldest first."""
    tables = [_only(table, metrics) for table in series.tables]
    priors = {at: prior for at in range(1, len(tables)) if (prior := _prior(tables, at)) is not None}
    moves = {
        at: {name: move(tables[prior], tables[at], name) for name in metrics if name in tables[at].values}
        for at, prior in priors.items()
    }
    leaps = {metric: {leap.at: leap for leap in find_leaps(tables, metric, of=len(metrics))} for metric in metrics}
    regressions = []
    for at, prior in priors.items():
        shared = overlap([tables[prior]], [tables[at]])
        more = max(0, shared.failed_after - shared.failed_before)
        pair = tables[prior], tables[at]
        falls = [fall for metric in moves[at] if (fall := _fall(metric, at, pair, moves, leaps[metric].get(at)))]
        if falls or more:
            # of changes that are the same in every document the larger is the surer
            sure = {name: min(1e6, abs(one.score)) + abs(one.mean) for name, one in moves[at].items()}
            falls.sort(key=lambda fall: (fall.by_step, sure[fall.metric]), reverse=True)
            stands = at == len(tables) - 1 or _stands(tables[prior], tables[-1], falls, more)
            regressions.append(Regression(series, at, prior, tuple(falls), more, stands))
    return regressions


def _fall(
    metric: str, at: int, pair: tuple[Table, Table], moves: Mapping[int, Mapping[str, Move]], leap: Leap | None
) -> Fall | None:
    """Return how a metric got worse at a run; None where it did not, or no more than it usually does."""
    step_by = moves[at][metric]
    others = [abs(told[metric].mean) for place, told in moves.items() if place != at and metric in told]
    usual = median(others) if len(others) >= _OTHERS else None
    most = student(_OUTSTANDING, len(others)) * _DEVIATION * usual if usual is not None else 0.0
    large = abs(step_by.score) > _LIKELY and abs(step_by.mean) > max(EQUAL, most)
    by_step = large and about(metric).improves(step_by.mean) is False
    by_level = leap is not None and about(metric).improves(leap.after - leap.before) is False
    if not by_step and not by_level:
        return None
    step = compare(*([_only(table, [metric])] for table in pair))[metric]
    by_step = by_step and is_regression(metric, step, [metric])
    if not by_step and not by_level:
        return None
    return Fall(metric, step, by_step, by_level, usual, (leap.before, leap.after) if leap and by_level else None)


def _prior(tables: Sequence[Table], at: int) -> int | None:
    """Return the last run before that shares at least half of the questions of the smaller of the two."""
    asked = set(tables[at].ids)
    for place in reversed(range(at)):
        other = set(tables[place].ids)
        if 2 * len(asked & other) >= min(len(asked), len(other)) > 0:
            return place
    return None


def _stands(before: Table, newest: Table, falls: Sequence[Fall], more: int) -> bool:
    """Return whether the newest run is still worse than the last one before the fall."""
    shared = overlap([before], [newest])
    if more and shared.failed_after > shared.failed_before:
        return True
    names = [fall.metric for fall in falls]
    return any(is_regression(name, step, names) for name, step in compare([_only(before, names)], [newest]).items())


def _only(table: Table, metrics: Sequence[str]) -> Table:
    return replace(table, values={name: table.values[name] for name in metrics if name in table.values}, repeats=())


# ---------------------------------------------------------------- levels


class Leap(NamedTuple):
    """A run from which on a metric is at another level."""

    at: int
    before: float
    after: float


def find_leaps(tables: Sequence[Table], metric: str, *, of: int = 1) -> list[Leap]:
    """Return the runs at which the level of a metric, one `of` several that are looked at, changes.

    Each run is held against the mean of the runs since the last change. Where it is beyond chance, the change is said
    to begin at whichever run since then parts the two levels best, by least squares.
    """
    share = 1 - _LEVEL / 2 / (max(1, len(tables) - 1) * of)
    leaps, start = [], 0
    for at in range(1, len(tables)):
        change = move(_level(tables[start:at], metric), tables[at], metric)
        if abs(change.score) <= student(share, change.freedom):
            continue
        parts = {split: _parted(tables[start : at + 1], split - start, metric) for split in range(start + 1, at + 1)}
        start = max(parts, key=lambda split: parts[split][0])
        leaps.append(Leap(start, *parts[start][1:]))
    return leaps


def _parted(tables: Sequence[Table], split: int, metric: str) -> tuple[float, float, float]:
    """Return how much of the runs' variance a split between two levels explains, and the levels."""
    before, after = (mean_of(_level(some, metric), metric) or 0.0 for some in (tables[:split], tables[split:]))
    return split * (len(tables) - split) / len(tables) * (before - after) ** 2, before, after


def _level(tables: Sequence[Table], metric: str) -> Table:
    """Return each question's mean over some runs."""
    own = [dict(zip(table.ids, table.values.get(metric, ()), strict=False)) for table in tables]
    first = max(tables, key=lambda table: len(table.ids))
    return replace(first, values={metric: [mean(values.get(id) for values in own) for id in first.ids]}, repeats=())


def student(share: float, freedom: int) -> float:
    """Return the quantile of Student's t: with t = √ν tan θ its density in θ is cosine to the power of ν − 1."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, _STEPS)
    parts = np.cos((angles[1:] + angles[:-1]) / 2) ** (freedom - 1)
    below = np.concatenate([[0.0], np.cumsum(parts)]) / parts.sum()
    return math.sqrt(freedom) * math.tan(float(np.interp(share, below, angles)))
