"""Compare two runs: which figures and outcomes are worse by more than chance, and which run is better.

A run is worse if fewer answers are judged right, or if an unfavourable outcome is more frequent, by more than chance.
Each named metric is tested at 5%; for all other metrics together, Holm's method limits false alarms to 5%.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from exhibit.evaluation.metrics import OUTCOME, K, describe_metric, find_needing, shorten_metrics
from exhibit.evaluation.outcomes import BAD
from exhibit.evaluation.statistics import Difference, Table, compare
from exhibit.schemas.run import ANSWERED_RIGHTLY, Outcome

MAX_FALL = 0.1  # the largest fall without an interval; of ten questions, one may get another outcome by chance
ALPHA = 0.05
NAMED = (ANSWERED_RIGHTLY, f"recall@{K}")  # the metrics that are tested separately, unless the user names others


def with_outcomes(table: Table) -> Table:
    bad = [outcome for outcome in Outcome if outcome in BAD and table.outcomes]
    shares = {f"{OUTCOME}{outcome}": [float(each == outcome) for each in table.outcomes] for outcome in bad}
    return replace(table, values={**table.values, **shares})


def compare_runs(before: Sequence[Table], after: Sequence[Table]) -> dict[str, Difference]:
    """Return the change of each metric, and of each unfavourable outcome's share, over the questions of both runs."""
    required = dict.fromkeys(name for table in before for name in table.values if _must_stay(name))
    completed = []
    for table in after:  # a required metric that the second run lacks is compared, with None for each question
        missing = {name: [None] * len(table.ids) for name in required}
        completed.append(with_outcomes(replace(table, values={**missing, **table.values}, rounds=())))
    differences = compare([*map(with_outcomes, before)], completed)
    return {name: d for name, d in differences.items() if not name.startswith(OUTCOME) or d.first or d.second}


def _must_stay(name: str) -> bool:
    """Return whether a run is worse if it lacks values of this metric: true for right answers and passage metrics."""
    return name == ANSWERED_RIGHTLY or bool(find_needing([name], "passages"))


def count_outcomes(tables: Sequence[Table]) -> Counter[str]:
    return Counter(str(outcome) for table in tables for outcome in table.outcomes)


def explain_fall(name: str, difference: Difference, max_fall: float = MAX_FALL) -> str:
    """Return why a metric is worse, or "" if it is not: it fell, or too many of its questions have no value now."""
    if _must_stay(name) and difference.lost > max_fall * (difference.lost + difference.n):
        return f"no longer measured for {difference.lost} of {difference.lost + difference.n} questions"
    change = difference.mean
    if change is None or describe_metric(name).improves(change) is not False:
        return ""
    if difference.ci95:
        return "worse by more than chance" if difference.beyond_chance else ""
    few = f"worse by more than {max_fall:g}; there are too few documents for an interval"
    return few if measure_fall(name, difference) > max_fall else ""


def measure_fall(name: str, difference: Difference) -> float:
    """Return the difference of the means, divided by the first mean unless the metric is a share."""
    change, first = abs(difference.mean or 0.0), abs(difference.first or 0.0)
    relative = change / first if first else float(bool(change))
    return change if describe_metric(name).unit == "share" else relative


def find_regressions(
    differences: Mapping[str, Difference], requested: Sequence[str] = (), *, max_fall: float = MAX_FALL
) -> list[str]:
    """Return the names of the metrics and outcomes that are worse; `requested` limits the test to some metrics."""
    named = [name for name in differences if name in (requested or NAMED)]
    others = [] if requested else [n for n in differences if n not in named and describe_metric(n).gate]
    beyond = _apply_holm({name: p for name in others if (p := differences[name].p) is not None})
    tested = {*named, *(name for name in others if name in beyond or differences[name].p is None)}
    return [name for name, delta in differences.items() if name in tested and explain_fall(name, delta, max_fall)]


def _apply_holm(values: Mapping[str, float]) -> set[str]:
    ranked = sorted(values, key=lambda name: values[name])
    failed = (rank for rank, name in enumerate(ranked) if values[name] > ALPHA / (len(values) - rank))
    return set(ranked[: next(failed, len(ranked))])


def describe_regressions(
    differences: Mapping[str, Difference], worse: Sequence[str], *, max_fall: float = MAX_FALL
) -> list[str]:
    reasons = {name: explain_fall(name, differences[name], max_fall) for name in worse}
    return [f"{why}: {', '.join(n for n in worse if reasons[n] == why)}" for why in dict.fromkeys(reasons.values())]


def describe_better(names: Sequence[str], differences: Mapping[str, Difference], worse: Sequence[str] = ()) -> str:
    """Return a sentence on which of two runs is better: the share of right answers or another main metric decides."""
    first, second = names
    known = [name for name, delta in differences.items() if delta.mean is not None]
    name = next((name for name in (*NAMED, *shorten_metrics(known)) if name in known), None)
    if worse and (name is None or name not in worse):
        return f"{second} is worse than {first}: {', '.join(worse[:3])}."
    if name is None or describe_metric(name).better == "neither":
        return f"No metric shows whether {second} or {first} is better."
    difference, metric = differences[name], describe_metric(name)
    change = difference.mean or 0.0
    values = [f"{metric.in_words(value)}{metric.report_unit}" for value in (difference.first, difference.second)]
    if not change:
        verdict = f"{second} and {first} are equally good"
    elif difference.ci95 is None:
        verdict = f"There are too few documents to say whether {second} is better than {first}"
    elif not difference.beyond_chance:
        verdict = f"Neither {second} nor {first} is better by more than chance"
    else:
        verdict = " is better than ".join((second, first) if metric.improves(change) else (first, second))
    figures = f"{metric.title} {values[0]} in {first}, {values[1]} in {second}"
    return f"{verdict}: {figures} ({metric.describe_change(difference)}; {difference.n:,} questions)."
