"""Only the part of a reply that has the same kind as the expected answer is compared with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.evaluation.metrics import Options, answer_alike_f1
from tests.evaluation.metrics.build import apply, case, quote

GOLD = "The Tenant shall pay a rent of £900 on the first day of each month, in advance."


def alike(expected: str, reply: str, *, impossible: bool = False) -> float | None:
    row = case([quote(GOLD)], [GOLD])
    row = replace(row, truth=expected, is_impossible=impossible, reply=replace(row.reply, answer=reply))
    [value] = apply(answer_alike_f1, [row], Options())["answer_alike_f1"]
    return value


@pytest.mark.parametrize(
    ("expected", "reply", "score"),
    [
        ("£900", f"£900: “{GOLD}” [1]", 1.0),
        ("£900", f'£900 a month: "{GOLD}" [1]', 2 / 4),
        ("£900", "£900. The lease says so in section 4.", 1.0),
        ("£900", "£800. It was £900 before.", 0.0),
        ("£900", f"“{GOLD}” [1]", 2 / 18),  # nothing but a quotation: it is compared
        ("Yes", f"Yes: “{GOLD}” [1]", 1.0),
        ("Yes, in advance", "yes, it must", 1.0),
        ("Yes", f"No: “{GOLD}” [1]", 0.0),
        ("Yes", f"“{GOLD}” [1]", 0.0),
        (GOLD, f"£900: “{GOLD}” [1]", 1.0),
        (GOLD, GOLD, 1.0),
        ("£900", "I could not find an answer in the documents.", 0.0),
    ],
)
def test_like_is_compared_with_like(expected: str, reply: str, score: float) -> None:
    assert alike(expected, reply) == pytest.approx(score)


def test_nothing_is_compared_where_nothing_is_expected() -> None:
    assert alike("", "£900") is None
    assert alike("The documents do not say.", "£900", impossible=True) is None
