"""Plots of what a system's confidence is worth: is a question as often answerable as it says, what do refusals save?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from exhibit.evaluation.report.frame import BOTTOM, LEFT, RIGHT, TOP, Plot, PlotLine, Point
from exhibit.evaluation.report.run import DatasetRun, Record, RecordedRun

_SHOWN = 2
"""Datasets of a plot: as many as there are colours of lines."""
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # marks of an axis

Place = Callable[[Record], tuple[float, float, str]]


def confidence_plots(run: RecordedRun) -> list[Plot]:
    """Return the calibration and the risk at each coverage; nothing where no reply tells its confidence."""
    # where every question has an answer, or none has, there is nothing to tell apart
    told = [dataset for dataset in run.datasets if dataset.confidence.get("auroc") is not None][:_SHOWN]
    if not told:
        return []
    return [
        _plot("Is the confidence right?", _areas(told), told, "calibration", _calibrated),
        _plot(
            "What refusing the unsure saves",
            "questions without an answer, by share kept",
            told,
            "risk_at_coverage",
            _risk,
        ),
    ]


def _areas(told: Sequence[DatasetRun]) -> str:
    areas = [f"{one.name} {one.confidence['auroc']:.2f}" for one in told]
    return f"share answerable, by confidence; AUROC {', '.join(areas)}"


def _plot(title: str, note: str, told: Sequence[DatasetRun], part: str, place: Place) -> Plot:
    lines = []
    for dataset in told:
        places = [place(row) for row in dataset.confidence[part]]
        points = [Point(_across(x), _up(y), words) for x, y, words in places]
        lines.append(PlotLine(dataset.name, points))
    ticks = [Point(_across(share), BOTTOM, f"{100 * share:.0f}") for share in _QUARTERS]
    return Plot(title, note, lines=lines, ticks=ticks)


def _calibrated(row: Record) -> tuple[float, float, str]:
    sure, right = row["confidence"], row["answerable"]
    return sure, right, f"{100 * right:.0f}% answerable at {100 * sure:.0f}% confidence ({row['questions']} questions)"


def _risk(row: Record) -> tuple[float, float, str]:
    kept, risk = row["coverage"], row["risk"]
    return kept, risk, f"{100 * risk:.0f}% without an answer among the surest {100 * kept:.0f}%"


def _across(share: float) -> float:
    return LEFT + share * (RIGHT - LEFT)


def _up(share: float) -> float:
    return BOTTOM - share * (BOTTOM - TOP)
