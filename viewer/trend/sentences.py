"""A regression in words: the same ones on the page, in the CI's summary and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import about
from exhibit.viewer.trend.changes import Fall
from exhibit.viewer.trend.explain import Changed, Explanation

_NAMED = 3
"""Documents, labels and settings that a sentence names."""


def metric_title(metric: str) -> str:
    """Return a metric's name in words, with the depth it is read at."""
    depth = metric.partition("@")[2]
    return about(metric).title + (f", k = {depth}" if depth else "")


def value(metric: str, number: float | None) -> str:
    """Return a value with its unit: shares in per cent."""
    told = about(metric)
    if number is None:
        return "–"
    sign = "%" if told.unit == "share" else f" {told.sign}" if told.sign else ""
    return f"{told.in_words(number)}{sign}"


def change(metric: str, number: float | None) -> str:
    """Return a change with its sign; a share's in percentage points."""
    if number is None:
        return "–"
    words = about(metric).in_words(abs(number))
    return f"{'−' if number < 0 else '+'}{words}"


def headline(explanation: Explanation) -> str:
    """Return which run is worse than which, and on what."""
    regression = explanation.regression
    what = f"{regression.run} is worse than {regression.before} on {regression.series.title}"
    if not regression.falls:
        return f"{what}: {regression.more_failed} more questions failed"
    return f"{what}: {fall_in_words(regression.falls[0])}"


def fall_in_words(fall: Fall) -> str:
    """Return how a metric changed at the run, and its level where only that shows it."""
    step = fall.step
    way = "fell" if (step.mean or 0) < 0 or (fall.level and fall.level[1] < fall.level[0]) else "rose"
    if not fall.by_step and fall.level:
        old, new = (value(fall.metric, side) for side in fall.level)
        return f"{metric_title(fall.metric)} {way} slowly, from a level of {old} to one of {new} from this run on"
    old, new = value(fall.metric, step.first), value(fall.metric, step.second)
    ends = f", 95% interval {' to '.join(change(fall.metric, end) for end in step.ci95)}" if step.ci95 else ""
    return f"{metric_title(fall.metric)} {way} from {old} to {new} ({change(fall.metric, step.mean)}{ends})"


def sentences(explanation: Explanation) -> list[str]:
    """Return what is known of a regression: how many questions, where they cluster, what was changed, how it stands."""
    regression = explanation.regression
    asked = len(regression.series.tables[regression.at].ids)
    told = [f"{len(explanation.questions)} of {asked} questions got worse{_where(explanation)}."]
    if regression.falls and regression.more_failed:
        told.append(f"{regression.more_failed} more questions failed than before.")
    others = [metric_title(fall.metric) for fall in regression.falls[1:]]
    if others:
        told.append(f"Also worse: {'; '.join(others)}.")
    told.append(_changed(explanation.changed))
    told.append("It still stands in the newest run." if regression.stands else "It has been made good since.")
    if regression.falls and all(fall.usual is None for fall in regression.falls):
        told.append("There are too few runs to know how much the figures move when nothing is changed.")
    return told


def _where(explanation: Explanation) -> str:
    first = [share for share in explanation.documents[:_NAMED] if share.fell > 1]
    parts = [f"{share.fell} of {share.asked} about {share.name}" for share in first]
    labels = [f"{share.fell} of {share.asked} with {share.name}" for share in explanation.labels[:1] if share.fell > 1]
    return f": {', '.join([*parts, *labels])}" if parts or labels else ""


def _changed(changed: Sequence[Changed]) -> str:
    if not changed:
        return "Nothing that is recorded was changed: the same settings, commit, data and machine."
    shown = [f"{one.name} from {_short(one.before)} to {_short(one.after)}" for one in changed[:_NAMED]]
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"Changed since the run before: {', '.join(shown)}{more}."


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
