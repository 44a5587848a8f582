"""Small plots as geometry; `plots.j2` draws them as SVG."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from exhibit.evaluation.metrics import about, shortened
from exhibit.evaluation.report.frame import BOTTOM, LEFT, RIGHT, TOP, Bar, Plot, PlotLine, Point
from exhibit.evaluation.report.run import Record, RecordedRun
from exhibit.evaluation.report.sureness import confidence_plots
from exhibit.evaluation.report.wording import VERDICTS

_BINS = 14  # bars that the plot has room for
_BARS = 8  # datasets that the plot has room for


def make_plots(run: RecordedRun) -> list[Plot]:
    """Return the plots that the run has values for."""
    plots = [
        over_k(run.summary, ["char_recall", "char_precision"], "Precision and recall", "by passages read (k)"),
        over_k(run.summary, ["document_hit", "drm"], "The right document", "by passages read (k)"),
        by_dataset(run),
        latency(run),
    ]
    return [plot for plot in plots if plot is not None] + confidence_plots(run)


def over_k(summary: Record, families: Sequence[str], title: str, note: str) -> Plot | None:
    """Return a plot of metrics over k, which doubles from step to step and so stands evenly."""
    values = {family: _depths(summary, family) for family in families}
    depths = sorted({k for estimates in values.values() for k in estimates})
    if len(depths) < 2:
        return None
    x = {k: LEFT + index * (RIGHT - LEFT) / (len(depths) - 1) for index, k in enumerate(depths)}
    lines = [_line(family, estimates, x) for family, estimates in values.items() if estimates]
    return Plot(title, note, lines=lines, ticks=[Point(x[k], BOTTOM, str(k)) for k in depths])


def by_dataset(run: RecordedRun) -> Plot | None:
    """Return a bar for each dataset, of the first metric that they have."""
    names = sorted(filter(_plotted, shortened(run.summary)), key=lambda name: not name.startswith("char_recall"))
    for metric in names:
        known = [d for d in run.datasets if _mean(d.summary, metric) is not None][:_BARS]
        if known:
            break
    else:
        return None
    step = min(40, (BOTTOM - TOP) / len(known))
    bars, rows = [], []
    for index, dataset in enumerate(known):
        entry = dataset.summary[metric]
        top = TOP + index * step
        bar = _across(entry["mean"])
        low, high = entry.get("ci95") or (None, None)
        whisker = None if low is None or high is None else (LEFT + _across(low), LEFT + _across(high))
        value = about(metric).in_words(entry["mean"])
        words = f"{dataset.name} {value}%"
        bars.append(Bar(LEFT, top + 15, bar, max(4, step - 22), dataset.name, words, whisker))
        rows.append(Point(LEFT, top + 11, f"{dataset.name}\u2002{value}%"))
    depth = metric.partition("@")[2]
    note = f"{about(metric).title}{f', k = {depth}' if depth else ''}; lines are 95% intervals"
    return Plot("By dataset", note, bars=bars, rows=rows)


def _plotted(name: str) -> bool:
    """Return whether more of a metric is better and it is a share: then a longer bar says what it seems to say."""
    told = about(name)
    return told.unit == "share" and told.better == "more" and told.group in ("Retrieval", "Answers")


def latency(run: RecordedRun) -> Plot | None:
    """Return how many replies took how long."""
    seconds = sorted(run.seconds)
    if len(seconds) < 2:
        return None
    top = seconds[min(len(seconds) - 1, math.ceil(0.99 * len(seconds)) - 1)] or 1e-6
    counts = [0] * _BINS
    for value in seconds:
        counts[min(_BINS - 1, int(value / top * _BINS))] += 1
    wide = (RIGHT - LEFT) / _BINS
    bars = []
    for index, count in enumerate(counts):
        high = count / max(counts) * (BOTTOM - TOP)
        words = f"{count} replies from {_time(index * top / _BINS)} to {_time((index + 1) * top / _BINS)}"
        bars.append(Bar(LEFT + index * wide + 1, BOTTOM - high, wide - 2, high, "", words))
    ticks = [Point(LEFT + share * (RIGHT - LEFT), BOTTOM, _time(share * top)) for share in (0, 0.5, 1)]
    late = seconds[math.ceil(0.95 * len(seconds)) - 1]
    return Plot("Time to reply", f"median {_time(median(seconds))}, 95% under {_time(late)}", bars=bars, ticks=ticks)


def verdict_shares(run: RecordedRun) -> list[dict[str, Any]]:
    """Return how many questions have each verdict, for the run and for each dataset."""
    counted = [(dataset.name, dataset.verdicts) for dataset in run.datasets]
    everything = [("All", sum((verdicts for _, verdicts in counted), Counter[str]()))] if len(counted) > 1 else []
    return [
        {"name": name, "total": verdicts.total(), "parts": _parts(verdicts)}
        for name, verdicts in [*everything, *counted]
        if verdicts
    ]


def _parts(verdicts: Counter[str]) -> list[dict[str, Any]]:
    parts, left = [], 0.0
    for verdict in reversed(VERDICTS):
        if verdicts[verdict]:
            width = 100 * verdicts[verdict] / verdicts.total()
            parts.append({"verdict": verdict, "count": verdicts[verdict], "x": left, "width": width})
            left += width
    return parts


def _line(family: str, estimates: Mapping[int, Record], x: Mapping[int, float]) -> PlotLine:
    points = [
        Point(x[k], _up(e["mean"]), f"{about(family).in_words(e['mean'])}% at k = {k}")
        for k, e in sorted(estimates.items())
    ]
    sides = [
        (k, entry["ci95"]) for k, entry in sorted(estimates.items()) if (entry.get("ci95") or [None])[0] is not None
    ]
    outline = [(x[k], _up(high)) for k, (_, high) in sides] + [(x[k], _up(low)) for k, (low, _) in reversed(sides)]
    return PlotLine(about(family).title, points, " ".join(f"{a:.1f},{b:.1f}" for a, b in outline))


def _depths(summary: Record, family: str) -> dict[int, Record]:
    return {
        int(name.partition("@")[2]): entry
        for name, entry in summary.items()
        if name.startswith(f"{family}@") and entry["mean"] is not None
    }


def _mean(summary: Record, metric: str) -> Any:
    return (summary.get(metric) or {}).get("mean")


def _up(value: float) -> float:
    return BOTTOM - min(1.0, max(0.0, value)) * (BOTTOM - TOP)


def _across(value: float) -> float:
    return min(1.0, max(0.0, value)) * (RIGHT - LEFT)


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
