"""Runs over time: `exhibit results index` finds runs that are worse than an earlier run, for a page and for CI.

A run is compared with the last earlier run on the same questions, and the newest run also with the first.
"""

import argparse
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

from exhibit.engine import track
from exhibit.evaluation import compare
from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.statistics import Difference, Table, change_of, count_overlap
from exhibit.evaluation.text_tables import Scale, find_bands, read_scale
from exhibit.runtime.command import print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import CONFIG, REPORT, SUMMARY
from exhibit.storage.atomic import write_whole
from exhibit.viewer import plots
from exhibit.viewer.page import Record, format_page, render
from exhibit.viewer.report import make_names_unique

NAME = "index.html"
GATE = 4  # the exit code when a condition of `--fail-on` is met; 1 is an error, 3 too many failed questions
REGRESSION, BAND = "regression", "band"
_MAX_TICKS = 10  # run numbers below the axis: more would overlap
_MIN_STEPS = 3  # least steps from which the usual step is computed: of two, the larger may be unusual
_LARGE = 4.5  # an unusual change exceeds this many median steps: three standard deviations of a normal variable


@dataclass
class Series:
    """Comparable runs on one dataset, oldest first."""

    dataset: str
    title: str  # the dataset and the system; also the judge and the scoring rules unless they are the default
    runs: Sequence[RunResults]
    metrics: Sequence[str] = ()
    regressions: Sequence["Regression"] = ()


class Regression(NamedTuple):
    title: str  # the title of the series
    before: RunResults
    run: RunResults  # the run that is worse than the run before
    falls: Mapping[str, Difference]  # the metrics that are worse, the one with the largest change first
    more_failed: int  # how many more questions failed than before
    persists: bool  # whether the newest run is still worse than the run before this one

    @property
    def lines(self) -> list[str]:
        """The lines to print: the two runs and the metric that fell most, the other falls, and whether they persist."""
        falls = [describe_fall(*pair) for pair in self.falls.items()]
        falls += [f"{self.more_failed} more question{'s' * (self.more_failed > 1)} failed"] if self.more_failed else []
        headline = f"{self.run.name} is worse than {self.before.name} on {self.title}: {falls[0]}"
        last = "The newest run is still worse." if self.persists else "A later run is as good as before the fall."
        return [headline, *falls[1:], last]


class Check(NamedTuple):
    suite: str  # the title of a series of runs
    name: str  # the name of a `--fail-on` condition
    seen: str  # the observed values
    holds: bool


def describe_fall(metric: str, step: Difference) -> str:
    """Return how much a metric got worse, in words."""
    about, verb = describe_metric(metric), "fell" if (step.mean or 0) < 0 else "rose"
    old, new = format_value(metric, step.first), format_value(metric, step.second)
    return f"{format_title(metric)} {verb} from {old} to {new} ({about.describe_change(step)})"


def format_title(metric: str) -> str:
    depth = metric.partition("@")[2]
    return describe_metric(metric).title + (f", k = {depth}" if depth else "")


def format_value(metric: str, number: float | None) -> str:
    """Return a metric's value with its unit; a share is given in per cent, and an unknown value as `–`."""
    return "–" if number is None else f"{describe_metric(metric).in_words(number)}{describe_metric(metric).report_unit}"


def open_runs(folders: Sequence[Path], source: str) -> list[RunResults]:
    """Return the finished runs, oldest first; print a note for each skipped run."""
    runs = list[RunResults]()
    for folder in track(folders, total=len(folders), label="runs", unit="run"):
        if not (folder / SUMMARY).is_file():
            print_note(f"{folder}: has not ended; continue it with --resume --run-name {folder.name}")
            continue
        try:
            # read all files now: a damaged run is reported, and the other runs are still shown
            run = RunResults(folder)
            _ = run.settings, run.provenance, run.means
        except (ToolkitError, OSError, ValueError) as error:
            print_note(f"{error}; skipped")
            continue
        runs.append(run)
    if not runs:
        raise ToolkitError(f"{source}: no finished run; evaluate first")
    make_names_unique(runs)
    return sorted(runs, key=lambda run: (run.provenance.started, run.name))


def make_series(runs: Sequence[RunResults], metrics: Sequence[str] = ()) -> list[Series]:
    """Group runs that can be compared into series: same dataset, system, parity, judge and groups for means.

    A series shows the given metrics; if none are given, it shows a selection.
    """
    kinds: dict[str, Series] = {}
    for run in runs:
        for dataset in run.tables:
            measured, groups = run.config.measured, run.config.datasets[dataset].groups
            parts = {"": run.system, "parity ": measured.parity, "judged by ": measured.judge, "means by ": groups}
            title = ", ".join([dataset, *(f"{words}{part}" for words, part in parts.items() if part)])
            series = kinds.setdefault(title, Series(dataset, title, []))
            series.runs = [*series.runs, run]
    for series in kinds.values():
        known = list(dict.fromkeys(name for run in series.runs for name in run.means_of(series.dataset)))
        if metrics:
            series.metrics = [name for name in known if {name, name.partition("@")[0]} & set(metrics)]
        else:
            abouts = {name: describe_metric(name) for name in shorten_metrics(known)}
            series.metrics = [name for name, about in abouts.items() if about.better != "neither" and about.gate]
        series.regressions = find_regressions(series, metrics)
    return [series for _, series in sorted(kinds.items())]


def find_regressions(series: Series, requested: Sequence[str] = ()) -> list[Regression]:
    """Return the runs in which metrics, outcomes or failures got worse, oldest first.

    Without `requested` metrics, all metrics of the series are tested.
    """
    tables = []
    for table in (run.tables[series.dataset] for run in series.runs):
        values = {name: table.values[name] for name in series.metrics if name in table.values}
        tables.append(compare.with_outcomes(replace(table, values=values, rounds=())))
    last = len(tables) - 1

    def are_alike(first: Table, second: Table) -> bool:  # at least half of the questions of the smaller run are shared
        return 2 * count_overlap([first], [second]).asked >= min(len(first.ids), len(second.ids)) > 0

    alike = {at: [prior for prior in range(at) if are_alike(tables[prior], tables[at])] for at in range(1, last + 1)}

    def find_falls(prior: int, at: int, named: Sequence[str]) -> tuple[dict[str, Difference], int]:
        differences = compare.compare_runs([tables[prior]], [tables[at]])
        worse = {name: differences[name] for name in compare.find_regressions(differences, named)}
        shared = count_overlap([tables[prior]], [tables[at]])
        falls = dict(sorted(worse.items(), key=lambda pair: -compare.measure_fall(*pair)))
        return falls, max(0, shared.failed_after - shared.failed_before)

    def check(prior: int, at: int) -> Iterator[Regression]:
        falls, failed = find_falls(prior, at, requested)
        others = [(tables[priors[-1]], tables[other]) for other, priors in alike.items() if priors and other != at]
        falls = {name: step for name, step in falls.items() if step.lost or _is_unusual(name, step, others)}
        if falls or failed:
            later, failed_later = find_falls(prior, last, list(falls)) if at < last else (falls, failed)
            persists = bool((falls and later) or (failed and failed_later))
            yield Regression(series.title, series.runs[prior], series.runs[at], falls, failed, persists)

    regressions = [regression for at, priors in alike.items() if priors for regression in check(priors[-1], at)]
    # a slow decline has no large step: also compare the newest run with the first
    if len(alike.get(last, [])) > 1 and alike[last][0] == 0 and not any(earlier.persists for earlier in regressions):
        regressions += check(0, last)
    return regressions


def _is_unusual(metric: str, step: Difference, others: Sequence[tuple[Table, Table]]) -> bool:
    """Return whether a change is much larger than the series's other steps, or whether these are too few to tell."""
    steps = (change_of(before, after, metric) for before, after in others)
    return len(others) < _MIN_STEPS or abs(step.mean or 0.0) > _LARGE * median(map(abs, steps))


def check_gates(gates: Sequence[str], series: Sequence[Series], scale: Scale) -> list[Check]:
    """Check the newest run of each series against the `--fail-on` conditions, and return all results."""
    checks: list[Check] = []
    if REGRESSION in gates:
        for system in series:
            worse = [fall for fall in system.regressions if fall.persists]
            names = (f"{fall.run.name} is worse than {fall.before.name}, and the newest run still is" for fall in worse)
            seen = "; ".join(names) or "the newest run is not worse than a run before it"
            checks.append(Check(system.title, "no regression", seen, not worse))
    if BAND in gates:
        bands = [check for system in series for check in _check_bands(system, scale)]
        if not bands:
            reason = "no metric of the newest runs has a band, so the check could never fail"
            raise ToolkitError(f"--fail-on {BAND}: {reason}; name other bands with --bands")
        checks += bands
    return checks


def _check_bands(series: Series, scale: Scale) -> Iterator[Check]:
    newest = series.runs[-1]
    for metric, estimate in newest.means_of(series.dataset).items():
        bands = find_bands(scale, metric)
        if bands and estimate.mean is not None:
            band, words = bands.band(estimate.mean), describe_metric(metric).figure(estimate.mean)
            seen = f"{words} is {band.lower()} (poor: {bands.poor}) in {newest.name}"
            yield Check(series.title, f"{metric} is not poor", seen, band != "Poor")


def index(options: argparse.Namespace) -> int:
    """Write the page that shows all runs over time; return 4 if a CI check fails, otherwise 0."""
    if not options.runs.is_dir():
        raise ToolkitError(f"{options.runs}: no such folder; exhibit evaluate writes its runs to results/")
    folders = sorted(path.parent for path in options.runs.glob(f"*/{CONFIG}"))
    runs, scale = open_runs(folders, str(options.runs)), read_scale(options.bands)
    series = make_series(runs, options.metrics)
    if options.metrics and not any(system.metrics for system in series):
        raise ToolkitError(f"no run has the metrics {', '.join(options.metrics)}; check their names")
    regressions = [regression for system in series for regression in system.regressions]
    checks = check_gates(options.fail_on, series, scale)
    page = _write_page(options.out or options.runs / NAME, runs, series, scale)
    lines = [] if regressions else [f"{len(runs)} runs: no run is worse than the run before it"]
    record: Record = {"runs": len(runs), "regressions": [], "checks": [c._asdict() for c in checks], "page": page}
    for drop in regressions:
        folders_of_both = f"{drop.before.folder} {drop.run.folder}"
        lines += ["\n  ".join(drop.lines), f"  to see the questions: exhibit results compare {folders_of_both}"]
        record["regressions"].append({"run": drop.run.name, "before": drop.before.name, "lines": drop.lines})
    lines += [f"{'pass' if check.holds else 'FAIL'}: {check.suite}: {check.name}: {check.seen}" for check in checks]
    print_results(record, "\n".join([*lines, f"page: {page}"]), as_json=options.json)
    return 0 if all(check.holds for check in checks) else GATE


def write_trend(folders: Sequence[Path], out: Path, *, home: str = "") -> Path:
    """Write the page that shows the runs in these folders over time, with the default metrics and bands."""
    runs = open_runs(folders, "the served folders")
    return _write_page(out, runs, make_series(runs), read_scale(), home=home)


def _write_page(
    path: Path, runs: Sequence[RunResults], series: Sequence[Series], scale: Scale, *, home: str = ""
) -> Path:
    numbers = {run.name: number for number, run in enumerate(runs, 1)}
    parts = []
    for system in series:
        columns = {run.name: run.means_of(system.dataset) for run in reversed(system.runs[-2:])}
        rows = plots.make_metric_rows(columns, scale, metrics=system.metrics)
        drawn = filter(None, [draw(system, metric, numbers) for metric in system.metrics])
        parts.append({"series": system, "plots": list(drawn), "heads": list(columns), "rows": rows})
    regressions = [regression for system in series for regression in system.regressions]
    reports = {run.name: Path(os.path.relpath(run.folder / REPORT, path.parent)).as_posix() for run in runs}
    regressions.sort(key=lambda regression: (not regression.persists, -numbers[regression.run.name]))
    values: Record = {"home": home, "runs": [(numbers[run.name], run) for run in reversed(runs)], "numbers": numbers}
    values |= {"first": runs[0].provenance.started[:10], "last": runs[-1].provenance.started[:10], "series": parts}
    values |= {"regressions": regressions, "persisting": sum(regression.persists for regression in regressions)}
    values["reports"] = {} if home else {name: quote(address) for name, address in reports.items()}
    values["result"] = lambda run: describe_result(run.tables.values())
    values["counts"] = lambda run: compare.count_outcomes(list(run.tables.values())).most_common()
    body = render("index.html.j2", **values)
    write_whole(path, format_page("Results over time – Exhibit", body))
    return path


def draw(series: Series, metric: str, numbers: Mapping[str, int]) -> plots.Plot | None:
    """Return a plot of a metric over the runs, with its 95% band and the regressions marked.

    Return None if no run has a value. The axis begins at 0 and, for a share, ends at 100%.
    """
    means = [run.means_of(series.dataset).get(metric) for run in series.runs]
    known = [(at, mean) for at, mean in enumerate(means) if mean is not None and mean.mean is not None]
    if not known:
        return None
    about, title = describe_metric(metric), format_title(metric)
    ends = [end for _, mean in known for end in (mean.mean or 0.0, *(mean.ci95 or ()))]
    high = 1.0 if about.unit == "share" else 1.1 * max(ends) or 1.0
    worse = {regression.run.name for regression in series.regressions if metric in regression.falls}
    x = [plots.compute_x(at / (len(means) - 1) if len(means) > 1 else 0.5) for at in range(len(means))]
    points = []
    for at, mean in known:
        name, words = series.runs[at].name, format_value(metric, mean.mean)
        interval = f" ({' to '.join(format_value(metric, end) for end in mean.ci95)})" if mean.ci95 else ""
        label = f"run {numbers[name]}, {name}: {words}{interval}, n {mean.n}"
        points.append((x[at], mean, label, name in worse))
    note = f"{format_value(metric, known[-1][1].mean)} in the newest run"
    note += ", lower is better" if about.better == "less" else ""
    shown = range(0, len(means), max(1, math.ceil(len(means) / _MAX_TICKS)))
    ticks = [plots.Point(x[at], plots.BOTTOM, str(numbers[series.runs[at].name])) for at in shown]
    # without decimals, which do not fit beside the axis
    sides = plots.mark_side(lambda share: format_value(metric, share * high).replace(".0%", "%"), (0, 0.5, 1))
    return plots.Plot(title, note, [plots.make_line(title, points, high=high)], ticks, sides)
