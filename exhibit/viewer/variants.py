"""The section of a report about variants: bundles that a program changed, for example by replacing amounts.

Each question of a variant is compared with the same question in the control, the bundle without the
change. Plots show the metrics over the corpus size.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from exhibit.evaluation.datasets import find_lone_variants
from exhibit.evaluation.judgement import ANSWERED_RIGHTLY
from exhibit.evaluation.metrics import describe_metric, shorten_metrics
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import compare, match_questions
from exhibit.viewer.plots import BOTTOM, Plot, PlotLine, Point, compute_x, compute_y, format_outline, make_percent_ticks

_BECAME = {
    "read_value": "has the new value",
    "in_force": "has the value in force",
    "both_named": "names both values",
    "remembered": "has the old value",
    "superseded": "has a superseded value",
    "one_silently": "names one value silently",
    "canary_followed": "follows the instruction",
    "another_value": "has another value",
    "abstention_accuracy": "refuses",
    "false_refusal_rate": "refuses",
}
"""The result of a variant's question: the text of the first of these metrics that is 1 for its reply."""
_NEITHER = "has no such value"
_RIGHT = {1.0: "right", 0.0: "wrong", None: "not judged"}
_SHOWN = 300  # questions of a variant that the report lists


class TwinQuestion(NamedTuple):
    """A question that is in a variant and in its control, the unchanged bundle, with its result in each of them."""

    key: str
    """The dataset and the id, by which the page finds the question."""
    question: str
    value: str
    """The type of the question's value."""
    control: str
    variant: str
    became: str


class VariantEffect(NamedTuple):
    """The results on a variant, compared with its control.

    A variant is a bundle with altered documents; its control is the same bundle without the alterations.
    """

    dataset: str
    control: str
    kind: str
    heads: list[str]
    lines: list[tuple[str, list[int]]]
    """For each type of value, the number of questions with each result."""
    changes: list[tuple[str, str]]
    """The metrics that changed significantly, with the change and its interval in words."""
    questions: list[TwinQuestion]
    left_out: int


def variant_warnings(run: RunResults) -> list[str]:
    """Return a warning for each variant whose control is not in the run, and for gold with invisible text.

    A variant's control is the bundle without the change.
    """
    labels = {name: table.labels[0] for name, table in run.tables.items() if table.labels}
    lone = [f"{line}." for line in find_lone_variants(labels)]
    for name, table in run.tables.items():
        hidden = sum("hidden" in own for own in table.labels)
        if hidden:
            lone.append(
                f"{name}: the gold of {hidden} questions has words that are invisible on the page (label hidden)."
            )
    return lone


def variant_effects(run: RunResults) -> list[VariantEffect]:
    """Return the effect of each variant (altered bundle) whose control (the unaltered bundle) is in the run."""
    controls = {table.pair: table for table in run.tables.values() if table.pair and _get_kind(table) == "control"}
    pairs = [
        (controls[table.pair], table)
        for table in run.tables.values()
        if table.pair in controls and _get_kind(table) != "control"
    ]
    words = _read_question_words(run, {table.name for _, table in pairs})
    return [_measure_effect(control, variant, words[variant.name]) for control, variant in pairs]


def _get_kind(table: Table) -> str:
    return str(table.labels[0].get("varied") or "") if table.labels else ""


def _read_question_words(run: RunResults, names: set[str]) -> dict[str, dict[int | str, str]]:
    words: dict[str, dict[int | str, str]] = defaultdict(dict)
    for row in run.rows if names else ():
        if row.dataset in names:
            words[row.dataset][row.id] = row.question
    return words


def _measure_effect(control: Table, variant: Table, words: Mapping[int | str, str]) -> VariantEffect:
    questions, counts = [], defaultdict[str, Counter[str]](Counter)
    for before, after in match_questions(control, variant):
        own, became = variant.labels[after], _describe_result(variant, after)
        value = str(own.get("value") or own.get("way") or _get_kind(variant))
        counts[value][became] += 1
        id = variant.ids[after]
        right = [_describe_right(control, before), _describe_right(variant, after)]
        questions.append(TwinQuestion(f"{variant.name}/{id}", words.get(id, ""), value, right[0], right[1], became))
    heads = [
        became for became in dict.fromkeys([*_BECAME.values(), _NEITHER]) if any(c[became] for c in counts.values())
    ]
    lines = [(value, [counts[value][head] for head in heads]) for value in sorted(counts)]
    left_out = max(0, len(questions) - _SHOWN)
    changes = _list_changes(control, variant)
    return VariantEffect(
        variant.name, control.name, _get_kind(variant), heads, lines, changes, questions[:_SHOWN], left_out
    )


def _get_value(table: Table, row: int, metric: str) -> float | None:
    return table.values[metric][row] if metric in table.values else None


def _describe_right(table: Table, row: int) -> str:
    return _RIGHT.get(_get_value(table, row, ANSWERED_RIGHTLY), "partly right")


def _describe_result(table: Table, row: int) -> str:
    return next((words for metric, words in _BECAME.items() if _get_value(table, row, metric) == 1.0), _NEITHER)


def _list_changes(control: Table, variant: Table) -> list[tuple[str, str]]:
    """Return the main metrics that differ significantly between control and variant, with each change in words."""
    lines = []
    differences = compare([control], [variant])
    for metric in shorten_metrics(differences):
        one, described = differences[metric], describe_metric(metric)
        if described.gate and one.mean is not None and one.ci95 and one.beyond_chance:
            ends = " to ".join(map(described.change_in_words, one.ci95))
            depth = metric.partition("@")[2]
            title = f"{described.title}, first {depth}" if depth else described.title
            lines.append((title, f"{described.change_in_words(one.mean)} ({ends}; n {one.n:,})"))
    return lines


# ---------------------------------------------------------------- growth


def growth_plots(run: RunResults) -> list[Plot]:
    """Return a plot of each metric that is a share, against the number of documents.

    The plots use variants to which documents were added (`growth`). The list is empty if the run has fewer
    than two corpus sizes.
    """
    grown = {table.pair for table in run.tables.values() if _get_kind(table).startswith("growth")}
    sizes: dict[int, Mapping[str, Any]] = {}
    for name, table in run.tables.items():
        files = run.config.datasets[name].files
        if table.pair in grown and files:
            sizes.setdefault(files, run.means_of(name))
    if len(sizes) < 2:
        return []
    ordered = sorted(sizes)
    x = {size: compute_x(at / (len(ordered) - 1)) for at, size in enumerate(ordered)}
    names = dict.fromkeys(name for means in sizes.values() for name in means)
    plots = [
        _draw_curve(name, {size: sizes[size].get(name) for size in ordered}, x)
        for name in shorten_metrics(names, all_families=True)
    ]
    return [plot for plot in plots if plot is not None]


def _draw_curve(metric: str, estimates: Mapping[int, Any], x: Mapping[int, float]) -> Plot | None:
    described = describe_metric(metric)
    known = {size: one for size, one in estimates.items() if one is not None and one.mean is not None}
    if described.unit != "share" or len(known) < 2:
        return None
    points = [
        Point(x[size], compute_y(one.mean), f"{described.in_words(one.mean)}% of {size:,} documents")
        for size, one in known.items()
    ]
    sides = [(x[size], compute_y(one.ci95[1]), compute_y(one.ci95[0])) for size, one in known.items() if one.ci95]
    depth = metric.partition("@")[2]
    title = f"{described.title}, first {depth}" if depth else described.title
    line = PlotLine(described.title, points, [format_outline(sides)] if sides else [])
    ticks = [Point(x[size], BOTTOM, f"{size:,}") for size in known]
    return Plot(title, "by documents in the corpus", lines=[line], ticks=ticks, sides=make_percent_ticks())
