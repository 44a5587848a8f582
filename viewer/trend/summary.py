"""What a CI shows of the trend: a summary in Markdown, and checks as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from exhibit.evaluation.terminal import Scale
from exhibit.viewer.trend.explain import Explanation
from exhibit.viewer.trend.gates import Check
from exhibit.viewer.trend.sentences import headline, metric_title, sentences, value
from exhibit.viewer.trend.series import Series

_QUESTIONS = 10
"""Fallen questions that the summary lists; the page has more."""
_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown(
    series: Sequence[Series],
    metrics: dict[str, list[str]],
    explanations: Sequence[Explanation],
    checks: Sequence[Check],
    scale: Scale,
) -> str:
    """Return the summary: what stands, the newest figures with their bands, and each check."""
    standing = [one for one in explanations if one.regression.stands]
    lines = ["## Results over time", ""]
    lines += [
        f"**{len(standing)} regression{'s' if len(standing) != 1 else ''}**" if standing else "No regression stands.",
        "",
    ]
    for told in standing:
        lines += [f"### {plain(headline(told))}", "", *(f"- {plain(sentence)}" for sentence in sentences(told)), ""]
        for fallen in told.questions[:_QUESTIONS]:
            what = fallen.error or f"{value(told.metric, fallen.before)} → {value(told.metric, fallen.after)}"
            lines.append(
                f"- question {plain(str(fallen.id))}, {plain(fallen.document or 'no document')}: {plain(what)}"
            )
        lines.append("")
    for one in series:
        lines += [
            f"### {plain(one.title)}: {plain(one.runs[-1].name)}",
            "",
            *_table(one, metrics[one.title], scale),
            "",
        ]
    if checks:
        lines += ["### Checks", "", "| | check | seen |", "|---|---|---|"]
        lines += [
            f"| {'✅' if c.holds else '❌'} | {plain(c.suite)}: {plain(c.name)} | {plain(c.told)} |" for c in checks
        ]
    return "\n".join(lines).rstrip() + "\n"


def _table(series: Series, metrics: Sequence[str], scale: Scale) -> list[str]:
    lines = ["| metric | mean | 95% interval | n | band | before |", "|---|---|---|---|---|---|"]
    for metric in metrics:
        means = series.means(metric)
        newest = means[-1]
        if newest is None or newest.mean is None:
            continue
        ends = " to ".join(value(metric, end) for end in newest.ci95) if newest.ci95 else "–"
        bands = scale.of(series.dataset, metric)
        band = bands.band(newest.mean) if bands else ""
        before = next((mean for mean in reversed(means[:-1]) if mean and mean.mean is not None), None)
        old = value(metric, before.mean) if before else "–"
        lines.append(
            f"| {metric_title(metric)} | {value(metric, newest.mean)} | {ends} | {newest.n} | {band} | {old} |"
        )
    return lines


def plain(text: str) -> str:
    """Return text that Markdown shows as it stands: names and questions come from outside."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def junit(checks: Sequence[Check]) -> str:
    """Return the checks as JUnit XML, a suite a dataset."""
    ordered = sorted(checks, key=lambda check: check.suite)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuites name="exhibit" tests="{len(checks)}" failures="{_failed(checks)}">')
    for suite, group in groupby(ordered, key=lambda check: check.suite):
        cases = list(group)
        lines.append(f'<testsuite name={_attribute(suite)} tests="{len(cases)}" failures="{_failed(cases)}">')
        for case in cases:
            start = f"<testcase classname={_attribute(suite)} name={_attribute(case.name)}"
            words = f"<failure message={_attribute(case.told)}>{escape(_clean(case.told))}</failure>"
            lines.append(f"{start}/>" if case.holds else f"{start}>{words}</testcase>")
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _failed(checks: Sequence[Check]) -> int:
    return sum(not check.holds for check in checks)


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Return text without characters that XML cannot hold."""
    return _NO_XML.sub("\ufffd", text)
