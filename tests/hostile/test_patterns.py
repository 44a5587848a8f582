"""No text makes a regular expression of the product take more than linear time."""

from __future__ import annotations

import re

import pytest

from tests.hostile import patterns

OUTSIDE = (
    "exhibit.schemas",
    "exhibit.storage",
    "exhibit.engine",
    "exhibit.evidence",
    "exhibit.hub",
    "exhibit.converters.fetching",
    "exhibit.evaluation.targets",
)
"""What is the first to read what comes from outside; the rest of the product takes its time."""


def slow(*, outside: bool) -> list[patterns.Slow]:
    """Return the regular expressions that take more than linear time.

    `outside` selects those that read external data, or the others.
    """
    checked = [one for one in patterns.expressions() if one.where not in patterns.SHORT]
    assert len(checked) > 300
    chosen = [one for one in checked if one.where.startswith(OUTSIDE) == outside]
    assert len(chosen) > 50
    return [found for one in chosen if (found := patterns.slowness(one)) is not None]


def test_what_reads_from_outside_is_linear_on_texts_made_from_its_own_expressions():
    assert slow(outside=True) == []


@pytest.mark.slow
def test_every_other_expression_is_linear_on_texts_made_from_itself():
    assert slow(outside=False) == []


@pytest.mark.parametrize(
    "written",
    [
        r"(a|a)*b",
        r"\d+\s*-\s*\d+",
        *(
            pytest.param(written, marks=pytest.mark.slow)
            for written in (r"\s*<think>", r"(?:<!--.*?-->\s*)*<html", r"<meta\b[^>]*>")
        ),
    ],
)
def test_what_is_not_linear_is_found_out(written, monkeypatch):
    monkeypatch.setattr(patterns, "_HOPELESS", 0.25)  # still twice what the slowest of those that are linear takes
    one = patterns.Expression("here", re.compile(written, re.DOTALL), frozenset({"search"}))
    assert patterns.slowness(one) is not None


@pytest.mark.parametrize("written", [r"(?<!\s)\s*<think>", r"[a-z]+", r"\s{0,9},\s{0,9}x", r"(?<!a)a*+b"])
def test_what_is_linear_passes(written):
    assert patterns.slowness(patterns.Expression("here", re.compile(written), frozenset({"search"}))) is None
