"""What makes a CI stop: `--fail-on regression`, `--fail-on band`, `--fail-on 'cuad:char_recall@8 < 0.6'`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhibit.evaluation.metrics import about
from exhibit.evaluation.terminal import Bound, Scale
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.trend.changes import Regression
from exhibit.viewer.trend.series import Series

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
    """Return a gate as it was given; raise an error where it is none."""
    if text not in (REGRESSION, BAND):
        _parts(text)
    return text


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
