"""A metric over the runs as geometry: its line, the band of its interval, and what happened at which run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from exhibit.evaluation.metrics import about
from exhibit.evaluation.statistics import Estimate
from exhibit.evaluation.trend.bands import Bands
from exhibit.evaluation.trend.changes import Regression
from exhibit.evaluation.trend.runs import Series
from exhibit.evaluation.trend.sentences import metric_title, value

LEFT, RIGHT, TOP, BOTTOM = 42, 452, 16, 176
"""The frame inside a picture of 460 by 204."""
_TICKS = 12
"""Numbers of runs below the line, at most: more would touch."""
_NARROWEST = 0.2
"""Of a share's axis: a change of one point must not look like a landslide."""


@dataclass(frozen=True)
class Dot:
    """A run's mean in the picture."""

    x: float
    y: float
    number: int
    label: str
    worse: bool


@dataclass(frozen=True)
class Zone:
    """The part of the axis that a band covers."""

    name: str
    top: float
    height: float


@dataclass(frozen=True)
class Mark:
    """A place on an axis with its words."""

    at: float
    label: str


@dataclass(frozen=True)
class Picture:
    """A metric over the runs of a series."""

    metric: str
    title: str
    note: str
    dots: list[Dot]
    band: list[str]
    """Outlines of the interval, one for each stretch of runs that have one."""
    zones: list[Zone]
    sides: list[Mark]
    ticks: list[Mark]
    breaks: list[Mark]
    """Where the data's version changed."""

    @property
    def path(self) -> str:
        """The line as SVG has it."""
        return " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in self.dots)

    @property
    def summary(self) -> str:
        """The same for those who cannot see it."""
        return f"{self.title}. " + "; ".join(dot.label for dot in self.dots)


def draw(
    series: Series, metric: str, numbers: Mapping[str, int], regressions: Sequence[Regression], bands: Bands | None
) -> Picture | None:
    """Return the picture of a metric; None where fewer than one run has a mean."""
    means = series.means(metric)
    known = [(at, mean) for at, mean in enumerate(means) if mean is not None and mean.mean is not None]
    if not known:
        return None
    low, high = _range([mean for _, mean in known], about(metric).unit == "share")
    across = partial(_across, runs=len(means))
    worse = {regression.at for regression in regressions if any(fall.metric == metric for fall in regression.falls)}

    def up(number: float) -> float:
        return BOTTOM - (min(high, max(low, number)) - low) / (high - low) * (BOTTOM - TOP)

    dots = [
        Dot(
            across(at),
            up(mean.mean or 0.0),
            numbers[series.runs[at].name],
            _label(series, metric, at, mean),
            at in worse,
        )
        for at, mean in known
    ]
    last = known[-1][1]
    note = f"{value(metric, last.mean)} in the newest run" + (
        ", lower is better" if about(metric).better == "less" else ""
    )
    step = max(1, math.ceil(len(means) / _TICKS))
    return Picture(
        metric,
        metric_title(metric),
        note,
        dots,
        _outlines([(across(at), up(mean.ci95[1]), up(mean.ci95[0])) if mean.ci95 else None for at, mean in known]),
        _zones(bands, low, high, up) if bands else [],
        [Mark(up(side), value(metric, side).replace(".0%", "%")) for side in (low, (low + high) / 2, high)],
        [Mark(across(at), str(numbers[series.runs[at].name])) for at in range(0, len(means), step)],
        [Mark(across(at - 0.5), f"the data changed at {series.runs[at].name}") for at in _data_changes(series)],
    )


def _across(at: float, runs: int) -> float:
    """Return where a run stands: evenly, whatever the time between them."""
    inner = RIGHT - LEFT - 16
    return LEFT + 8 + (at * inner / (runs - 1) if runs > 1 else inner / 2)


def _range(means: Sequence[Estimate], share: bool) -> tuple[float, float]:
    ends = [end for mean in means for end in (mean.ci95 or (mean.mean, mean.mean)) if end is not None]
    low, high = min(ends), max(ends)
    if share:
        low, high = math.floor(low * 10 + 1e-9) / 10, math.ceil(high * 10 - 1e-9) / 10
        if high - low < _NARROWEST - 1e-9:
            low, high = max(0.0, min(low, 1 - _NARROWEST)), min(1.0, max(high, _NARROWEST))
            high = min(1.0, low + _NARROWEST) if high - low < _NARROWEST - 1e-9 else high
        return low, high
    space = (high - low or abs(high) or 1.0) * 0.1
    return max(0.0, low - space) if low >= 0 else low - space, high + space


def _outlines(sides: Sequence[tuple[float, float, float] | None]) -> list[str]:
    stretches: list[list[tuple[float, float, float]]] = [[]]
    for side in sides:
        if side is None:
            stretches.append([])
        else:
            stretches[-1].append(side)
    outlines = []
    for stretch in stretches:
        if len(stretch) == 1:  # an interval needs some width to be seen
            [(x, high, low)] = stretch
            stretch = [(x - 3, high, low), (x + 3, high, low)]
        points = [(x, high) for x, high, _ in stretch] + [(x, low) for x, _, low in reversed(stretch)]
        outlines.append(" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    return [outline for outline in outlines if outline]


def _zones(bands: Bands, low: float, high: float, up: Callable[[float], float]) -> list[Zone]:
    zones = []
    for name, bound in (("good", bands.good), ("poor", bands.poor)):
        first, last = (bound.value, high) if bound.sign[0] == ">" else (low, bound.value)
        first, last = max(low, first), min(high, last)
        top, bottom = up(last), up(first)
        if bottom > top or bound.holds(first) or bound.holds(last):
            zones.append(Zone(name, top - 1 if bottom <= top else top, max(2.0, bottom - top)))
    return [zone for zone in zones if TOP - 2 <= zone.top <= BOTTOM]


def _data_changes(series: Series) -> list[int]:
    versions = [run.data_version(series.dataset) for run in series.runs]
    return [at for at in range(1, len(versions)) if versions[at] != versions[at - 1]]


def _label(series: Series, metric: str, at: int, mean: Estimate) -> str:
    ends = f" ({value(metric, mean.ci95[0])} to {value(metric, mean.ci95[1])})" if mean.ci95 else ""
    return f"{series.runs[at].name}: {value(metric, mean.mean)}{ends}, n {mean.n}"
