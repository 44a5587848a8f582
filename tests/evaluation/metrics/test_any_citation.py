"""Whether an answer cites anything, how long it is, and how long it took."""

from __future__ import annotations

import pytest

from exhibit.evaluation.metrics import Options, answer_length, any_citation, latency
from tests.evaluation.metrics.build import apply, at, case, gold


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The rent is £900 [1].", 1),
        ("The rent is £900 [1][2].", 1),
        ("The rent is £900 [1, 2].", 1),
        ("Offers are made in writing [Part 36#page=Offers to Settle].", 1),
        ("The rent is £900 [Lease of Mill House.pdf].", 1),
        ("The rent is £900 [lease].", 1),
        ("The rent is £900 [LEASE.pdf].", 1),
        ("The term is set out there [nda].", 1),
        ("The rent is [amount] and the fee is [***].", 0),
        ("See [2024] EWCA Civ 123 at [45].", 0),
        ("The rent is £900.", 0),
        ("", 0),
        ("Not found in provided documents.", None),
        (None, None),
    ],
)
def test_any_citation(answer, expected):
    row = case([gold((0, 9))], [at(0, 9, "nda.txt")], answer=answer)
    assert apply(any_citation, [row], Options()) == {"any_citation": [expected]}


def test_length_and_latency():
    rows = [
        case(answer="£900 [1]", seconds=0.25),
        case(answer="", seconds=0.0),
        case(),
        case(answer="£900", seconds=0.25, error="no reply"),
    ]
    assert apply(answer_length, rows, Options()) == {"answer_length": [8, 0, None, None]}
    assert apply(latency, rows, Options()) == {"latency": [0.25, 0, None, None]}
    assert apply(any_citation, rows, Options()) == {"any_citation": [1, 0, None, None]}
