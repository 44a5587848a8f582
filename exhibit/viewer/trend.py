"""Runs over time: `exhibit results index` names the runs that are worse than an earlier one, on a page and for CI.

Each run is compared with the last one before it that was asked the same questions, by the rules of `results diff`; the
newest run is also compared with the first, because a slow decline has no large step.
"""

import argparse
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from exhibit.engine import track
from exhibit.evaluation import compare
from exhibit.evaluation.bands import Bands, Bound, Scale, read_scale
from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.statistics import EQUAL, Difference, change_of, count_overlap, match_questions
from exhibit.runtime.command import print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import CONFIG, REPORT, SUMMARY, Estimate
from exhibit.storage.atomic import write_whole
from exhibit.viewer.page import Record, format_page, render
from exhibit.viewer.plots import BOTTOM, LEFT, TOP, Plot, PlotLine, Point, compute_x, compute_y, format_outline

NAME = "index.html"
GATE = 4
"""The exit code when a condition of `--fail-on` is met; 1 is an error, 3 too many failed questions."""
REGRESSION, BAND = "regression", "band"
MAX_LISTED = 40  # questions of a regression
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
    """The dataset, with whatever distinguishes it from the other series."""
    runs: Sequence[RunResults]
    metrics: Sequence[str] = ()
    """The metrics that are followed."""
    regressions: Sequence["Regression"] = ()

    @property
    def tables(self) -> list[Table]:
        """The dataset's table of scores in each run."""
        return [run.tables[self.dataset] for run in self.runs]

    def list_means(self, metric: str) -> list[Estimate | None]:
        """Return a metric's mean in each run."""
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
        """The run's name."""
        return self.series.runs[self.at].name

    @property
    def before(self) -> str:
        """The name of the earlier run with which the run is compared."""
        return self.series.runs[self.prior].name

    @property
    def metric(self) -> str:
        """The metric by which the questions fell; empty where they only failed."""
        return next(iter(self.falls), "")

    @property
    def headline(self) -> str:
        """The sentence that names the worse run, the run before it, and the dataset."""
        how = self.describe_falls()[0] if self.falls else f"{self.more_failed} more questions failed"
        return f"{self.run} is worse than {self.before} on {self.series.title}: {how}"

    def describe_falls(self) -> list[str]:
        """Return for each metric how much it got worse."""
        lines = []
        for metric, step in self.falls.items():
            about, old, new = (
                describe_metric(metric),
                format_value(metric, step.first),
                format_value(metric, step.second),
            )
            ends = f", 95% interval {' to '.join(map(about.change_in_words, step.ci95))}" if step.ci95 else ""
            verb = "fell" if (step.mean or 0) < 0 else "rose"
            change = about.change_in_words(step.mean or 0.0)
            lines.append(f"{format_title(metric)} {verb} from {old} to {new} ({change}{ends})")
        return lines

    @cached_property
    def questions(self) -> list[Record]:
        """The questions that newly failed or got worse by the first of the metrics, the worst first."""
        before, after = (compare.with_outcomes(self.series.tables[at]) for at in (self.prior, self.at))
        old, new = (table.values.get(self.metric) or [None] * len(table.ids) for table in (before, after))
        rows = {row.id: row for row in self.series.runs[self.at].rows_of(self.series.dataset)}
        worse: list[tuple[float, Record]] = []
        for number, at in match_questions(before, after):
            was, value = old[number], new[at]
            if after.has_failed(at) and not before.has_failed(number):
                fall, value = math.inf, None
            elif was is None or value is None or abs(value - was) <= EQUAL:
                continue
            elif describe_metric(self.metric).improves(value - was) is False:
                fall = abs(value - was)
            else:
                continue
            row = rows[after.ids[at]]
            fields = {"id": row.id, "question": row.question, "document": row.filename or "", "error": row.reply.error}
            outcomes = str(before.outcomes[number]), str(after.outcomes[at])
            worse.append((fall, {**fields, "before": was, "after": value, "outcomes": outcomes}))
        return [fields for _, fields in sorted(worse, key=lambda pair: -pair[0])]

    @cached_property
    def changed(self) -> list[tuple[str, str, str]]:
        """The settings, commit, data and machine that differ between the two runs: name, old and new value."""
        dataset, values = self.series.dataset, list[dict[str, Any]]()
        for run in (self.series.runs[self.prior], self.series.runs[self.at]):
            machine = run.provenance.machine.model_dump() if run.provenance.machine else {}
            fields: dict[str, Any] = {**dict(sorted(run.system_settings.items())), "commit": run.commit}
            fields |= {"version of Exhibit": run.config.version, "data": run.data_version(dataset)}
            fields |= {"questions": len(run.tables[dataset].ids)}
            values.append(fields | {f"machine: {name}": value for name, value in sorted(machine.items())})
        old, new = values
        pairs = {name: (shorten(str(old.get(name) or "–")), shorten(str(new.get(name) or "–"))) for name in old | new}
        return [(name, was, now) for name, (was, now) in pairs.items() if was != now]

    @property
    def sentences(self) -> list[str]:
        """How many questions got worse, what changed, and whether the regression persists."""
        lines = [f"{len(self.questions)} of {len(self.series.tables[self.at].ids)} questions got worse."]
        if self.falls and self.more_failed:
            lines.append(f"{self.more_failed} more questions failed than before.")
        if others := [format_title(metric) for metric in list(self.falls)[1:]]:
            lines.append(f"Also worse: {'; '.join(others)}.")
        shown = [f"{name} from {old[:60]} to {new[:60]}" for name, old, new in self.changed[:3]]
        more = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
        same = "No recorded property was changed: settings, commit, data and machine are the same."
        lines.append(f"Changed since the run before: {', '.join(shown)}{more}." if shown else same)
        return [*lines, "It persists in the newest run." if self.persists else "It was corrected since."]


@dataclass(frozen=True)
class Check:
    """A condition of `--fail-on` on one series of runs: its name, the observed values, and whether it holds."""

    suite: str
    name: str
    seen: str
    holds: bool


def format_title(metric: str) -> str:
    """Return a metric's name in words, with its cutoff."""
    depth = metric.partition("@")[2]
    return describe_metric(metric).title + (f", k = {depth}" if depth else "")


def format_value(metric: str, number: float | None) -> str:
    """Return a metric's value with its unit; a share is given in per cent, and an unknown value as `–`."""
    return "–" if number is None else f"{describe_metric(metric).in_words(number)}{describe_metric(metric).unit_behind}"


def shorten(text: str) -> str:
    """Return a commit or a digest cut to 8 characters; a final `+`, which marks changed files, is kept."""
    digest = re.fullmatch(r"([0-9a-f]{8})[0-9a-f]{32,}(\+?)", text)
    return digest[1] + digest[2] if digest else text


# ---------------------------------------------------------------- runs and series


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
            settings, _ = run.settings, (run.provenance, run.means, run.system_settings)
        except (ToolkitError, OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            damage = f"{folder}: damaged ({type(error).__name__}: {error})"
            print_note(f"{error if isinstance(error, ToolkitError) else damage}; skipped")
            continue
        if all((settings.get(name) or settings.get(f"config.{name}")) in values for name, values in where.items()):
            runs.append(run)
    if not runs:
        raise ToolkitError(f"{source}: no finished run{' with these settings' if where else ''}; evaluate first")
    names = Counter(run.name for run in runs)
    for run in runs:
        if names[run.name] > 1:
            run.name = str(run.folder.resolve())
    return sorted(runs, key=lambda run: (run.provenance.started, run.name))


def make_series(
    runs: Sequence[RunResults], metrics: Sequence[str] = (), *, every: bool = False, max_fall: float = compare.MAX_FALL
) -> list[Series]:
    """Group runs into series of the same dataset, system, parity, judge and grouping, and find their regressions.

    The series follow `metrics`; if none are given, a short selection or, with `every`, all that can get worse.
    """
    kinds: dict[tuple[str, ...], list[RunResults]] = {}
    for run in runs:
        for dataset in run.tables:
            measured, groups = run.config.measured, run.config.datasets[dataset].groups
            key = (dataset, run.system, measured.parity or "", measured.judge or "", groups or "")
            kinds.setdefault(key, []).append(run)
    names = ("", "", "parity ", "judged by ", "means by ")
    series = []
    for kind, alike in sorted(kinds.items()):
        # properties that all kinds of a dataset share are not part of the title
        others = [other for other in kinds if other[0] == kind[0]]
        own = [f"{names[n]}{part or 'none'}" for n, part in enumerate(kind) if n and {o[n] for o in others} != {part}]
        one = Series(kind[0], ", ".join([kind[0], *own]), alike)
        known = dict.fromkeys(name for run in alike for name in run.means_of(kind[0]))
        one.metrics = _choose_metrics(list(known), metrics, every)
        one.regressions = find_regressions(one, metrics, max_fall=max_fall)
        series.append(one)
    return series


def _choose_metrics(known: Sequence[str], requested: Sequence[str], every: bool) -> list[str]:
    if requested:
        return [name for name in known if {name, name.partition("@")[0]} & set(requested)]
    chosen = list(known) if every else shorten_metrics(known)
    return [name for name in chosen if describe_metric(name).better != "neither" and describe_metric(name).gate]


# ---------------------------------------------------------------- regressions


def find_regressions(
    series: Series, requested: Sequence[str] = (), *, max_fall: float = compare.MAX_FALL
) -> list[Regression]:
    """Return the runs in which metrics or outcomes got worse, or more questions failed, oldest first.

    `requested` are the metrics that the user named; `max_fall` is the largest fall that is allowed if there are too
    few documents for a confidence interval.
    """
    known = [[name for name in series.metrics if name in table.values] for table in series.tables]
    tables = [
        compare.with_outcomes(replace(table, values={name: table.values[name] for name in names}, repeats=()))
        for table, names in zip(series.tables, known, strict=True)
    ]
    last = len(tables) - 1

    def find_falls(prior: int, at: int, named: Sequence[str]) -> dict[str, Difference]:
        differences = compare.compare_runs([tables[prior]], [tables[at]])
        worse = {name: differences[name] for name in compare.find_regressions(differences, named, max_fall=max_fall)}
        return dict(sorted(worse.items(), key=lambda pair: -compare.measure_fall(*pair)))

    def count_failed(prior: int, at: int) -> int:
        shared = count_overlap([tables[prior]], [tables[at]])
        return max(0, shared.failed_after - shared.failed_before)

    def check(prior: int, at: int) -> Regression | None:
        falls, failed = find_falls(prior, at, requested), count_failed(prior, at)
        others = [(before, after) for after, before in priors.items() if after != at]
        falls = {name: step for name, step in falls.items() if step.lost or _is_unusual(name, step, tables, others)}
        if not falls and not failed:
            return None
        persists = at == last or bool(falls and find_falls(prior, last, list(falls)))
        return Regression(series, at, prior, falls, failed, persists or bool(failed and count_failed(prior, last)))

    priors: dict[int, int] = {}
    for at in range(1, len(tables)):
        alike = [prior for prior in range(at) if _are_alike(tables[prior], tables[at])]
        priors |= {at: alike[-1]} if alike else {}
    regressions = [found for at, prior in priors.items() if (found := check(prior, at))]
    slow = len(priors) > 1 and priors.get(last) != 0 and not any(found.persists for found in regressions)
    newest = check(0, last) if slow and _are_alike(tables[0], tables[last]) else None
    return [*regressions, newest] if newest else regressions


def _is_unusual(metric: str, step: Difference, tables: Sequence[Table], others: Sequence[tuple[int, int]]) -> bool:
    """Return whether a change is larger than the usual steps of the series, which vary without any cause."""
    if len(others) < _MIN_STEPS:
        return True
    steps = (change_of(tables[before], tables[after], metric) for before, after in others)
    return abs(step.mean or 0.0) > _LARGE * median(map(abs, steps))


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
        found = [one for one in series.regressions if one.persists]
        seen = "; ".join(f"{one.run} is worse than {one.before}, and the newest run still is" for one in found)
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
    """Write the page that shows all runs over time, and the CI files; return 4 if a CI check fails, otherwise 0."""
    where = parse_settings({"where": options.where}, where="--where").where
    if not options.folder.is_dir():
        raise ToolkitError(f"{options.folder}: no such folder; evaluate_rag.py writes its runs to results/")
    folders = sorted(path.parent for path in options.folder.glob(f"*/{CONFIG}"))
    runs, scale = open_runs(folders, str(options.folder), where), read_scale(options.bands)
    series = make_series(runs, options.metrics, every=options.all, max_fall=options.max_fall)
    if options.metrics and not any(one.metrics for one in series):
        raise ToolkitError(f"no run has the metrics {', '.join(options.metrics)}; check their names")
    regressions = [regression for one in series for regression in one.regressions]
    checks = check_gates(options.fail_on, series, scale)
    page = _write_page(options.out or options.folder / NAME, runs, series, scale)
    github = os.environ.get("GITHUB_STEP_SUMMARY")  # also set by compatible CI
    if summary := options.summary_markdown or (Path(github) if github else None):
        summary.parent.mkdir(parents=True, exist_ok=True)
        figures = [(one, _list_figures(one, scale)) for one in series]
        with summary.open("a", encoding="utf-8") as file:
            file.write(_render("summary.md.j2", series=figures, regressions=regressions, checks=checks))
    if options.junit:
        write_whole(options.junit, render("junit.xml.j2", checks=checks))
    lines = [] if regressions else [f"{len(runs)} runs: none is worse than the one before it"]
    record: Record = {"runs": len(runs), "regressions": [], "checks": [vars(check) for check in checks], "page": page}
    for one in regressions:
        ids = [question["id"] for question in one.questions]
        lines += [one.headline, *(f"  {sentence}" for sentence in one.sentences)]
        lines.append(f"  questions: {', '.join(map(str, ids[:20]))}{' …' if len(ids) > 20 else ''}")
        record["regressions"].append({"title": one.headline, "why": one.sentences, "questions": ids})
    lines += [f"{'pass' if check.holds else 'FAIL'}: {check.suite}: {check.name}: {check.seen}" for check in checks]
    print_results(record, "\n".join([*lines, f"page: {page}"]), as_json=options.json)
    return 0 if all(check.holds for check in checks) else GATE


def write_trend(folders: Sequence[Path], out: Path, *, home: str = "") -> Path:
    """Write the page that shows the runs in these folders over time, with the default metrics and bands."""
    runs = open_runs(folders, "the served folders", {})
    return _write_page(out, runs, make_series(runs), read_scale(), home=home)


def _render(template: str, **values: Any) -> Markup:
    return render(template, value=format_value, metric_title=format_title, **values)


def _list_figures(series: Series, scale: Scale) -> list[Record]:
    """Return the newest mean of each metric with its band, the mean of the previous run, and the best of all runs."""
    rows: list[Record] = []
    for metric in series.metrics:
        newest = series.list_means(metric)[-1]
        if newest is None or newest.mean is None:
            continue
        known = [mean.mean for mean in series.list_means(metric) if mean and mean.mean is not None]
        bands = scale.of(series.dataset, metric)
        best = min(known) if describe_metric(metric).better == "less" else max(known)
        fields: Record = {"metric": metric, "newest": newest, "before": known[-2] if len(known) > 1 else None}
        fields |= {"best": best, "band": bands.band(newest.mean) if bands else ""}
        rows.append(fields | {"bounds": f"good {bands.good}, poor {bands.poor}" if bands else ""})
    return rows


def _write_page(
    path: Path, runs: Sequence[RunResults], series: Sequence[Series], scale: Scale, *, home: str = ""
) -> Path:
    numbers = {run.name: number for number, run in enumerate(runs, 1)}
    parts = []
    for one in series:
        plots = [draw(one, metric, numbers, scale.of(one.dataset, metric)) for metric in one.metrics]
        parts.append({"series": one, "plots": [plot for plot in plots if plot], "rows": _list_figures(one, scale)})
    found = [regression for one in series for regression in one.regressions]
    body = _render(
        "index.html.j2",
        home=home,
        runs=[(numbers[run.name], run, _select_settings(run)) for run in reversed(runs)],
        first=runs[0].provenance.started[:10],
        last=runs[-1].provenance.started[:10],
        series=parts,
        regressions=sorted(found, key=lambda one: (not one.persists, -numbers[one.run])),
        persisting=sum(one.persists for one in found),
        reports={run.name: address for run in runs if (address := _find_report(run, path.parent))},
        result=lambda run: describe_result(run.tables.values()),
        shorten=shorten,
        listed=MAX_LISTED,
        numbers=numbers,
    )
    write_whole(path, format_page("Results over time – Exhibit", body))
    return path


def _select_settings(run: RunResults) -> dict[str, str]:
    settings = run.system_settings
    return {name.removeprefix("config."): settings[name] for name in _SETTINGS if settings.get(name)}


def _find_report(run: RunResults, folder: Path) -> str:
    """Return the address of a run's report: relative if it is below `folder`, otherwise a file URL; empty if none."""
    report = (run.folder / REPORT).resolve()
    if not report.is_file():
        return ""
    if report.is_relative_to(folder.resolve()):
        return quote(report.relative_to(folder.resolve()).as_posix())
    return report.as_uri()


def draw(series: Series, metric: str, numbers: Mapping[str, int], bands: Bands | None) -> Plot | None:
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
    versions = [run.data_version(series.dataset) for run in series.runs]
    moved = [at for at in range(1, len(versions)) if versions[at] != versions[at - 1]]
    lower = ", lower is better" if about.better == "less" else ""
    step = max(1, math.ceil(len(means) / _MAX_TICKS))
    return Plot(
        title,
        f"{format_value(metric, known[-1][1].mean)} in the newest run{lower}",
        lines=[PlotLine(title, points, format_outline(intervals))],
        ticks=[Point(x[at], BOTTOM, str(numbers[series.runs[at].name])) for at in range(0, len(means), step)],
        sides=[Point(LEFT, compute_y(share), format_value(metric, share * high)) for share in (0, 0.5, 1)],
        zones=list(_make_zones(bands, high)) if bands else [],
        breaks=[Point(x[at], TOP, "the data changed here") for at in moved],
    )


def _make_zones(bands: Bands, high: float) -> Iterator[tuple[str, float, float]]:
    for name, bound in (("good", bands.good), ("poor", bands.poor)):
        first, last = (bound.value, high) if bound.sign[0] == ">" else (0.0, bound.value)
        top, bottom = compute_y(last / high), compute_y(first / high)
        if bottom > top:
            yield name, top, bottom - top
