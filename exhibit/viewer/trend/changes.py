"""Find the runs that made a metric worse: compare each run with the one before, and the newest with the first.

Each comparison is paired, as in `diff`: a run is worse if the 95% interval of the change excludes 0. Over
many runs and metrics, chance alone produces some such changes. With enough runs, a change must therefore
also be larger than the usual change from one run of the series to the next.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from exhibit.engine import track
from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.regression import MAX_FALL, is_regression
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import EQUAL, Difference, change_of, compare, count_overlap
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import CONFIG, SUMMARY, Estimate


def kind_of(run: RunResults, dataset: str) -> tuple[str, ...]:
    """Return the properties that two runs must share to be comparable.

    They are the dataset, the system, the scoring rules (`parity`), the judge, and the label by which questions
    are grouped before means are computed.
    """
    measured, groups = run.config.measured, run.config.datasets[dataset].groups
    return (dataset, run.system, measured.parity or "", measured.judge or "", groups or "")


@dataclass(frozen=True)
class Series:
    """Runs over one dataset that can be compared with each other, oldest first."""

    dataset: str
    title: str
    """The dataset, with whatever distinguishes it from the other series."""
    runs: tuple[RunResults, ...]

    @property
    def tables(self) -> list[Table]:
        """The dataset's table of scores in each run, oldest run first."""
        return [run.tables[self.dataset] for run in self.runs]

    def list_means(self, metric: str) -> list[Estimate | None]:
        """Return a metric's mean in each run."""
        return [run.means_of(self.dataset).get(metric) for run in self.runs]


def read_runs(folder: Path, *, where: Mapping[str, Sequence[str]] | None = None) -> tuple[list[RunResults], list[str]]:
    """Return the finished runs in a folder, oldest first, and a note for each run that was skipped.

    `where` maps names of settings to their allowed values; if given, return only the runs with such values.
    """
    if not folder.is_dir():
        raise ToolkitError(f"{folder}: no such folder; evaluate_rag.py writes its runs to results/")
    return open_runs(sorted(path.parent for path in folder.glob(f"*/{CONFIG}")), str(folder), where=where)


def open_runs(
    folders: Sequence[Path], source: str, *, where: Mapping[str, Sequence[str]] | None = None
) -> tuple[list[RunResults], list[str]]:
    """Return the finished runs among these folders, oldest first, and a note for each run that was skipped.

    Runs that share a name are renamed to their paths. If no run is finished, raise an error that begins with
    `source`, the description of the folders.
    """
    runs: list[RunResults] = []
    notes = []
    for place in track(folders, total=len(folders), label="runs", unit="run"):
        if not (place / SUMMARY).is_file():
            notes.append(f"{place}: has not ended; continue it with --resume --run-name {place.name}")
            continue
        try:
            # all files are read now, so that a damaged run is reported and the others are still shown
            run = RunResults(place)
            _ = run.settings, run.provenance, run.means, run.system_settings
            runs.append(run)
        except ToolkitError as error:
            notes.append(f"{error}; passed over")
        except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            notes.append(f"{place}: damaged ({type(error).__name__}: {error}); passed over")
    runs = [run for run in runs if _is_wanted(run, where or {})]
    if not runs:
        raise ToolkitError(
            "\n".join([f"{source}: no finished run{' with these settings' if where else ''}; evaluate first", *notes])
        )
    names = Counter(run.name for run in runs)
    for run in runs:
        if names[run.name] > 1:
            run.name = str(run.folder.resolve())
    return sorted(runs, key=lambda run: (run.provenance.started, run.name)), notes


def make_series(runs: Sequence[RunResults]) -> list[Series]:
    """Group runs into series of comparable runs, which share the properties that `kind_of` returns.

    Within a series, the runs keep their order.
    """
    kinds: dict[tuple[str, ...], list[RunResults]] = {}
    for run in runs:
        for dataset in run.tables:
            kinds.setdefault(kind_of(run, dataset), []).append(run)
    # properties that all kinds of a dataset share are not part of the title
    names = ("", "", "parity ", "judged by ", "means by ")
    titles = {}
    for kind in sorted(kinds):
        others = [other for other in kinds if other[0] == kind[0]]
        telling = [
            f"{names[n]}{part or 'none'}" for n, part in enumerate(kind) if n and {o[n] for o in others} != {part}
        ]
        titles[kind] = ", ".join([kind[0], *telling])
    return [Series(kind[0], title, tuple(kinds[kind])) for kind, title in titles.items()]


def _is_wanted(run: RunResults, where: Mapping[str, Sequence[str]]) -> bool:
    settings = run.settings
    return all((settings.get(name) or settings.get(f"config.{name}")) in values for name, values in where.items())


_OTHERS = 3
"""The usual step of a series needs at least this many other steps: of two, the larger may be the unusual one."""
_LARGE = 4.5
"""A change must be larger than this many usual steps: three standard deviations of a normal variable."""


@dataclass(frozen=True)
class Fall:
    """A metric that is worse in one run than in the run before, with the difference."""

    metric: str
    step: Difference
    """The difference from the run before."""
    usual: float | None
    """The median size of the other steps of the series; None where there are too few."""


@dataclass(frozen=True)
class Regression:
    """A run that is worse than the one before it on one dataset."""

    series: Series = field(repr=False)
    at: int
    """The run's position in the series."""
    prior: int
    """The position of the run that it is compared with: the last before it with the same questions."""
    falls: tuple[Fall, ...]
    """The metrics that fell, the most significant first."""
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
        """The name of the earlier run with which the run is compared."""
        return self.series.runs[self.prior].name


def choose_watched_metrics(series: Series, asked: Sequence[str] = (), *, every: bool = False) -> list[str]:
    """Return the metrics to check for regressions.

    These are the metrics in `asked`. If `asked` is empty, they are a short selection or, with `every`, all
    metrics that can become worse.
    """
    names = dict.fromkeys(name for run in series.runs for name in run.means_of(series.dataset))
    if asked:
        return [name for name in names if {name, name.partition("@")[0]} & set(asked)]
    chosen = list(names) if every else shorten_metrics(names)
    return [name for name in chosen if describe_metric(name).better != "neither" and describe_metric(name).gate]


def find_regressions(series: Series, metrics: Sequence[str], *, max_fall: float = MAX_FALL) -> list[Regression]:
    """Return the runs that made a metric worse, or in which more questions failed, oldest first.

    A slow decline without one large step is found by comparing the newest run with the first. `max_fall` is the
    largest fall that is allowed if there are too few documents for a confidence interval.
    """
    tables = [_select_metrics(table, metrics) for table in series.tables]
    last = len(tables) - 1
    # the last earlier run with the same questions
    alike = {
        at: [place for place in range(at) if _are_alike(tables[place], tables[at])] for at in range(1, len(tables))
    }
    priors = {at: places[-1] for at, places in alike.items() if places}
    steps = {at: {name: change_of(tables[prior], tables[at], name) for name in metrics} for at, prior in priors.items()}

    def find_regression(at: int, prior: int) -> Regression | None:
        shared = count_overlap([tables[prior]], [tables[at]])
        more = max(0, shared.failed_after - shared.failed_before)
        others = [one for place, one in steps.items() if place != at]
        falls = [fall for name in metrics if (fall := _find_fall(name, tables[prior], tables[at], others, max_fall))]
        if not falls and not more:
            return None
        falls.sort(key=_rank_significance, reverse=True)
        stands = at == last or _stands(tables[prior], tables[-1], falls, more, max_fall)
        return Regression(series, at, prior, tuple(falls), more, stands)

    found = [one for at, prior in priors.items() if (one := find_regression(at, prior))]
    slow = len(priors) > 1 and priors.get(last) != 0 and not any(one.stands for one in found)
    newest = find_regression(last, 0) if slow and _are_alike(tables[0], tables[last]) else None
    return [*found, newest] if newest else found


def _find_fall(
    metric: str, before: Table, after: Table, others: Sequence[Mapping[str, float]], max_fall: float
) -> Fall | None:
    """Return how much a metric got worse from `before` to `after`; None if it did not get significantly worse.

    `others` has the changes between other consecutive runs of the series. If there are enough such changes, the
    metric must also have changed by much more than the median size of these changes.
    """
    change = change_of(before, after, metric)
    usual = median(abs(one[metric]) for one in others) if len(others) >= _OTHERS else None
    if abs(change) <= max(EQUAL, _LARGE * (usual or 0.0)) or describe_metric(metric).improves(change) is not False:
        return None
    step = compare([_select_metrics(before, [metric])], [after]).get(metric)
    return Fall(metric, step, usual) if step and is_regression(metric, step, [metric], max_fall=max_fall) else None


def _rank_significance(fall: Fall) -> tuple[float, float]:
    """Return a sort key for metrics that became worse: first by significance, then by size of the change.

    The significance is the change divided by the width of its confidence interval.
    """
    change, (low, high) = abs(fall.step.mean or 0.0), fall.step.ci95 or (0.0, 0.0)
    return min(1e6, change / (high - low)) if high > low else 1e6, change


def _are_alike(one: Table, other: Table) -> bool:
    """Return whether two runs share at least half of the questions of the smaller run."""
    return 2 * count_overlap([one], [other]).asked >= min(len(one.ids), len(other.ids)) > 0


def _stands(before: Table, newest: Table, falls: Sequence[Fall], more: int, max_fall: float) -> bool:
    """Return whether a regression that an earlier run showed still exists in the newest run.

    `before` is the run before that regression, `falls` are the metrics that became worse, and `more` is the
    number of additional failed replies. The newest run is compared with `before`: the regression exists if one
    of these metrics is still worse or, where `more` is not 0, if more replies still fail.
    """
    shared = count_overlap([before], [newest])
    if more and shared.failed_after > shared.failed_before:
        return True
    names = [fall.metric for fall in falls]
    steps = compare([_select_metrics(before, names)], [newest])
    return any(is_regression(name, step, names, max_fall=max_fall) for name, step in steps.items())


def _select_metrics(table: Table, metrics: Sequence[str]) -> Table:
    return replace(table, values={name: table.values[name] for name in metrics if name in table.values}, repeats=())
