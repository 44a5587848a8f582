"""The command `results index`: writes a page that shows all runs over time.

It also writes summaries for CI, and exits with code 4 if a condition of `--fail-on` is met, such as a
regression.
"""

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from exhibit.evaluation.bands import Bands, Scale, read_scale
from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.settings import parse_settings
from exhibit.runtime.command import print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import REPORT, Estimate
from exhibit.storage.atomic import write_whole
from exhibit.viewer.page import format_page, render
from exhibit.viewer.plots import BOTTOM, LEFT, TOP, Plot, PlotLine, Point, Zone, compute_x, compute_y, format_outline
from exhibit.viewer.trend import changes, gates, summary

GATE = 4
"""The exit code when a condition of `--fail-on` is met; 1 is an error, 3 too many failed questions."""
_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable with the summary file of GitHub's CI and compatible ones."""


def index(options: argparse.Namespace) -> int:
    """Write the page that shows all runs over time, and the CI files; print the regressions.

    Return 4 if a CI check fails, otherwise 0.
    """
    where = parse_settings({"where": options.where}, where="--where").where
    runs, notes = changes.read_runs(options.folder, where=where)
    for note in notes:
        print_note(note)
    scale = read_scale(options.bands)
    series = changes.make_series(runs)
    metrics = {one.title: changes.choose_watched_metrics(one, options.metrics, every=options.all) for one in series}
    if options.metrics and not any(metrics.values()):
        raise ToolkitError(f"no run has the metrics {', '.join(options.metrics)}; check their names")
    regressions = [
        regression
        for one in series
        for regression in changes.find_regressions(one, metrics[one.title], max_fall=options.max_fall)
    ]
    explained = [summary.explain(regression) for regression in regressions]
    checks = gates.check_gates(options.fail_on, series, regressions, scale)
    page = write_index(options.out or options.folder / NAME, runs, series, metrics, explained, scale)
    told_in = options.summary_markdown or (Path(os.environ[_SUMMARY]) if os.environ.get(_SUMMARY) else None)
    if told_in:
        _append(told_in, summary.format_markdown(series, metrics, explained, checks, scale))
    if options.junit:
        write_whole(options.junit, summary.format_junit(checks))
    lines = [] if explained else [f"{len(runs)} runs: none is worse than the one before it"]
    for one in explained:
        named = ", ".join(str(fallen.id) for fallen in one.questions[:20])
        lines += [summary.write_headline(one), *(f"  {sentence}" for sentence in summary.sentences(one))]
        lines.append(f"  questions: {named}{' …' if len(one.questions) > 20 else ''}")
    lines += [f"{'pass' if check.holds else 'FAIL'}: {check.suite}: {check.name}: {check.told}" for check in checks]
    record = {
        "runs": len(runs),
        "regressions": [
            {
                "title": summary.write_headline(one),
                "why": list(summary.sentences(one)),
                "questions": [fallen.id for fallen in one.questions],
            }
            for one in explained
        ],
        "checks": [{"suite": one.suite, "name": one.name, "holds": one.holds, "told": one.told} for one in checks],
        "page": page,
    }
    print_results(record, "\n".join([*lines, f"page: {page}"]), as_json=options.json)
    return 0 if all(check.holds for check in checks) else GATE


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


NAME = "index.html"
_TELLING = ("target", "preset", "config.embedder", "config.splitter", "llm", "config.llm", "config.k", "limit")
"""The most important settings; the others are shown on demand."""
_TICKS = 10
"""The most run numbers below the axis: more would overlap."""
_NARROWEST = 0.2
"""The smallest range of a share's axis, so that a change of one point does not look large."""


def write_trend(folders: Sequence[Path], out: Path) -> Path:
    """Write the page that shows the runs in these folders over time; return its path.

    The default metrics and quality bands are used.
    """
    runs, _ = changes.open_runs(folders, "the served folders")
    series = changes.make_series(runs)
    metrics = {one.title: changes.choose_watched_metrics(one, [], every=False) for one in series}
    regressions = [regression for one in series for regression in changes.find_regressions(one, metrics[one.title])]
    return write_index(out, runs, series, metrics, [summary.explain(one) for one in regressions], read_scale())


def write_index(
    path: Path,
    runs: Sequence[RunResults],
    series: Sequence[changes.Series],
    metrics: Mapping[str, Sequence[str]],
    explained: Sequence[summary.Explanation],
    scale: Scale,
) -> Path:
    """Write the page that shows all runs over time; return its path.

    The page is self-contained: it needs no server and no other file. It links to the runs' reports.
    """
    numbers = {run.name: number for number, run in enumerate(runs, 1)}
    body = render(
        "index.html.j2",
        runs=[(numbers[run.name], run, _select_settings(run)) for run in reversed(runs)],
        first=runs[0].provenance.started[:10],
        last=runs[-1].provenance.started[:10],
        series=[_describe_series(one, metrics[one.title], numbers, explained, scale) for one in series],
        explained=sorted(explained, key=lambda one: (not one.regression.stands, -numbers[one.regression.run])),
        standing=sum(one.regression.stands for one in explained),
        reports={run.name: address for run in runs if (address := _find_report(run, path.parent))},
        value=summary.format_value,
        metric_title=summary.format_metric_title,
        headline=summary.write_headline,
        sentences=summary.sentences,
        fall_in_words=summary.fall_in_words,
        shown_digest=summary.shorten_digest,
        listed=summary.LISTED,
        numbers=numbers,
    )
    write_whole(path, format_page("Results over time – Exhibit", body, scripts=("build.js", "trend.js")))
    return path


def _select_settings(run: RunResults) -> dict[str, str]:
    settings = run.system_settings
    return {name.removeprefix("config."): settings[name] for name in _TELLING if settings.get(name)}


def _describe_series(
    series: changes.Series,
    metrics: Sequence[str],
    numbers: Mapping[str, int],
    explained: Sequence[summary.Explanation],
    scale: Scale,
) -> dict[str, Any]:
    mine = [one.regression for one in explained if one.regression.series is series]
    plots = [draw(series, metric, numbers, mine, scale.of(series.dataset, metric)) for metric in metrics]
    rows = summary.list_figures(series, metrics, scale)
    return {"series": series, "plots": [plot for plot in plots if plot], "rows": rows}


def _find_report(run: RunResults, folder: Path) -> str:
    """Return the address of a run's report, for a link from a page in `folder`; empty if there is no report.

    The address is relative if the report is below `folder`; otherwise it is a file URL.
    """
    report = run.folder / REPORT
    if not report.is_file():
        return ""
    place, base = report.resolve(), folder.resolve()
    if place.is_relative_to(base):
        return "/".join(quote(part, safe="") for part in place.relative_to(base).parts)
    return place.as_uri()


# ---------------------------------------------------------------- a metric over the runs


def draw(
    series: changes.Series,
    metric: str,
    numbers: Mapping[str, int],
    regressions: Sequence[changes.Regression],
    bands: Bands | None,
) -> Plot | None:
    """Return a plot of a metric over the runs of a series; None if no run has a value.

    The plot shows a line with its 95% band, marks regressions, and marks the runs in which the dataset's files
    changed.
    """
    means = series.list_means(metric)
    known = [(at, mean) for at, mean in enumerate(means) if mean is not None and mean.mean is not None]
    if not known:
        return None
    low, high = _find_range([mean for _, mean in known], describe_metric(metric).unit == "share")
    worse = {one.at for one in regressions if any(fall.metric == metric for fall in one.falls)}

    def place(number: float) -> float:
        return compute_y((number - low) / (high - low))

    def place_run(at: int) -> float:
        return compute_x(at / (len(means) - 1) if len(means) > 1 else 0.5)

    points = [
        Point(place_run(at), place(mean.mean or 0.0), label, numbers[series.runs[at].name], at in worse)
        for at, mean in known
        if (label := _describe_point(series, metric, at, mean))
    ]
    intervals = [(place_run(at), place(one.ci95[1]), place(one.ci95[0])) for at, one in known if one.ci95]
    low_note = ", lower is better" if describe_metric(metric).better == "less" else ""
    step = max(1, math.ceil(len(means) / _TICKS))
    data = [run.data_version(series.dataset) for run in series.runs]
    moved = [at for at in range(1, len(data)) if data[at] != data[at - 1]]
    return Plot(
        summary.format_metric_title(metric),
        f"{summary.format_value(metric, known[-1][1].mean)} in the newest run{low_note}",
        lines=[
            PlotLine(
                summary.format_metric_title(metric), points, [format_outline(_widen(intervals))] if intervals else []
            )
        ],
        ticks=[Point(place_run(at), BOTTOM, str(numbers[series.runs[at].name])) for at in range(0, len(means), step)],
        sides=[Point(LEFT, place(end), summary.format_value(metric, end)) for end in (low, (low + high) / 2, high)],
        zones=_make_zones(bands, low, high, place) if bands else [],
        breaks=[Point(place_run(at), TOP, "the data changed here") for at in moved],
    )


def _find_range(means: Sequence[Estimate], share: bool) -> tuple[float, float]:
    """Return the lower and upper end of the vertical axis of a plot.

    For a share, the ends are the lowest and the highest value, rounded outwards to tenths. For any other
    metric, a tenth of the distance between these two values is added as a margin at both ends.
    """
    ends = [end for mean in means for end in (mean.mean or 0.0, *(mean.ci95 or ()))]
    low, high = min(ends), max(ends)
    if share:
        low, high = math.floor(10 * low + 1e-9) / 10, math.ceil(10 * high - 1e-9) / 10
        low = max(0.0, min(low, high - _NARROWEST))
        return low, max(high, low + _NARROWEST)
    space = (high - low or abs(high) or 1.0) * 0.1
    return (max(0.0, low - space) if low >= 0 else low - space), high + space


def _widen(sides: Sequence[tuple[float, float, float]]) -> Sequence[tuple[float, float, float]]:
    if len(sides) > 1:
        return sides
    [(x, high, low)] = sides  # a single interval gets some width to be visible
    return [(x - 3, high, low), (x + 3, high, low)]


def _make_zones(bands: Bands, low: float, high: float, place: Callable[[float], float]) -> list[Zone]:
    zones = []
    for name, bound in (("good", bands.good), ("poor", bands.poor)):
        first, last = (bound.value, high) if bound.sign[0] == ">" else (low, bound.value)
        top, bottom = place(min(high, last)), place(max(low, first))
        if bottom > top:
            zones.append(Zone(name, top, bottom - top))
    return zones


def _describe_point(series: changes.Series, metric: str, at: int, mean: Estimate) -> str:
    ends = (
        f" ({summary.format_value(metric, mean.ci95[0])} to {summary.format_value(metric, mean.ci95[1])})"
        if mean.ci95
        else ""
    )
    return f"{series.runs[at].name}: {summary.format_value(metric, mean.mean)}{ends}, n {mean.n}"
