"""Compute the geometry of small plots; `plots.j2` draws them as SVG."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.runs import RunResults
from exhibit.schemas.run import Estimate, Means
from exhibit.viewer.matching import OUTCOMES

WIDTH, HEIGHT = 340, 210  # of a plot, in pixels: three fit side by side
LEFT, RIGHT, TOP, BOTTOM = 34, 330, 14, 176
"""The edges of the frame inside the picture."""
_BINS = 14  # bars that fit into the plot
_BARS = 8  # datasets that fit into the plot
_LINES = 2
"""The number of lines of a plot: there are two line colours."""
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # marks of an axis


@dataclass(frozen=True)
class Point:
    """A point in the picture, with its description."""

    x: float
    y: float
    label: str
    link: int | None = None
    """The number of the run that it links to."""
    worse: bool = False


@dataclass(frozen=True)
class PlotLine:
    """A line through points; `bands` are the outlines of the areas that show the line's confidence intervals."""

    name: str
    points: list[Point]
    bands: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The points as `x,y x,y …`, for the `points` attribute of an SVG polyline."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class Bar:
    """A horizontal or vertical bar, with a whisker if its value has a confidence interval."""

    x: float
    y: float
    width: float
    height: float
    name: str
    label: str
    whisker: tuple[float, float] | None = None


@dataclass(frozen=True)
class Zone:
    """The vertical range of a plot that a quality band, such as `good`, covers."""

    name: str
    top: float
    height: float


def make_percent_ticks() -> list[Point]:
    """Return the tick marks of a vertical axis for shares: 0, 25, 50, 75 and 100 per cent."""
    return [Point(LEFT, compute_y(share), f"{100 * share:.0f}") for share in _QUARTERS]


@dataclass(frozen=True)
class Plot:
    """A picture of lines or bars."""

    title: str
    note: str
    lines: list[PlotLine] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    ticks: list[Point] = field(default_factory=list)
    rows: list[Point] = field(default_factory=list)
    sides: list[Point] = field(default_factory=list)
    """The marks of the left axis."""
    zones: list[Zone] = field(default_factory=list)
    breaks: list[Point] = field(default_factory=list)
    """The positions where the measured system changed."""

    @property
    def summary(self) -> str:
        """The plot's content in words, for screen readers."""
        values = [f"{line.name}: " + ", ".join(point.label for point in line.points) for line in self.lines]
        return f"{self.title}. " + "; ".join(values or [bar.label for bar in self.bars])


def compute_x(share: float) -> float:
    """Return the x coordinate of a share (0 to 1) inside the plot's frame, in pixels."""
    return LEFT + min(1.0, max(0.0, share)) * (RIGHT - LEFT)


def compute_y(share: float) -> float:
    """Return the y coordinate of a share (0 to 1) inside the plot's frame, in pixels."""
    return BOTTOM - min(1.0, max(0.0, share)) * (BOTTOM - TOP)


def format_outline(sides: Sequence[tuple[float, float, float]]) -> str:
    """Return the outline of a confidence band as the `points` of an SVG polygon.

    `sides` contains a triple of x, upper y and lower y for each point of the line.
    """
    points = [(x, high) for x, high, _ in sides] + [(x, low) for x, _, low in reversed(sides)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


# ---------------------------------------------------------------- the plots of a run


def make_plots(run: RunResults, seconds: Sequence[float]) -> list[Plot]:
    """Return the plots for which the run has values."""
    plots = [
        plot_over_k(run.means, ["char_recall", "char_precision"], "Precision and recall", "by passages read (k)"),
        plot_over_k(run.means, ["document_hit", "drm"], "The right document", "by passages read (k)"),
        plot_by_dataset(run),
        plot_latency(seconds),
        *plot_confidence(run),
    ]
    return [plot for plot in plots if plot is not None]


def plot_over_k(means: Means, families: Sequence[str], title: str, note: str) -> Plot | None:
    """Return a plot of metrics over the cutoff k; None if there are fewer than two cutoffs.

    The cutoffs have equal distances on the x axis, whatever their values are.
    """
    values = {family: _group_depths(means, family) for family in families}
    depths = sorted({k for estimates in values.values() for k in estimates})
    if len(depths) < 2:
        return None
    x = {k: compute_x(index / (len(depths) - 1)) for index, k in enumerate(depths)}
    lines = [_draw_depths(family, estimates, x) for family, estimates in values.items() if estimates]
    return Plot(
        title, note, lines=lines, ticks=[Point(x[k], BOTTOM, str(k)) for k in depths], sides=make_percent_ticks()
    )


def _group_depths(means: Means, family: str) -> dict[int, Estimate]:
    depths = {int(name.partition("@")[2]): one for name, one in means.items() if name.startswith(f"{family}@")}
    return {k: one for k, one in sorted(depths.items()) if one.mean is not None}


def _draw_depths(family: str, estimates: Mapping[int, Estimate], x: Mapping[int, float]) -> PlotLine:
    described = describe_metric(family)
    points = [
        Point(x[k], compute_y(e.mean or 0.0), f"{described.in_words(e.mean)}% at k = {k}") for k, e in estimates.items()
    ]
    sides = [(x[k], compute_y(e.ci95[1]), compute_y(e.ci95[0])) for k, e in estimates.items() if e.ci95]
    return PlotLine(described.title, points, [format_outline(sides)] if sides else [])


def plot_by_dataset(run: RunResults) -> Plot | None:
    """Return a bar plot of one metric, with a bar for each dataset; None if no metric can be plotted.

    The metric is `char_recall` if it has a value, otherwise the first metric that is a share and has a value.
    """
    names = sorted(filter(_is_plotted, shorten_metrics(run.means)), key=lambda name: not name.startswith("char_recall"))
    each = {name: run.means_of(name) for name in run.datasets}
    for metric in names:
        known = {name: m[metric] for name, m in each.items() if metric in m and m[metric].mean is not None}
        if known:
            break
    else:
        return None
    known = dict(list(known.items())[:_BARS])
    step = min(40, (BOTTOM - TOP) / len(known))
    bars, rows = [], []
    for index, (name, one) in enumerate(known.items()):
        top = TOP + index * step
        whisker = (compute_x(one.ci95[0]), compute_x(one.ci95[1])) if one.ci95 else None
        words = f"{name}\u2002{describe_metric(metric).in_words(one.mean)}%"
        bars.append(Bar(LEFT, top + 15, compute_x(one.mean or 0.0) - LEFT, max(4, step - 22), name, words, whisker))
        rows.append(Point(LEFT, top + 11, words))
    depth = metric.partition("@")[2]
    note = f"{describe_metric(metric).title}{f', k = {depth}' if depth else ''}; lines are 95% intervals"
    return Plot("By benchmark", note, bars=bars, rows=rows)


def _is_plotted(name: str) -> bool:
    """Return whether bars can show a metric: a retrieval or answer metric that is a share, where higher is better."""
    described = describe_metric(name)
    return described.unit == "share" and described.better == "more" and described.group in ("Retrieval", "Answers")


def plot_latency(times: Sequence[float]) -> Plot | None:
    """Return a histogram of the seconds that replies took."""
    seconds = sorted(times)
    if len(seconds) < 2:
        return None
    top = seconds[min(len(seconds) - 1, math.ceil(0.99 * len(seconds)) - 1)] or 1e-6
    counts = Counter(min(_BINS - 1, int(value / top * _BINS)) for value in seconds)
    wide = (RIGHT - LEFT) / _BINS
    bars = []
    for index in range(_BINS):
        high = BOTTOM - compute_y(counts[index] / max(counts.values()))
        ends = [_format_time(edge * top / _BINS) for edge in (index, index + 1)]
        words = f"{counts[index]} replies from {ends[0]} to {ends[1]}"
        bars.append(Bar(LEFT + index * wide + 1, BOTTOM - high, wide - 2, high, "", words))
    ticks = [Point(compute_x(share), BOTTOM, _format_time(share * top)) for share in (0, 0.5, 1)]
    late = seconds[math.ceil(0.95 * len(seconds)) - 1]
    return Plot(
        "Time to reply",
        f"median {_format_time(median(seconds))}, 95% under {_format_time(late)}",
        bars=bars,
        ticks=ticks,
    )


def _format_time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def plot_confidence(run: RunResults) -> list[Plot]:
    """Return a calibration plot and a risk-coverage plot; empty if no dataset has an AUROC of the confidence."""
    sure = {name: run.confidence(name) for name in run.datasets}
    # no plot where every question has an answer, or none has
    known = {name: curve for name, curve in sure.items() if curve.auroc is not None}
    if not known:
        return []
    known = dict(list(known.items())[:_LINES])
    areas = ", ".join(f"{name} {curve.auroc:.2f}" for name, curve in known.items())
    right, saved = [], []
    for name, curve in known.items():
        words = "{:.0f}% answerable at {:.0f}% confidence"
        right.append(_draw_curve(name, curve.calibration, "confidence", "answerable", words))
        words = "{:.0f}% without an answer among the surest {:.0f}%"
        saved.append(_draw_curve(name, curve.risk_at_coverage, "coverage", "risk", words))
    ticks = [Point(compute_x(share), BOTTOM, f"{100 * share:.0f}") for share in _QUARTERS]
    note = f"share answerable, by confidence; AUROC {areas}"
    return [
        Plot("Is the confidence right?", note, lines=right, ticks=ticks, sides=make_percent_ticks()),
        Plot(
            "What refusing the unsure saves", "questions without an answer, by share kept", lines=saved, ticks=ticks,
            sides=make_percent_ticks(),
        ),
    ]  # fmt: skip


def _draw_curve(name: str, rows: Sequence[Mapping[str, float]], x: str, y: str, words: str) -> PlotLine:
    points = [Point(compute_x(row[x]), compute_y(row[y]), words.format(100 * row[y], 100 * row[x])) for row in rows]
    return PlotLine(name, points)


# ---------------------------------------------------------------- shares


def stack_shares(
    counted: Mapping[str, Counter[str]], order: Sequence[str] = tuple(reversed(OUTCOMES))
) -> list[dict[str, Any]]:
    """Return the data of a stacked bar for each name in `counted`: the name, the total and the segments.

    A segment shows the number of questions with one outcome; its position and width are in per cent of the
    total.
    """
    return [
        {"name": name, "total": counts.total(), "parts": _make_parts(counts, order)}
        for name, counts in counted.items()
        if counts
    ]


def _make_parts(counts: Counter[str], order: Sequence[str]) -> list[dict[str, Any]]:
    parts, left = [], 0.0
    for kind in order:
        if counts[kind]:
            width = 100 * counts[kind] / counts.total()
            parts.append({"kind": kind, "count": counts[kind], "x": left, "width": width})
            left += width
    return parts
