"""What a small plot consists of: points, lines, bars, in a frame of one size."""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH, HEIGHT = 340, 210  # of a plot, in pixels: three stand beside each other
LEFT, RIGHT, TOP, BOTTOM = 34, 330, 14, 176
"""The frame inside the picture."""


@dataclass(frozen=True)
class Point:
    """A value in the picture, with the words for it."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class PlotLine:
    """A metric over k: its points, and its interval as the outline of a band."""

    name: str
    points: list[Point]
    band: str = ""

    @property
    def path(self) -> str:
        """The points as SVG has them."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class Bar:
    """A bar from the left or the bottom, with its whisker where there is an interval."""

    x: float
    y: float
    width: float
    height: float
    name: str
    label: str
    whisker: tuple[float, float] | None = None


@dataclass(frozen=True)
class Plot:
    """A picture: one of lines or of bars."""

    title: str
    note: str
    lines: list[PlotLine] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    ticks: list[Point] = field(default_factory=list)
    rows: list[Point] = field(default_factory=list)
    height: int = HEIGHT

    @property
    def summary(self) -> str:
        """The same for those who cannot see it."""
        values = [f"{line.name}: " + ", ".join(p.label for p in line.points) for line in self.lines]
        return f"{self.title}. " + "; ".join(values or [bar.label for bar in self.bars])
