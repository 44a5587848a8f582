"""Checks the newest runs against the conditions of `--fail-on` (gates), for CI."""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exhibit.evaluation.bands import Bound, Scale
from exhibit.evaluation.metrics import describe_metric
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.trend.changes import Regression, Series

REGRESSION, BAND = "regression", "band"
_EXPRESSION = re.compile(r"(?:([^:<>=]++):\s*)?([\w.@-]++)\s*((?:>=|<=|>|<).*)")
_FAILED = "failed"
"""The name of the share of failed questions in a gate."""


@dataclass(frozen=True)
class Check:
    """One check of a series of runs, for CI: its name, the observed values as text, and whether it passed."""

    suite: str
    name: str
    told: str
    holds: bool


def parse_gate(text: str) -> str:
    """Return a condition of `--fail-on`, such as `recall@10 >= 0.8`; raise ArgumentTypeError if it is invalid."""
    try:
        return text if text in (REGRESSION, BAND) or _parse_parts(text) else ""
    except ToolkitError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def check_gates(
    gates: Sequence[str], series: Sequence[Series], regressions: Sequence[Regression], scale: Scale
) -> list[Check]:
    """Check the newest run of each series against the `--fail-on` conditions (gates), and return all results.

    A gate is `regression`, `band` (fails if a metric is in the band `Poor`), or a comparison such as
    `recall@10 >= 0.8`. Raise an error if no newest run has the figures that a gate needs.
    """
    checks = []
    for gate in gates:
        if gate == REGRESSION:
            results = list(_check_regressions(series, regressions))
        elif gate == BAND:
            results = list(_check_bands(series, scale))
        else:
            results = list(_check_expression(gate, series))
        if not results:
            raise ToolkitError(
                f"--fail-on {gate!r}: the newest runs have no such figure, so the check could never fail; name another"
            )
        checks += results
    return checks


def _check_regressions(series: Sequence[Series], regressions: Sequence[Regression]) -> Iterator[Check]:
    for one in series:
        mine = [regression for regression in regressions if regression.series is one and regression.stands]
        listed = "; ".join(
            f"{regression.run} is worse than {regression.before}, and the newest run still is" for regression in mine
        )
        yield Check(one.title, "no regression", listed or "none stands", not mine)


def _check_bands(series: Sequence[Series], scale: Scale) -> Iterator[Check]:
    for one in series:
        newest = one.runs[-1]
        for metric, estimate in newest.means_of(one.dataset).items():
            bands = scale.of(one.dataset, metric)
            if bands is None or estimate.mean is None:
                continue
            band = bands.band(estimate.mean)
            mean = describe_metric(metric).figure(estimate.mean)
            finding = f"{mean} is {band.lower()} (poor: {bands.poor}) in {newest.name}"
            yield Check(one.title, f"{metric} is not poor", finding, band != "Poor")


def _check_expression(gate: str, series: Sequence[Series]) -> Iterator[Check]:
    dataset, metric, bound = _parse_parts(gate)
    for one in series:
        if dataset not in (None, one.dataset):
            continue
        newest = one.runs[-1]
        value = _find_value(one, metric)
        if value is not None:
            finding = f"{metric} is {value:.4g} in {newest.name}"
            yield Check(one.title, f"not {metric} {bound}", finding, not bound.holds(value))


def _find_value(series: Series, metric: str) -> float | None:
    newest = series.runs[-1]
    if metric == _FAILED:
        table = newest.tables[series.dataset]
        return sum(map(bool, table.failed)) / len(table.ids) if table.ids else None
    estimate = newest.means_of(series.dataset).get(metric)
    return estimate.mean if estimate else None


def _parse_parts(text: str) -> tuple[str | None, str, Bound]:
    match = _EXPRESSION.fullmatch(text.strip())
    if not match:
        raise ToolkitError(
            f"--fail-on {text!r}: write {REGRESSION}, {BAND}, or a bound such as 'answer_f1 < 0.5', "
            f"'cuad:char_recall@8 < 0.6' or '{_FAILED} > 0.02'"
        )
    return match[1] and match[1].strip(), match[2].replace("-", "_"), Bound.parse(match[3], where=f"--fail-on {text!r}")
