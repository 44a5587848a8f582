"""Abstention: right refusals and wrong ones."""

from __future__ import annotations

from exhibit.evaluation.metrics import Options, abstention
from tests.evaluation.metrics.build import apply, case

REFUSAL = "Not found in provided documents."


def test_by_hand():
    rows = [
        case(answer=REFUSAL, is_impossible=True),
        case(answer="The rent is £900 [1].", is_impossible=True),
        case(answer=REFUSAL),
        case(answer="The rent is £900 [1]."),
        case(answer=None, is_impossible=True),
        case(answer=None),
        case(answer=REFUSAL, error="no reply", is_impossible=True),
        case(answer=REFUSAL, error="no reply"),
    ]
    assert apply(abstention, rows, Options()) == {
        "abstention_accuracy": [1, 0, None, None, None, None, None, None],
        "false_refusal_rate": [None, None, 1, 0, None, None, None, None],
        "refusal_unsure": [0, 0, 0, 0, None, None, None, None],
    }
