"""CUAD's own metrics, computed by hand on three questions."""

from __future__ import annotations

import pytest

from training.published import Predicted, compute_published

LAW = "governed by the laws of Delaware."


def test_half_of_the_words_are_enough_and_every_quote_that_nobody_finds_is_missed() -> None:
    asked = [
        Predicted([LAW, "two years"], [("the laws of Delaware", 0.9), ("ten days", 0.2)]),
        Predicted([], [("nothing of the kind", 0.5)]),
        Predicted(["Alder Ltd"], [("between Alder Ltd and Birch, and all their assigns", 0.95)], is_parties=True),
    ]
    told = compute_published(asked)
    assert told.recall == pytest.approx(2 / 3) and (told.at_80, told.at_90) == (0.0, 0.0)
    assert told.area == pytest.approx(2 / 3), "both right ones come first"
    strict = compute_published([asked[0], asked[1], asked[2]._replace(is_parties=False)])
    assert strict.recall == pytest.approx(1 / 3) and strict.area < told.area


def test_precision_at_a_recall_is_the_best_from_there_on() -> None:
    right = [Predicted([f"quote {n}"], [(f"quote {n}", 0.9 - n / 20)]) for n in range(10)]
    wrong = [Predicted([], [("nothing", 0.6)])] * 5
    told = compute_published([*right, *wrong])
    assert told.recall == 1.0 and told.at_80 == told.at_90 == pytest.approx(10 / 15)
    assert compute_published([]).recall == 0.0
