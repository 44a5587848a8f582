"""The tables of metrics on a page, the funnel of stages that lose gold, and the plots that `plots.j2` draws as SVG."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from exhibit.evaluation.metrics import CEILING, GROUPS, STAGE_TITLES, Metric, describe_metric, shorten_metrics
from exhibit.evaluation.runs import RunResults, compute_breakdown
from exhibit.evaluation.stages import StageCounts
from exhibit.evaluation.statistics import Difference
from exhibit.evaluation.text_tables import Scale, find_bands
from exhibit.schemas.run import Estimate, Means
from exhibit.viewer.page import Record

MEANINGS: Mapping[str, str] = {
    "Retrieval": "Did the system find the passages that answer the question, and how much other text did it retrieve?",
    "Stages": "How much of the gold is left after each step, from the file to the passages?",
    "Answers": "Is the answer right, and did the system refuse where the documents do not answer?",
    "Citations": "Does the answer name its sources, and do these sources support it?",
    "Cost": "How long did a reply take, and how much text did a model read and write for it?",
    "Other": "Your own metrics, and the metrics that belong to no other group.",
}  # the question that each group of metrics answers, in one sentence for a lawyer
_MAX_VALUES = 45  # most rows of a breakdown: CUAD has 41 kinds of clauses
_TONES = ("bad", "near", "unused", "bold")  # the colours of the reasons at a stage, for the most frequent reason first
LEFT, RIGHT, TOP, BOTTOM = 34, 330, 14, 176  # the edges of the frame in a plot, in pixels


class Cell(NamedTuple):
    """A mean as a table cell shows it; fields that are unknown are empty."""

    mean: str
    details: str = ""  # the interval, the standard deviation, and the number of questions
    errors: int = 0
    share: float | None = None  # the mean from 0 to 1, for a bar behind the number
    band: str = ""
    change: str = ""  # the difference from the first run, with its interval
    kind: str = ""  # `better` or `worse` if the difference is significant


class MetricRow(NamedTuple):
    metric: str
    about: Metric
    cells: list[Cell]

    @property
    def depth(self) -> str:
        return self.metric.partition("@")[2]


def group_rows(rows: Sequence[MetricRow]) -> list[tuple[str, list[MetricRow]]]:
    groups = ((group, [row for row in rows if row.about.group == group]) for group in GROUPS)
    return [(group, rows_of_group) for group, rows_of_group in groups if rows_of_group]


def make_metric_rows(
    columns: Mapping[str, Means], scale: Scale, *, metrics: Iterable[str] | None = None,
    differences: Sequence[Mapping[str, Difference]] = (),
) -> list[MetricRow]:  # fmt: skip
    """Return a table row for each of `metrics` that was measured; None means a short selection of metrics.

    `differences` has, for each column, the changes from the first column.
    """
    names = dict.fromkeys(name for means in columns.values() for name in means)
    rows = []
    for metric in shorten_metrics(names, all_families=True) if metrics is None else metrics:
        if any(means.get(metric) and means[metric].mean is not None for means in columns.values()):
            cells = [make_cell(metric, means, scale) for means in columns.values()]
            for at, difference in enumerate(differences):
                cells[at] = _add_change(metric, cells[at], difference.get(metric))
            rows.append(MetricRow(metric, describe_metric(metric), cells))
    return rows


def make_cell(metric: str, means: Means, scale: Scale) -> Cell:
    """Return a metric's mean as a table cell."""
    estimate: Estimate | None = means.get(metric)
    if estimate is None or estimate.mean is None:
        return Cell("–", errors=estimate.errors if estimate else 0)
    about = describe_metric(metric)
    details = [f"{about.in_words(estimate.ci95[0])}–{about.in_words(estimate.ci95[1])}"] if estimate.ci95 else []
    if estimate.std is not None and estimate.datasets == 1:
        details.append(f"SD {about.in_words(estimate.std)}")
    if estimate.spread is not None:
        details.append(f"±{about.in_words(estimate.spread)} over {estimate.repeats} rounds")
    details.append(f"mean of {estimate.datasets} benchmarks" if estimate.datasets > 1 else f"n {estimate.n:,}")
    share = min(1.0, max(0.0, estimate.mean)) if about.unit == "share" else None
    bands = find_bands(scale, metric)
    band = bands.band(estimate.mean).lower() if bands else ""
    return Cell(about.in_words(estimate.mean), " · ".join(details), estimate.errors, share, band)


def _add_change(metric: str, cell: Cell, difference: Difference | None) -> Cell:
    if difference is None or difference.mean is None:
        return cell
    about, change = describe_metric(metric), difference.mean
    if not change:
        return cell._replace(change="no change")
    ends = ""
    if difference.ci95:
        ends = f" ({' to '.join(map(about.change_in_words, difference.ci95))}, {difference.chance})"
    words, kind = "within chance", ""
    if difference.beyond_chance:
        good = about.improves(change)
        words, kind = ("changed", "") if good is None else ("better", "better") if good else ("worse", "worse")
    paired = f"{difference.n:,} paired questions"
    return cell._replace(change=f"{about.change_in_words(change)}{ends}, {paired}, {words}", kind=kind)


def make_breakdowns(run: RunResults, scale: Scale) -> list[Record]:
    """Return a table of means for each label whose values divide the questions into groups."""
    tables = []
    for dataset in run.datasets:
        for label, values in compute_breakdown(run.tables[dataset]).items():
            sizes = {value: max((mean.n for mean in means.values()), default=0) for value, means in values.items()}
            names = shorten_metrics(dict.fromkeys(name for means in values.values() for name in means))
            chosen = [name for name in names if describe_metric(name).group in ("Retrieval", "Answers")]
            rows = make_metric_rows(values, scale, metrics=chosen)
            if not rows:
                continue
            order = sorted((-size, value, at) for at, (value, size) in enumerate(sizes.items()))
            lines = [(value, [row.cells[at] for row in rows]) for _, value, at in order[:_MAX_VALUES]]
            fields = {"dataset": dataset, "label": label.replace("_", " "), "metrics": rows, "lines": lines}
            tables.append({**fields, "left_out": len(values) - len(lines)})
    return tables


def make_funnel(counts: StageCounts, means: Mapping[str, Estimate]) -> list[Record]:
    """Return a row for each known stage: how many questions still have all their gold, and why the others lost gold."""
    rows, left = [], counts.questions
    for stage in filter(counts.known.__contains__, STAGE_TITLES):
        lost = counts.lost.get(stage, Counter[str]())
        left -= lost.total()
        share = 100 * left / counts.questions
        parts = _stack_parts(sorted(lost.items(), key=lambda pair: (-pair[1], pair[0])), counts.questions, at=share)
        for number, part in enumerate(parts):
            part["tone"] = _TONES[min(number, len(_TONES) - 1)]
        cell = make_cell(f"{CEILING}{stage}", dict(means), {})
        ceiling = "" if cell.mean == "–" else f"{cell.mean}% ({cell.details})"
        fields: Record = {"stage": stage, "title": STAGE_TITLES[stage], "left": left, "share": share}
        rows.append({**fields, "lost": lost.total(), "parts": parts, "ceiling": ceiling})
    return rows


def stack_shares(counted: Mapping[str, Counter[str]], order: Iterable[str]) -> list[Record]:
    """Return the data of a stacked bar for each name in `counted`: the name, the total and the segments in per cent."""
    kinds = list(order)
    return [
        {"name": name, "total": counts.total(),
         "parts": _stack_parts([(kind, counts[kind]) for kind in kinds if counts[kind]], counts.total())}
        for name, counts in counted.items()
        if counts
    ]  # fmt: skip


def _stack_parts(counts: Iterable[tuple[str, int]], total: int, *, at: float = 0.0) -> list[Record]:
    """Return the segments of a bar, in per cent of `total`, beginning at `at`."""
    parts: list[Record] = []
    for kind, count in counts:
        parts.append({"kind": kind, "count": count, "x": at, "width": 100 * count / total})
        at += parts[-1]["width"]
    return parts


class Point(NamedTuple):
    x: float
    y: float
    label: str
    worse: bool = False


class PlotLine(NamedTuple):
    name: str
    points: list[Point]
    band: str  # the outline of the area that shows the confidence intervals

    @property
    def path(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


class Plot(NamedTuple):
    title: str
    note: str
    lines: list[PlotLine]
    ticks: list[Point]
    sides: list[Point]  # the marks of the left axis

    @property
    def summary(self) -> str:
        """The plot's content in words, for screen readers."""
        values = [f"{line.name}: " + ", ".join(point.label for point in line.points) for line in self.lines]
        return f"{self.title}. " + "; ".join(values)


def compute_x(share: float) -> float:
    """Return the x coordinate of a share (0 to 1) inside the plot's frame, in pixels."""
    return LEFT + min(1.0, max(0.0, share)) * (RIGHT - LEFT)


def make_line(name: str, values: Sequence[tuple[float, Estimate, str, bool]], *, high: float = 1.0) -> PlotLine:
    """Return a line through means; the top of the plot is the value `high`.

    `values` has, for each point, the x coordinate, the mean, the label, and whether the point is marked as worse.
    """

    def compute_y(value: float | None) -> float:
        return BOTTOM - min(1.0, max(0.0, (value or 0.0) / high)) * (BOTTOM - TOP)

    points = [Point(x, compute_y(mean.mean), label, worse) for x, mean, label, worse in values]
    ends = [(x, mean.ci95) for x, mean, _, _ in values if mean.ci95]
    outline = [(x, compute_y(top)) for x, (_, top) in ends] + [(x, compute_y(low)) for x, (low, _) in reversed(ends)]
    return PlotLine(name, points, " ".join(f"{x:.1f},{y:.1f}" for x, y in outline))


def mark_side(label: Callable[[float], str], shares: Iterable[float]) -> list[Point]:
    """Return the labelled tick marks of the left axis, at the given shares of its height."""
    return [Point(LEFT, BOTTOM - share * (BOTTOM - TOP), label(share)) for share in shares]


def make_plots(means: Means) -> list[Plot]:
    """Return the plots of retrieval metrics over k for which a run has at least two cutoffs."""
    recall = plot_over_k(means, ["char_recall", "char_precision"], "Precision and recall")
    return [plot for plot in (recall, plot_over_k(means, ["document_hit", "drm"], "The right document")) if plot]


def plot_over_k(means: Means, families: Sequence[str], title: str) -> Plot | None:
    """Return a plot of metrics over cutoffs k, drawn at equal distances; None if there are fewer than two cutoffs."""
    values: dict[str, dict[int, Estimate]] = {family: {} for family in families}
    for name, estimate in means.items():
        family, _, depth = name.partition("@")
        if family in values and depth and estimate.mean is not None:
            values[family][int(depth)] = estimate
    depths = sorted({k for estimates in values.values() for k in estimates})
    if len(depths) < 2:
        return None
    x = {k: compute_x(index / (len(depths) - 1)) for index, k in enumerate(depths)}
    lines = []
    for family, estimates in values.items():
        about, known = describe_metric(family), sorted(estimates.items())
        points = [(x[k], estimate, f"{about.in_words(estimate.mean)}% at k = {k}", False) for k, estimate in known]
        lines += [make_line(about.title, points)] if points else []
    ticks = [Point(x[k], BOTTOM, str(k)) for k in depths]
    sides = mark_side(lambda share: f"{100 * share:.0f}", (0.0, 0.25, 0.5, 0.75, 1.0))
    return Plot(title, "by passages read (k)", lines, ticks, sides)
