"""Draws curves on logarithmic axes as a self-contained SVG file, with light and dark colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from exhibit.viewer.plots import PlotLine, Point

WIDTH, HEIGHT = 700, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 566, 46, 346
"""The frame; the names of the lines are to the right of it."""
_COLOURS = (
    "#0b6e99", "#c2410c", "#4d7c0f", "#7c3aed", "#be123c", "#0f766e",
    "#a16207", "#64748b", "#db2777", "#1d4ed8", "#16a34a", "#92400e",
)  # fmt: skip
_APART = 14
"""The pixels between two names, so that both can be read."""
_STYLE = """
text{font:12px system-ui,sans-serif;fill:#1f2933}.small{font-size:11px;fill:#52606d}
.title{font-size:14px;font-weight:600}.grid{stroke:#d9e2ec;stroke-width:1}.line{fill:none;stroke-width:2}
.limit{stroke:#52606d;stroke-width:1;stroke-dasharray:2 3}.ground{fill:#fff}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.small{fill:#9aa5b1}.grid{stroke:#2d3748}.limit{stroke:#9aa5b1}
.ground{fill:#0d1117}.line,.dot{filter:brightness(1.5)}}
"""


@dataclass(frozen=True)
class Series:
    """A line of a chart: its name, its points, and whether it is dashed, which marks extrapolated values."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart of lines; an optional limit is drawn as a horizontal line."""

    title: str
    across: str
    up: str
    series: Sequence[Series]
    limit: tuple[float, str] | None = None
    linear: bool = False
    """Whether the vertical axis is linear, for shares that are close together."""
    ticks: Sequence[float] = field(default_factory=tuple)


def draw(chart: Chart) -> str:
    """Return the chart as SVG.

    Points with a coordinate of zero or less are left out, because a logarithmic axis cannot show them.
    """
    kept = [Series(s.name, [p for p in s.points if p[0] > 0 and p[1] > 0], s.dashed) for s in chart.series]
    kept = [series for series in kept if series.points]
    xs = [x for series in kept for x, _ in series.points]
    ys = [y for series in kept for _, y in series.points] + ([chart.limit[0]] if chart.limit else [])
    place = _Place(
        _find_span(xs), (math.floor(20 * min(ys)) / 20, max(ys)) if chart.linear else _find_span(ys), chart.linear
    )
    parts = [f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>']
    parts.append(f'<text class="title" x="8" y="20">{escape(chart.title)}</text>')
    parts.append(f'<text class="small" x="8" y="38">{escape(chart.up)}</text>')
    parts.append(
        f'<text class="small" text-anchor="middle" x="{(_LEFT + _RIGHT) / 2:.0f}" y="386">{escape(chart.across)}</text>'
    )
    parts += _draw_grid(place, chart)
    for number, series in enumerate(kept):
        parts += _draw_series(series, place, _COLOURS[number % len(_COLOURS)])
    parts += _draw_names(kept, place)
    body = "\n".join(parts)
    label = escape(f"{chart.title}. {chart.up} by {chart.across}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{label}">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


@dataclass(frozen=True)
class _Place:
    """The mapping from values to positions in the picture, by the ranges of the two axes."""

    across: tuple[float, float]
    up: tuple[float, float]
    linear: bool

    def place_x(self, value: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * _compute_share(math.log10(value), *map(math.log10, self.across))

    def place_y(self, value: float) -> float:
        share = (
            _compute_share(value, *self.up)
            if self.linear
            else _compute_share(math.log10(value), *map(math.log10, self.up))
        )
        return _BOTTOM - (_BOTTOM - _TOP) * share


def _compute_share(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 0.5


def _find_span(values: Sequence[float]) -> tuple[float, float]:
    """Return the two ends of an axis around the values: whole or half powers of ten, such as 10 or 31.6."""
    low, high = math.log10(min(values)), math.log10(max(values))
    return 10 ** (math.floor(2 * low + 0.01) / 2), 10 ** (math.ceil(2 * high - 0.01) / 2)


def _list_decades(low: float, high: float) -> list[float]:
    """Return the powers of ten in a range; in a short range, also twice and five times each power."""
    steps = (1, 2, 5) if high <= 101 * low else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [value for power in powers for step in steps if 0.99 * low <= (value := step * 10.0**power) <= 1.01 * high]


def _draw_grid(place: _Place, chart: Chart) -> list[str]:
    parts = []
    low, high = place.up
    for value in [low + (high - low) * step / 5 for step in range(6)] if place.linear else _list_decades(*place.up):
        y = place.place_y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="small" text-anchor="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{format_short(value)}</text>'
        )
    for value in chart.ticks or _list_decades(*place.across):
        x = place.place_x(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}"/>')
        parts.append(
            f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{_BOTTOM + 18}">{format_short(value)}</text>'
        )
    if chart.limit:
        y = place.place_y(chart.limit[0])
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small" x="{_LEFT + 6}" y="{y - 5:.1f}">{escape(chart.limit[1])}</text>')
    return parts


def _draw_series(series: Series, place: _Place, colour: str) -> list[str]:
    line = PlotLine(
        series.name,
        [
            Point(place.place_x(x), place.place_y(y), f"{format_short(y)} at {format_short(x)}")
            for x, y in series.points
        ],
    )
    dash = ' stroke-dasharray="6 4"' if series.dashed else ""
    parts = [f'<polyline class="line" stroke="{colour}"{dash} points="{line.path}"/>']
    for point in line.points:
        told = escape(f"{line.name}: {point.label}")
        at = f'cx="{point.x:.1f}" cy="{point.y:.1f}"'
        parts.append(f'<circle class="dot" fill="{colour}" {at} r="3"><title>{told}</title></circle>')
    return parts


def _draw_names(kept: Sequence[Series], place: _Place) -> list[str]:
    """Return the SVG of the names beside the lines' ends; names that would overlap are moved apart."""
    ends = sorted((place.place_y(series.points[-1][1]), number) for number, series in enumerate(kept))
    at: list[float] = []
    for wanted, _ in ends:
        at.append(max(wanted, at[-1] + _APART) if at else wanted)
    over = max(0.0, at[-1] - _BOTTOM) if at else 0.0
    parts = []
    for y, (_, number) in zip(at, ends, strict=True):
        series, colour = kept[number], _COLOURS[number % len(_COLOURS)]
        x, up = place.place_x(series.points[-1][0]), y - over
        if (
            abs(x - _RIGHT) > 12 or abs(up - place.place_y(series.points[-1][1])) > 4
        ):  # the name is not beside the line's end
            parts.append(
                f'<line stroke="{colour}" stroke-opacity=".45" x1="{x + 5:.1f}" x2="{_RIGHT + 7}" '
                f'y1="{place.place_y(series.points[-1][1]):.1f}" y2="{up:.1f}"/>'
            )
        parts.append(f'<circle class="dot" fill="{colour}" cx="{_RIGHT + 12}" cy="{up:.1f}" r="4"/>')
        parts.append(f'<text x="{_RIGHT + 20}" y="{up + 4:.1f}">{escape(series.name)}</text>')
    return parts


def format_short(value: float) -> str:
    """Return a number as an axis shows it: 0.01, 5, 300, 10k, 1M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
