"""What a CI shows of the trend: a summary in Markdown, and checks as JUnit XML."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exhibit.evaluation.metrics import about
from exhibit.evaluation.terminal import Bound, Scale
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.drawing import Record
from exhibit.viewer.page import render
from exhibit.viewer.trend.changes import Fall, Regression
from exhibit.viewer.trend.explain import Changed, Explanation
from exhibit.viewer.trend.series import Series


def markdown(
    series: Sequence[Series],
    metrics: Mapping[str, Sequence[str]],
    explanations: Sequence[Explanation],
    checks: Sequence[Check],
    scale: Scale,
) -> str:
    """Return the summary: what stands, the newest figures with their bands, and each check."""
    return render(
        "summary.md.j2",
        standing=[one for one in explanations if one.regression.stands],
        series=[(one, figures(one, metrics[one.title], scale)) for one in series],
        checks=checks,
        headline=headline,
        sentences=sentences,
        value=value,
        metric_title=metric_title,
    )


def junit(checks: Sequence[Check]) -> str:
    """Return the checks as JUnit XML, a suite a dataset."""
    return render("junit.xml.j2", checks=checks)


def figures(series: Series, metrics: Sequence[str], scale: Scale) -> list[Record]:
    """Return of each metric the newest mean, its band, the mean before, and the best."""
    rows: list[Record] = []
    for metric in metrics:
        means = [mean for mean in series.means(metric) if mean and mean.mean is not None]
        newest = series.means(metric)[-1]
        if newest is None or newest.mean is None:
            continue
        bands = scale.of(series.dataset, metric)
        known = sorted(mean.mean or 0.0 for mean in means)
        told: Record = {"metric": metric, "newest": newest, "before": means[-2].mean if len(means) > 1 else None}
        told |= {"best": known[0 if about(metric).better == "less" else -1]}
        told |= {"band": bands.band(newest.mean) if bands else ""}
        rows.append(told | {"bounds": f"good {bands.good}, poor {bands.poor}" if bands else ""})
    return rows


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


REGRESSION, BAND = "regression", "band"
_EXPRESSION = re.compile(r"(?:([^:<>=]++):\s*)?([\w.@-]++)\s*((?:>=|<=|>|<).*)")
_FAILED = "failed"
"""The name under which the share of failed questions is asked for."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: whether it holds, and what was seen."""

    suite: str
    name: str
    told: str
    holds: bool


def parse_gate(text: str) -> str:
    """Return what `--fail-on` was given; raise what a parser of flags reports where it is no gate."""
    try:
        return text if text in (REGRESSION, BAND) or _parts(text) else ""
    except ToolkitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def check_gates(
    gates: Sequence[str], series: Sequence[Series], regressions: Sequence[Regression], scale: Scale
) -> list[Check]:
    """Return every check of every gate, on the newest run of each series; raise where a gate has nothing to look at."""
    checks = []
    for gate in gates:
        if gate == REGRESSION:
            results = list(_regression_checks(series, regressions))
        elif gate == BAND:
            results = list(_band_checks(series, scale))
        else:
            results = list(_expression_checks(gate, series))
        if not results:
            raise ToolkitError(f"--fail-on {gate!r}: no newest run has what it asks for, so it would never fail")
        checks += results
    return checks


def _regression_checks(series: Sequence[Series], regressions: Sequence[Regression]) -> Iterator[Check]:
    for one in series:
        mine = [regression for regression in regressions if regression.series is one and regression.stands]
        told = "; ".join(
            f"{regression.run} is worse than {regression.before} and that still stands" for regression in mine
        )
        yield Check(one.title, "no regression", told or "none stands", not mine)


def _band_checks(series: Sequence[Series], scale: Scale) -> Iterator[Check]:
    for one in series:
        newest = one.runs[-1]
        for metric, estimate in newest.means_by_dataset[one.dataset].items():
            bands = scale.of(one.dataset, metric)
            if bands is None or estimate.mean is None:
                continue
            band = bands.band(estimate.mean)
            told = f"{about(metric).figure(estimate.mean)} is {band.lower()} (poor: {bands.poor}) in {newest.name}"
            yield Check(one.title, f"{metric} is not poor", told, band != "Poor")


def _expression_checks(gate: str, series: Sequence[Series]) -> Iterator[Check]:
    dataset, metric, bound = _parts(gate)
    for one in series:
        if dataset not in (None, one.dataset):
            continue
        newest = one.runs[-1]
        value = _value(one, metric)
        if value is not None:
            told = f"{metric} is {value:.4g} in {newest.name}"
            yield Check(one.title, f"not {metric} {bound}", told, not bound.holds(value))


def _value(series: Series, metric: str) -> float | None:
    newest = series.runs[-1]
    if metric == _FAILED:
        table = newest.tables[series.dataset]
        return sum(map(bool, table.failed)) / len(table.ids) if table.ids else None
    estimate = newest.means_by_dataset[series.dataset].get(metric)
    return estimate.mean if estimate else None


def _parts(text: str) -> tuple[str | None, str, Bound]:
    match = _EXPRESSION.fullmatch(text.strip())
    if not match:
        raise ToolkitError(
            f"--fail-on {text!r}: give {REGRESSION}, {BAND}, or a bound such as 'answer_f1 < 0.5', "
            f"'cuad:char_recall@8 < 0.6' or '{_FAILED} > 0.02'"
        )
    return match[1] and match[1].strip(), match[2].replace("-", "_"), Bound.parse(match[3], where=f"--fail-on {text!r}")
