"""Decide whether a change between two runs is a regression."""

from collections.abc import Mapping, Sequence

from exhibit.evaluation.judgement import ANSWERED_RIGHTLY
from exhibit.evaluation.metrics import K, describe_metric, shorten_metrics
from exhibit.evaluation.statistics import Difference, Overlap
from exhibit.schemas.errors import ToolkitError

MAX_FALL = 0.1
"""The largest tolerated fall where there are too few documents for an interval: ten points, or a tenth of a non-share.

With ten questions, one may change its answer by chance; two rarely do.
"""


def is_regression(name: str, difference: Difference, asked: Sequence[str] = (), *, max_fall: float = MAX_FALL) -> bool:
    """Return whether a metric is worse in the second run by more than chance.

    A metric that depends on the machine counts only if it is in `asked`. If there are too few documents for a
    confidence interval, a metric counts as worse if it has worsened by more than `max_fall`.
    """
    change = difference.mean
    if (
        change is None
        or (not describe_metric(name).gate and name not in asked)
        or describe_metric(name).improves(change) is not False
    ):
        return False
    return difference.beyond_chance if difference.ci95 else measure_fall(name, difference) > max_fall


def find_regressions(
    differences: Mapping[str, Difference], asked: Sequence[str] = (), *, max_fall: float = MAX_FALL
) -> list[str]:
    """Return the names of the metrics that are worse by more than chance (see `is_regression`)."""
    return [name for name, one in differences.items() if is_regression(name, one, asked, max_fall=max_fall)]


def describe_regressions(
    differences: Mapping[str, Difference], worse: Sequence[str], *, max_fall: float = MAX_FALL
) -> list[str]:
    """Return lines that name the worse metrics, with the rule by which they count as worse."""
    beyond = [name for name in worse if differences[name].ci95]
    fallen = [name for name in worse if not differences[name].ci95]
    lines = [f"worse beyond chance: {', '.join(beyond)}"] if beyond else []
    few = f"worse by more than {max_fall:g}, with too few documents for an interval"
    return [*lines, f"{few}: {', '.join(fallen)}"] if fallen else lines


def describe_better(names: Sequence[str], differences: Mapping[str, Difference]) -> str:
    """Return one sentence that says which of two runs is better.

    One metric decides: the share of right answers if both runs have it, else recall, else the first main metric
    that both runs have.
    """
    first, second = names
    known = [name for name, one in differences.items() if one.mean is not None]
    name = next((name for name in (ANSWERED_RIGHTLY, f"recall@{K}", *shorten_metrics(known)) if name in known), None)
    if name is None or describe_metric(name).better == "neither":
        return f"No metric decides whether {second} or {first} is better."
    one, metric = differences[name], describe_metric(name)
    change = one.mean or 0.0
    values = [f"{metric.in_words(value)}{metric.unit_behind}" for value in (one.first, one.second)]
    ends = f", 95% interval {' to '.join(map(metric.change_in_words, one.ci95))}" if one.ci95 else ""
    figures = f"{metric.title} {values[0]} in {first}, {values[1]} in {second}"
    rest = f"{figures} ({metric.change_in_words(change)}{ends}; {one.n:,} questions)."
    if not change:
        return f"{second} and {first} are equally good: {rest}"
    if one.ci95 is None:
        return f"There are too few documents to say whether {second} is better than {first}: {rest}"
    if not one.beyond_chance:
        return f"Neither {second} nor {first} is better by more than chance: {rest}"
    better, worse = (second, first) if metric.improves(change) else (first, second)
    return f"{better} is better than {worse}: {rest}"


def check_comparable(names: Sequence[object], differences: Mapping[str, Difference], shared: Overlap) -> None:
    """Raise an error where two runs, named by `names`, have no question or no metric in common."""
    first, second = names
    if shared.not_comparable and not shared.asked:
        listed = ", ".join(shared.not_comparable)
        raise ToolkitError(
            f"{first} and {second} cannot be compared: both have a dataset named {listed}, but no question has the "
            "same words, expected answer, gold and documents in both; run both on one bundle"
        )
    if not differences:
        raise ToolkitError(
            f"{first} and {second} have no dataset and metric in common; evaluate both on the same bundle and metrics"
        )


def measure_fall(name: str, difference: Difference) -> float:
    """Return the size of a metric's change, without its sign.

    For a metric that is a share, it is the difference of the two means. For other metrics, it is that
    difference divided by the first mean.
    """
    change, first = abs(difference.mean or 0.0), abs(difference.first or 0.0)
    if describe_metric(name).unit == "share":
        return change
    return change / first if first else float(bool(change))
