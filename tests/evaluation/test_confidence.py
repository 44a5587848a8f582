"""Confidence: counted by hand."""

from __future__ import annotations

import pytest

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.confidence import (
    compute_auroc,
    compute_weighted_means,
    confidence_of,
    describe,
    describe_confidence,
)
from exhibit.schemas.run import Confidence

TOLD = [(0.9, True), (0.8, False), (0.8, True), (0.3, False), (0.1, True)]


def test_compute_auroc_counts_ties_as_half():
    # 0.9 beats two; 0.8 beats one and equals one; 0.1 beats none
    assert compute_auroc(TOLD) == (2 + 1.5 + 0) / 6
    assert compute_auroc([(0.5, True), (0.5, False)]) == 0.5
    assert compute_auroc([(0.5, True)]) is None


def test_confidence_of_is_none_without_confidence_or_after_error():
    def case(impossible: bool, **reply) -> Case:
        return Case(1, "?", "", is_impossible=impossible, reply=Reply(**reply))

    cases = [case(False, confidence=0.9), case(True, confidence=0.2), case(True), case(True, confidence=1.0, error="x")]
    assert [confidence_of(one) for one in cases] == [0.9, 0.2, None, None]
    assert describe([]) is None


def test_compute_weighted_means_weights_by_confidence():
    values = {"answered_rightly": [1.0, 0.0, None, 1.0], "map": [None, None, 0.5, 0.5]}
    means = compute_weighted_means(values, [0.9, 0.3, 0.5, None])
    assert means == {"answered_rightly": pytest.approx(0.75), "map": 0.5}
    assert compute_weighted_means(values, [None] * 4) == {}
    told = Confidence.model_validate(describe(TOLD, means))
    assert told.weighted == means and "weighted by it: answered_rightly 0.750" in describe_confidence("x", told)
