"""Draws how sensitive retrieval metrics are to each constant: pictures (one panel per constant) and a table.

A panel shows, for each value of the constant, by how many percentage points each metric changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bench.sensitivity.trials import METRICS, Curve, Value, Way
from exhibit.viewer.plots import PlotLine, Point

WAYS = {"names": Way(False, True), "no-names": Way(False, False), "unnamed": Way(True, True)}
"""The ways of asking; each has a picture."""
WIDTH = 800
_COLUMNS, _TALL, _HEAD = 4, 150, 62
_WIDE = WIDTH // _COLUMNS
_LEFT, _RIGHT, _ABOVE, _BELOW = 30, 12, 24, 24
"""The margins inside a panel."""
_TICKS = (1, 2, 5, 10, 20)
_COLOURS = dict(zip(METRICS, ("#0b6e99", "#c2410c", "#4d7c0f", "#7c3aed"), strict=True))
_STYLE = """
text{font:12px system-ui,sans-serif;fill:#1f2933}.small{font-size:11px;fill:#52606d}.title{font-weight:600}
.grid{stroke:#d9e2ec}.zero{stroke:#7b8794}.own{stroke:#7b8794;stroke-dasharray:3 3}.line{fill:none;stroke-width:1.8}
.dot{stroke-width:1.4}.open{fill:#fff}.ground{fill:#fff}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.small{fill:#9aa5b1}.grid{stroke:#2d3748}.zero,.own{stroke:#9aa5b1}
.ground,.open{fill:#0d1117}.line,.dot{filter:brightness(1.5)}}
"""


def format_number(value: Value) -> str:
    """Return a setting's value as text: three significant digits, or `on` and `off`."""
    return ("on" if value else "off") if isinstance(value, bool) else f"{value:.3g}"


# ---------------------------------------------------------------- pictures


@dataclass(frozen=True)
class Panel:
    """A plot of the SVG picture: the position of its top left corner, and the range of its vertical axis."""

    x: float
    y: float
    low: float
    high: float

    def height(self, change: float) -> float:
        """Return the vertical position at which the plot shows a metric's change."""
        share = (change - self.low) / (self.high - self.low)
        return self.y + _TALL - _BELOW - share * (_TALL - _ABOVE - _BELOW)

    def find_across(self, place: int, of: int) -> float:
        """Return the horizontal position of value number `place` among `of` evenly spaced values."""
        room = _WIDE - _LEFT - _RIGHT
        return self.x + _LEFT + room * (place + 0.5) / of


def draw(curves: Sequence[Curve]) -> str:
    """Return an SVG picture with one panel per curve.

    All curves must have the same `Way`, which is a variant of the questions and of the index.
    """
    title = f"Change from the default in points: {curves[0].way.title}"
    low, high, step = _choose_axis(
        [f.change for curve in curves for _, figures in curve.points for f in figures.values()]
    )
    parts = [f'<rect class="ground" width="{WIDTH}" height="100%"/>']
    parts += [f'<text class="title" x="10" y="20">{escape(title)}</text>', *_draw_legend()]
    for place, curve in enumerate(curves):
        panel = Panel(place % _COLUMNS * _WIDE, _HEAD + place // _COLUMNS * _TALL, low, high)
        parts += _draw_frame(panel, curve, step) + _draw_lines(panel, curve)
    height = _HEAD + math.ceil(len(curves) / _COLUMNS) * _TALL
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


def _choose_axis(changes: Sequence[float]) -> tuple[float, float, int]:
    """Return the axis that all panels share: its lowest and highest value, and the distance of its grid lines."""
    least, most = min(*changes, -1.0), max(*changes, 1.0)
    step = next((step for step in _TICKS if most - least <= 6 * step), _TICKS[-1])
    return step * math.floor(least / step), step * math.ceil(most / step), step


def _draw_legend() -> list[str]:
    parts = []
    for place, (metric, name) in enumerate(METRICS.items()):
        x, colour = 10 + 74 * place, _COLOURS[metric]
        parts.append(f'<line class="line" stroke="{colour}" x1="{x}" x2="{x + 20}" y1="38" y2="38"/>')
        parts.append(f'<text class="small" x="{x + 25}" y="42">{name}</text>')
    parts.append('<circle class="dot" cx="330" cy="38" r="3.2" fill="#52606d" stroke="#52606d"/>')
    parts.append('<text class="small" x="339" y="42">beyond chance (paired 95%)</text>')
    parts.append('<circle class="dot open" cx="522" cy="38" r="3.2" stroke="#52606d"/>')
    parts.append('<text class="small" x="531" y="42">within it</text>')
    parts.append(
        '<line class="own" x1="604" x2="604" y1="31" y2="45"/><text class="small" x="611" y="42">default</text>'
    )
    parts.append('<text class="small" x="672" y="42">of DRM less is better</text>')
    return parts


def _draw_frame(panel: Panel, curve: Curve, step: int) -> list[str]:
    left, right = panel.x + _LEFT, panel.x + _WIDE - _RIGHT
    parts = [f'<text class="title" x="{left}" y="{panel.y + 15}">{escape(curve.setting.shown)}</text>']
    for change in range(int(panel.low), int(panel.high) + 1, step):
        y, look = panel.height(change), "grid" if change else "zero"
        parts.append(f'<line class="{look}" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shown = f"{change:+d}".replace("-", "−") if change else "0"
        parts.append(f'<text class="small" text-anchor="end" x="{left - 4}" y="{y + 4:.1f}">{shown}</text>')
    for place, (value, _) in enumerate(curve.points):
        x = panel.find_across(place, len(curve.points))
        if value == curve.setting.default:
            top, bottom = panel.height(panel.high), panel.height(panel.low)
            parts.append(f'<line class="own" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>')
        y = panel.y + _TALL - _BELOW + 15
        parts.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{y}">{format_number(value)}</text>')
    return parts


def _draw_lines(panel: Panel, curve: Curve) -> list[str]:
    parts = []
    for metric, colour in _COLOURS.items():
        known = [(place, value, f[metric]) for place, (value, f) in enumerate(curve.points) if metric in f]
        points = [
            Point(
                panel.find_across(place, len(curve.points)),
                panel.height(f.change),
                f"{f.mean:.1f} at {format_number(value)}",
            )
            for place, value, f in known
        ]
        line = PlotLine(METRICS[metric], points)
        words = escape(f"{line.name}: " + ", ".join(point.label for point in points))
        parts.append(f'<polyline class="line" stroke="{colour}" points="{line.path}"><title>{words}</title></polyline>')
        for point, (_, value, f) in zip(points, known, strict=True):
            if value != curve.setting.default:
                look = f'fill="{colour}"' if f.beyond_chance else ""
                kind = "dot" if f.beyond_chance else "dot open"
                parts.append(
                    f'<circle class="{kind}" cx="{point.x:.1f}" cy="{point.y:.1f}" r="2.8" stroke="{colour}" {look}/>'
                )
    return parts


# ---------------------------------------------------------------- the page


def write_page_block(curves: Sequence[Curve], *, questions: int) -> str:
    """Return the Markdown block of results that is inserted between the markers of the results page.

    The block has the pictures, a table of the effect of each setting, and a table of every figure.
    """
    by_way = {name: [curve for curve in curves if curve.way == way] for name, way in WAYS.items()}
    pictures = [f"![{some[0].way.title}](images/retrieval-{name}.svg)" for name, some in by_way.items() if some]
    settings = list(dict.fromkeys(curve.setting for curve in curves))
    rows = [
        [f"`{s.shown}`", format_number(s.default), s.why, *_summarise([c for c in curves if c.setting == s])]
        for s in settings
    ]
    lines = [f"{questions} questions. Written by `python -m bench.sensitivity`: run it again, do not edit.", ""]
    lines += ["\n\n".join(pictures), ""]
    lines += [
        *_format_table(["", "default", "why", "tried, nothing beyond chance", "beyond chance, in points"], rows),
        "",
    ]
    lines += ["<details><summary>Every figure: mean of the datasets (the worst of them), per cent</summary>", ""]
    lines += [*_format_table(["", "value", "", *METRICS.values()], _make_rows(curves)), "", "</details>", ""]
    return "\n".join(lines)


def _summarise(curves: Sequence[Curve]) -> list[str]:
    """Return two table cells for one setting.

    The first cell lists the values that change no metric significantly, compared with the setting's default.
    The second cell lists the other values, each with its significant changes of metrics.
    """
    calm = []
    loud = []
    for place, (value, _) in enumerate(curves[0].points):
        if value == curves[0].setting.default:
            continue
        moved = [
            f"{METRICS[metric]} {f.told}{'' if curve.way.filenames else ' without names'}"
            for curve in curves
            for metric, f in curve.points[place][1].items()
            if f.beyond_chance
        ]
        if moved:
            loud.append(f"{format_number(value)}: {', '.join(moved)}")
        else:
            calm.append(format_number(value))
    return [", ".join(calm) or "–", "; ".join(loud) or "–"]


def _make_rows(curves: Sequence[Curve]) -> list[list[str]]:
    rows = []
    for curve in curves:
        for value, figures in curve.points:
            bold = "**" if value == curve.setting.default else ""
            cells = [f"{f.mean:.1f} ({f.worst:.1f})" for f in figures.values()]
            rows.append([f"`{curve.setting.shown}`", f"{bold}{format_number(value)}{bold}", curve.way.title, *cells])
    return rows


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows]]
