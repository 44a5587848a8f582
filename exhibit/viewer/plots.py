"""Compute the geometry of small plots; `plots.j2` draws them as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from exhibit.evaluation.metrics import describe_metric
from exhibit.schemas.run import Estimate, Means

LEFT, RIGHT, TOP, BOTTOM = 34, 330, 14, 176  # pixels: the frame inside the picture


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    label: str
    worse: bool = False


@dataclass(frozen=True)
class PlotLine:
    """A line through points; `band` is the outline of the area that shows the confidence intervals."""

    name: str
    points: list[Point]
    band: str = ""

    @property
    def path(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class Plot:
    title: str
    note: str
    lines: list[PlotLine] = field(default_factory=list)
    ticks: list[Point] = field(default_factory=list)
    sides: list[Point] = field(default_factory=list)
    """The marks of the left axis."""

    @property
    def summary(self) -> str:
        """The plot's content in words, for screen readers."""
        values = [f"{line.name}: " + ", ".join(point.label for point in line.points) for line in self.lines]
        return f"{self.title}. " + "; ".join(values)


def compute_x(share: float) -> float:
    """Return the x coordinate of a share (0 to 1) inside the plot's frame, in pixels."""
    return LEFT + min(1.0, max(0.0, share)) * (RIGHT - LEFT)


def compute_y(share: float) -> float:
    """Return the y coordinate of a share (0 to 1) inside the plot's frame, in pixels."""
    return BOTTOM - min(1.0, max(0.0, share)) * (BOTTOM - TOP)


def format_outline(intervals: Sequence[tuple[float, float, float]]) -> str:
    """Return the outline of a confidence band as an SVG polygon, from x, upper y and lower y of each point."""
    points = [(x, high) for x, high, _ in intervals] + [(x, low) for x, _, low in reversed(intervals)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def make_plots(means: Means) -> list[Plot]:
    """Return the plots of retrieval metrics over k for which a run has at least two cutoffs."""
    families = {
        "Precision and recall": ["char_recall", "char_precision"],
        "The right document": ["document_hit", "drm"],
    }
    return [plot for title, metrics in families.items() if (plot := plot_over_k(means, metrics, title))]


def plot_over_k(means: Means, families: Sequence[str], title: str) -> Plot | None:
    """Return a plot of metrics over the cutoff k, at equal distances; None if there are fewer than two cutoffs."""
    values: dict[str, dict[int, Estimate]] = {family: {} for family in families}
    for name, one in means.items():
        family, _, depth = name.partition("@")
        if family in values and depth and one.mean is not None:
            values[family][int(depth)] = one
    depths = sorted({k for estimates in values.values() for k in estimates})
    if len(depths) < 2:
        return None
    x = {k: compute_x(index / (len(depths) - 1)) for index, k in enumerate(depths)}
    lines = []
    for family, estimates in values.items():
        about, known = describe_metric(family), sorted(estimates.items())
        points = [Point(x[k], compute_y(e.mean or 0.0), f"{about.in_words(e.mean)}% at k = {k}") for k, e in known]
        intervals = [(x[k], compute_y(e.ci95[1]), compute_y(e.ci95[0])) for k, e in known if e.ci95]
        lines += [PlotLine(about.title, points, format_outline(intervals))] if points else []
    ticks = [Point(x[k], BOTTOM, str(k)) for k in depths]
    sides = [Point(LEFT, compute_y(share), f"{100 * share:.0f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return Plot(title, "by passages read (k)", lines=lines, ticks=ticks, sides=sides)
