"""Runs over time: `exhibit results index` names the runs that are worse than an earlier one, on a page and for CI.

Each run is compared with the last one before it that was asked the same questions, by the rules of `results diff`; the
newest run is also compared with the first, because a slow decline has no large step.
"""

import argparse
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from urllib.parse import quote

from exhibit.engine import track
from exhibit.evaluation import compare
from exhibit.evaluation.bands import Bound, Scale, read_scale
from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.statistics import Difference, change_of, count_overlap
from exhibit.runtime.command import print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import CONFIG, REPORT, SUMMARY, Estimate
from exhibit.storage.atomic import write_whole
from exhibit.viewer.page import Record, format_page, render
from exhibit.viewer.plots import BOTTOM, LEFT, Plot, PlotLine, Point, compute_x, compute_y, format_outline
from exhibit.viewer.report import name_apart
from exhibit.viewer.tables import make_metric_rows

NAME = "index.html"
GATE = 4
"""The exit code when a condition of `--fail-on` is met; 1 is an error, 3 too many failed questions."""
REGRESSION, BAND = "regression", "band"
_SETTINGS = ("target", "preset", "config.embedder", "config.splitter", "llm", "config.llm", "config.k", "limit")
"""The most important settings; the others are shown on demand."""
_MAX_TICKS = 10  # run numbers below the axis: more would overlap
_MIN_STEPS = 3  # that the usual step of a series needs: of two, the larger may be the unusual one
_LARGE = 4.5  # usual steps that a change must exceed: three standard deviations of a normal variable
_EXPRESSION = re.compile(r"(?:([^:<>=]++):\s*)?([\w.@-]++)\s*((?:>=|<=|>|<).*)")


@dataclass
class Series:
    """Runs over one dataset that can be compared with each other, oldest first."""

    dataset: str
    title: str
    """The dataset and the system, with the judge and the rules of the scores if they are not the usual ones."""
    runs: Sequence[RunResults]
    metrics: Sequence[str] = ()
    regressions: Sequence["Regression"] = ()

    @property
    def tables(self) -> list[Table]:
        return [run.tables[self.dataset] for run in self.runs]

    def list_means(self, metric: str) -> list[Estimate | None]:
        return [run.means_of(self.dataset).get(metric) for run in self.runs]


@dataclass(frozen=True)
class Regression:
    """A run that is worse than an earlier one on one dataset: its extent, and what changed between the two."""

    series: Series = field(repr=False)
    at: int
    """The run's position in the series."""
    prior: int
    """The position of the run that it is compared with."""
    falls: Mapping[str, Difference]
    """The metrics that are worse, the one with the largest change first."""
    more_failed: int
    """How many more questions failed than before."""
    persists: bool
    """Whether the newest run is still worse than the run before this one."""

    @property
    def run(self) -> str:
        return self.series.runs[self.at].name

    @property
    def before(self) -> str:
        return self.series.runs[self.prior].name

    @property
    def lines(self) -> list[str]:
        """The sentence that names both runs with the first fall, the other falls, and whether they persist."""
        falls = [describe_fall(*pair) for pair in self.falls.items()]
        falls += [f"{self.more_failed} more question{'s' * (self.more_failed > 1)} failed"] if self.more_failed else []
        headline = f"{self.run} is worse than {self.before} on {self.series.title}: {falls[0]}"
        last = "It persists in the newest run." if self.persists else "It was corrected since."
        return [headline, *falls[1:], last]


@dataclass(frozen=True)
class Check:
    """A condition of `--fail-on` on one series of runs: its name, the observed values, and whether it holds."""

    suite: str
    name: str
    seen: str
    holds: bool


def describe_fall(metric: str, step: Difference) -> str:
    """Return how much a metric got worse, in words."""
    about, verb = describe_metric(metric), "fell" if (step.mean or 0) < 0 else "rose"
    old, new = format_value(metric, step.first), format_value(metric, step.second)
    ends = f", 95% interval {' to '.join(map(about.change_in_words, step.ci95))}" if step.ci95 else ""
    change = about.change_in_words(step.mean or 0.0)
    return f"{format_title(metric)} {verb} from {old} to {new} ({change}{ends})"


def format_title(metric: str) -> str:
    depth = metric.partition("@")[2]
    return describe_metric(metric).title + (f", k = {depth}" if depth else "")


def format_value(metric: str, number: float | None) -> str:
    """Return a metric's value with its unit; a share is given in per cent, and an unknown value as `–`."""
    return "–" if number is None else f"{describe_metric(metric).in_words(number)}{describe_metric(metric).unit_behind}"


# ---------------------------------------------------------------- runs, series and regressions


def open_runs(folders: Sequence[Path], source: str, where: Mapping[str, Sequence[str]]) -> list[RunResults]:
    """Return the finished runs with the settings in `where`, oldest first; print a note for each that is skipped."""
    runs: list[RunResults] = []
    for folder in track(folders, total=len(folders), label="runs", unit="run"):
        if not (folder / SUMMARY).is_file():
            print_note(f"{folder}: has not ended; continue it with --resume --run-name {folder.name}")
            continue
        try:
            # all files are read now, so that a damaged run is reported and the others are still shown
            run = RunResults(folder)
            settings, _ = run.settings, (run.provenance, run.means)
        except (ToolkitError, OSError, ValueError) as error:
            print_note(f"{error}; skipped")
            continue
        if all((settings.get(name) or settings.get(f"config.{name}")) in values for name, values in where.items()):
            runs.append(run)
    if not runs:
        raise ToolkitError(f"{source}: no finished run{' with these settings' if where else ''}; evaluate first")
    name_apart(runs)
    return sorted(runs, key=lambda run: (run.provenance.started, run.name))


def make_series(
    runs: Sequence[RunResults], metrics: Sequence[str] = (), *, every: bool = False, max_fall: float = compare.MAX_FALL
) -> list[Series]:
    """Group runs into series of the same dataset, system, parity, judge and grouping, and find their regressions.

    The series follow `metrics`; if none are given, a short selection or, with `every`, all that can get worse.
    """
    kinds: dict[str, Series] = {}
    for run in runs:
        for dataset in run.tables:
            measured, groups = run.config.measured, run.config.datasets[dataset].groups
            parts = {"": run.system, "parity ": measured.parity, "judged by ": measured.judge, "means by ": groups}
            title = ", ".join([dataset, *(f"{words}{part}" for words, part in parts.items() if part)])
            series = kinds.setdefault(title, Series(dataset, title, []))
            series.runs = [*series.runs, run]
    for one in kinds.values():
        known = list(dict.fromkeys(name for run in one.runs for name in run.means_of(one.dataset)))
        one.metrics = _choose_metrics(known, metrics, every)
        one.regressions = find_regressions(one, metrics, max_fall=max_fall)
    return [one for _, one in sorted(kinds.items())]


def _choose_metrics(known: Sequence[str], requested: Sequence[str], every: bool) -> list[str]:
    if requested:
        return [name for name in known if {name, name.partition("@")[0]} & set(requested)]
    chosen = list(known) if every else shorten_metrics(known)
    return [name for name in chosen if describe_metric(name).better != "neither" and describe_metric(name).gate]


def find_regressions(
    series: Series, requested: Sequence[str] = (), *, max_fall: float = compare.MAX_FALL
) -> list[Regression]:
    """Return the runs in which metrics or outcomes got worse, or more questions failed, oldest first.

    `requested` are the metrics that the user named; `max_fall` is the largest fall that is allowed if there are too
    few documents for a confidence interval.
    """
    tables = []
    for table in series.tables:
        values = {name: table.values[name] for name in series.metrics if name in table.values}
        tables.append(compare.with_outcomes(replace(table, values=values, repeats=())))
    last = len(tables) - 1

    def compare_two(prior: int, at: int, named: Sequence[str]) -> tuple[dict[str, Difference], int]:
        differences = compare.compare_runs([tables[prior]], [tables[at]])
        worse = {name: differences[name] for name in compare.find_regressions(differences, named, max_fall=max_fall)}
        shared = count_overlap([tables[prior]], [tables[at]])
        falls = dict(sorted(worse.items(), key=lambda pair: -compare.measure_fall(*pair)))
        return falls, max(0, shared.failed_after - shared.failed_before)

    def check(prior: int, at: int) -> Regression | None:
        falls, failed = compare_two(prior, at, requested)
        others = [(before, after) for after, before in priors.items() if after != at]
        falls = {name: step for name, step in falls.items() if step.lost or _is_unusual(name, step, tables, others)}
        if not falls and not failed:
            return None
        later, failed_later = compare_two(prior, last, list(falls)) if at < last else (falls, failed)
        return Regression(series, at, prior, falls, failed, bool((falls and later) or (failed and failed_later)))

    priors: dict[int, int] = {}
    for at in range(1, len(tables)):
        alike = [prior for prior in range(at) if _are_alike(tables[prior], tables[at])]
        priors |= {at: alike[-1]} if alike else {}
    found = [regression for at, prior in priors.items() if (regression := check(prior, at))]
    if priors.get(last) and not any(one.persists for one in found) and _are_alike(tables[0], tables[last]):
        found += filter(None, [check(0, last)])
    return found


def _is_unusual(metric: str, step: Difference, tables: Sequence[Table], others: Sequence[tuple[int, int]]) -> bool:
    """Return whether a change is larger than the usual steps of the series, which vary without any cause."""
    steps = (change_of(tables[before], tables[after], metric) for before, after in others)
    return len(others) < _MIN_STEPS or abs(step.mean or 0.0) > _LARGE * median(map(abs, steps))


def _are_alike(first: Table, second: Table) -> bool:
    """Return whether two runs share at least half of the questions of the smaller run."""
    return 2 * count_overlap([first], [second]).asked >= min(len(first.ids), len(second.ids)) > 0


# ---------------------------------------------------------------- checks for CI


def parse_gate(text: str) -> str:
    """Return a condition of `--fail-on`, such as `recall@10 >= 0.8`; raise ArgumentTypeError if it is invalid."""
    try:
        return text if text in (REGRESSION, BAND) or _parse_expression(text) else ""
    except ToolkitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def check_gates(gates: Sequence[str], series: Sequence[Series], scale: Scale) -> list[Check]:
    """Check the newest run of each series against the `--fail-on` conditions, and return all results.

    Raise an error if no newest run has the figures that a condition needs.
    """
    checks: list[Check] = []
    for gate in gates:
        results = [check for one in series for check in _check_gate(gate, one, scale)]
        if not results:
            reason = "the newest runs have no such figure, so the check could never fail; name another"
            raise ToolkitError(f"--fail-on {gate!r}: {reason}")
        checks += results
    return checks


def _check_gate(gate: str, series: Series, scale: Scale) -> Iterator[Check]:
    newest, title = series.runs[-1], series.title
    means = {name: estimate.mean for name, estimate in newest.means_of(series.dataset).items()}
    if gate == REGRESSION:
        found = [fall for fall in series.regressions if fall.persists]
        seen = "; ".join(f"{fall.run} is worse than {fall.before}, and the newest run still is" for fall in found)
        yield Check(title, "no regression", seen or "none persists", not found)
    elif gate == BAND:
        for metric, mean in means.items():
            bands = scale.of(series.dataset, metric)
            if bands and mean is not None:
                band, words = bands.band(mean), describe_metric(metric).figure(mean)
                seen = f"{words} is {band.lower()} (poor: {bands.poor}) in {newest.name}"
                yield Check(title, f"{metric} is not poor", seen, band != "Poor")
    else:
        dataset, metric, bound = _parse_expression(gate)
        table = newest.tables[series.dataset]
        failed = table.errors / len(table.ids) if table.ids else None
        value = failed if metric == "failed" else means.get(metric)
        if value is not None and dataset in (None, series.dataset):
            seen = f"{metric} is {value:.4g} in {newest.name}"
            yield Check(title, f"not {metric} {bound}", seen, not bound.holds(value))


def _parse_expression(text: str) -> tuple[str | None, str, Bound]:
    match = _EXPRESSION.fullmatch(text.strip())
    if not match:
        raise ToolkitError(
            f"--fail-on {text!r}: write {REGRESSION}, {BAND}, or a bound such as 'answer_f1 < 0.5', "
            "'cuad:char_recall@8 < 0.6' or 'failed > 0.02'"
        )
    return match[1] and match[1].strip(), match[2].replace("-", "_"), Bound.parse(match[3], where=f"--fail-on {text!r}")


# ---------------------------------------------------------------- the command and the page


def index(options: argparse.Namespace) -> int:
    """Write the page that shows all runs over time; return 4 if a CI check fails, otherwise 0."""
    where = parse_settings({"where": options.where}, where="--where").where
    if not options.folder.is_dir():
        raise ToolkitError(f"{options.folder}: no such folder; exhibit evaluate writes its runs to results/")
    folders = sorted(path.parent for path in options.folder.glob(f"*/{CONFIG}"))
    runs, scale = open_runs(folders, str(options.folder), where), read_scale(options.bands)
    series = make_series(runs, options.metrics, every=options.all, max_fall=options.max_fall)
    if options.metrics and not any(one.metrics for one in series):
        raise ToolkitError(f"no run has the metrics {', '.join(options.metrics)}; check their names")
    regressions = [regression for one in series for regression in one.regressions]
    checks = check_gates(options.fail_on, series, scale)
    page = _write_page(options.out or options.folder / NAME, runs, series, scale)
    lines = [] if regressions else [f"{len(runs)} runs: none is worse than the one before it"]
    record: Record = {"runs": len(runs), "regressions": [], "checks": [vars(check) for check in checks], "page": page}
    for one in regressions:
        before, after = (one.series.runs[at].folder for at in (one.prior, one.at))
        lines += ["\n  ".join(one.lines), f"  its questions: exhibit results compare {before} {after}"]
        record["regressions"].append({"run": one.run, "before": one.before, "lines": one.lines})
    lines += [f"{'pass' if check.holds else 'FAIL'}: {check.suite}: {check.name}: {check.seen}" for check in checks]
    print_results(record, "\n".join([*lines, f"page: {page}"]), as_json=options.json)
    return 0 if all(check.holds for check in checks) else GATE


def write_trend(folders: Sequence[Path], out: Path, *, home: str = "") -> Path:
    """Write the page that shows the runs in these folders over time, with the default metrics and bands."""
    runs = open_runs(folders, "the served folders", {})
    return _write_page(out, runs, make_series(runs), read_scale(), home=home)


def _write_page(
    path: Path, runs: Sequence[RunResults], series: Sequence[Series], scale: Scale, *, home: str = ""
) -> Path:
    numbers = {run.name: number for number, run in enumerate(runs, 1)}
    parts = []
    for one in series:
        columns = {run.name: run.means_of(one.dataset) for run in reversed(one.runs[-2:])}
        rows = make_metric_rows(columns, scale, metrics=one.metrics, dataset=one.dataset)
        plots = filter(None, [draw(one, metric, numbers) for metric in one.metrics])
        parts.append({"series": one, "plots": list(plots), "heads": list(columns), "rows": rows})
    regressions = [regression for one in series for regression in one.regressions]
    body = render(
        "index.html.j2",
        home=home,
        runs=[(numbers[run.name], run, _select_settings(run)) for run in reversed(runs)],
        first=runs[0].provenance.started[:10],
        last=runs[-1].provenance.started[:10],
        series=parts,
        regressions=sorted(regressions, key=lambda one: (not one.persists, -numbers[one.run])),
        persisting=sum(one.persists for one in regressions),
        reports={} if home else {run.name: _find_address(run, path.parent) for run in runs},
        result=lambda run: describe_result(run.tables.values()),
        numbers=numbers,
    )
    write_whole(path, format_page("Results over time – Exhibit", body))
    return path


def _select_settings(run: RunResults) -> dict[str, str]:
    settings = run.system_settings
    return {name.removeprefix("config."): settings[name] for name in _SETTINGS if settings.get(name)}


def _find_address(run: RunResults, folder: Path) -> str:
    return quote(Path(os.path.relpath(run.folder / REPORT, folder)).as_posix())


def draw(series: Series, metric: str, numbers: Mapping[str, int]) -> Plot | None:
    """Return a plot of a metric over the runs, with its 95% band and the regressions; None if no run has a value.

    The axis begins at 0, and ends at 100% for a share.
    """
    means = series.list_means(metric)
    known = [(at, mean) for at, mean in enumerate(means) if mean is not None and mean.mean is not None]
    if not known:
        return None
    about, title = describe_metric(metric), format_title(metric)
    ends = [end for _, mean in known for end in (mean.mean or 0.0, *(mean.ci95 or ()))]
    high = 1.0 if about.unit == "share" else 1.1 * max(ends) or 1.0
    worse = {one.at for one in series.regressions if metric in one.falls}
    x = [compute_x(at / (len(means) - 1) if len(means) > 1 else 0.5) for at in range(len(means))]
    points = []
    for at, mean in known:
        name, words = series.runs[at].name, format_value(metric, mean.mean)
        interval = f" ({' to '.join(format_value(metric, end) for end in mean.ci95)})" if mean.ci95 else ""
        label = f"run {numbers[name]}, {name}: {words}{interval}, n {mean.n}"
        points.append(Point(x[at], compute_y((mean.mean or 0.0) / high), label, at in worse))
    intervals = [(x[at], compute_y(one.ci95[1] / high), compute_y(one.ci95[0] / high)) for at, one in known if one.ci95]
    lower = ", lower is better" if about.better == "less" else ""
    step = max(1, math.ceil(len(means) / _MAX_TICKS))
    return Plot(
        title,
        f"{format_value(metric, known[-1][1].mean)} in the newest run{lower}",
        lines=[PlotLine(title, points, format_outline(intervals))],
        ticks=[Point(x[at], BOTTOM, str(numbers[series.runs[at].name])) for at in range(0, len(means), step)],
        sides=[Point(LEFT, compute_y(share), format_value(metric, share * high)) for share in (0, 0.5, 1)],
    )
