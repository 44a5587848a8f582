"""Confidence computed by hand."""

from __future__ import annotations

import pytest

from exhibit.evaluation.cases import Case
from exhibit.evaluation.confidence import compute_auroc, describe, describe_confidence
from exhibit.schemas.run import Confidence

PAIRS = [(0.9, True), (0.8, False), (0.8, True), (0.3, False), (0.1, True)]


def test_compute_auroc_counts_ties_as_half():
    # 0.9 beats two; 0.8 beats one and equals one; 0.1 beats none
    assert compute_auroc(PAIRS) == (2 + 1.5 + 0) / 6
    assert compute_auroc([(0.5, True), (0.5, False)]) == 0.5
    assert compute_auroc([(0.5, True)]) is None


def test_describe_weights_means_by_confidence():
    cases = [Case(number, "?", "", is_impossible=number == 1) for number in range(4)]
    values = {"answered_rightly": [1.0, 0.0, None, 1.0], "map": [None, None, 0.5, 0.5]}
    described = describe(cases, [0.9, 0.3, 0.5, None], values)
    assert described["weighted"] == {"answered_rightly": pytest.approx(0.75), "map": 0.5}
    assert (described["questions"], described["answerable"], described["auroc"]) == (3, 2, 1.0)
    assert describe(cases, [None] * 4, values) == {}
    line = describe_confidence("x", Confidence.model_validate(described))
    assert "weighted by it: answered_rightly 0.750" in line
