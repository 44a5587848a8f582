"""Draws metrics against k as one SVG file: one row of panels per metric, one panel in it per dataset.

Curves of this project are solid; curves from published papers are dashed. The SVG file is self-contained
and has colours for light and dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bench.legalbenchrag.names import DATASETS, METRICS
from bench.legalbenchrag.papers import Paper
from bench.legalbenchrag.runs import Measured
from exhibit.evaluation.metrics import KS
from exhibit.viewer.plots import PlotLine, Point

WIDTH, PANEL, TALL = 960, 176, 168
_LEFT, _TOP, _GAP = 34, 26, 18
_STEPS = (1, 2, 5, 10, 20, 25, 50)
_COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7c3aed", "#be123c", "#0f766e", "#a16207", "#334155")
_DASHES = ("5 3", "2 3", "8 3 2 3", "1 4")
_STYLE = """
text{font:11px system-ui,sans-serif;fill:#1f2933}.small{font-size:10px;fill:#52606d}.title{font-weight:600}
.grid{stroke:#d9e2ec;stroke-width:1}.line{fill:none;stroke-width:1.8}.theirs{stroke:#52606d;stroke-width:1.3}
.band{stroke:none;opacity:.13}rect{fill:#fff}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.small{fill:#9aa5b1}.grid{stroke:#3e4c59}.theirs{stroke:#9aa5b1}
rect{fill:#0d1117}.line{filter:brightness(1.45)}}
"""


@dataclass(frozen=True)
class Panel:
    """A plot of the SVG picture: the position of its top left corner, and the highest value of its vertical axis."""

    x: float
    y: float
    top: float

    def place_point(self, k: int, value: float, label: str) -> Point:
        """Return the position of a value in the picture; the axis for k is logarithmic."""
        across = (PANEL - _LEFT) * math.log2(k) / math.log2(KS[-1])
        return Point(self.x + _LEFT + across, self.y + TALL - min(value / self.top, 1.0) * (TALL - _TOP), label)


def draw(runs: Sequence[Measured], papers: Sequence[Paper], *, title: str) -> str:
    """Return an SVG image with a plot for each metric and dataset, which shows the runs and the papers' figures.

    Metrics for which no run has a value are left out.
    """
    head = 26 + 16 * math.ceil((len(runs) + len(_list_their_methods(papers))) / 3)
    rows = [metric for metric in METRICS if any(run.figure(metric, "ALL", KS[0]) for run in runs)]
    parts = [f'<rect width="{WIDTH}" height="100%"/>', f'<text x="8" y="18" class="title">{escape(title)}</text>']
    parts += _draw_legend(runs, papers)
    for number, metric in enumerate(rows):
        y = head + number * (TALL + _GAP + 18)
        top = _find_highest(runs, papers, metric)
        for column, dataset in enumerate(DATASETS):
            panel = Panel(8 + column * (PANEL + _GAP - 4), y, top)
            parts += _draw_frame(panel, f"{METRICS[metric]}, {DATASETS[dataset]}")
            parts += _draw_lines(panel, runs, papers, metric, dataset)
    height = head + len(rows) * (TALL + _GAP + 18)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )


def _list_their_methods(papers: Sequence[Paper]) -> list[str]:
    return [paper.format_title(method) for paper in papers for method in paper.method]


def _find_highest(runs: Sequence[Measured], papers: Sequence[Paper], metric: str) -> float:
    """Return the highest value of a metric's axis: the same for all datasets, so that panels can be compared."""
    ours = [f.mean for run in runs for d in DATASETS for k in KS if (f := run.figure(metric, d, k))]
    theirs = [v for p in papers for m in p.method for d in DATASETS for v in m.find_curve(metric, d) or ()]
    highest = max([*ours, *theirs, 1.0])
    step = next((step for step in _STEPS if highest <= 5 * step), 25)
    return min(100.0, step * math.ceil(highest / step))


def _draw_legend(runs: Sequence[Measured], papers: Sequence[Paper]) -> list[str]:
    ours = [(f'class="line" stroke="{_choose_colour(number)}"', run.label) for number, run in enumerate(runs)]
    theirs = [
        (f'class="line theirs" stroke-dasharray="{_choose_dash(n)}"', name)
        for n, name in enumerate(_list_their_methods(papers))
    ]
    parts = []
    for number, (look, name) in enumerate([*ours, *theirs]):
        x, y = 8 + (number % 3) * 316, 36 + 16 * (number // 3)
        parts.append(f'<line {look} x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}"/>')
        parts.append(f'<text class="small" x="{x + 28}" y="{y}">{escape(name)}</text>')
    return parts


def _draw_frame(panel: Panel, title: str) -> list[str]:
    left, right = panel.x + _LEFT, panel.x + PANEL
    parts = [f'<text class="title" x="{left:.0f}" y="{panel.y + 14:.0f}">{escape(title)}</text>']
    step = next((step for step in _STEPS if panel.top <= 5 * step), 25)
    for value in range(0, int(panel.top) + 1, step):
        y = panel.place_point(1, value, "").y
        parts.append(f'<line class="grid" x1="{left:.0f}" x2="{right:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small" text-anchor="end" x="{left - 4:.0f}" y="{y + 3:.1f}">{value}</text>')
    for k in KS:
        x = panel.place_point(k, 0, "").x
        parts.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{panel.y + TALL + 13:.0f}">{k}</text>')
    return parts


def _draw_lines(
    panel: Panel, runs: Sequence[Measured], papers: Sequence[Paper], metric: str, dataset: str
) -> list[str]:
    parts = []
    methods = [method for paper in papers for method in paper.method]
    for number, (method, name) in enumerate(zip(methods, _list_their_methods(papers), strict=True)):
        curve = method.find_curve(metric, dataset)
        if curve:
            points = [panel.place_point(k, v, f"{v:.1f}% at k = {k}") for k, v in zip(KS, curve, strict=True)]
            parts += _draw_line(
                PlotLine(name, points), f'class="line theirs" stroke-dasharray="{_choose_dash(number)}"'
            )
    for number, run in enumerate(runs):
        line = _draw_our_line(panel, run, metric, dataset)
        for band in line.bands:
            parts.append(f'<polygon class="band" fill="{_choose_colour(number)}" points="{band}"/>')
        parts += _draw_line(line, f'class="line" stroke="{_choose_colour(number)}"')
    return parts


def _draw_our_line(panel: Panel, run: Measured, metric: str, dataset: str) -> PlotLine:
    known = [(k, figure) for k in KS if (figure := run.figure(metric, dataset, k))]
    points = [panel.place_point(k, figure.mean, f"{figure.mean:.1f}% at k = {k}") for k, figure in known]
    sides = [(k, figure.ci95) for k, figure in known if figure.ci95]
    outline = [panel.place_point(k, high, "") for k, (_, high) in sides]
    outline += [panel.place_point(k, low, "") for k, (low, _) in reversed(sides)]
    return PlotLine(run.label, points, [" ".join(f"{p.x:.1f},{p.y:.1f}" for p in outline)])


def _draw_line(line: PlotLine, look: str) -> list[str]:
    values = escape(f"{line.name}: " + ", ".join(point.label for point in line.points))
    return [f'<polyline {look} points="{line.path}"><title>{values}</title></polyline>']


def _choose_colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _choose_dash(number: int) -> str:
    return _DASHES[number % len(_DASHES)]
