"""Essential coverage: parts of an answer, counted one by one."""

from __future__ import annotations

import pytest

from exhibit.evaluation.cases import Case, GoldPassage, Reply
from exhibit.evaluation.metrics import measure

PARTS = ("Delaware law governs the licence.", "Kentucky law governs the services.")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (f"{PARTS[0]} [1] {PARTS[1]} [2]", 1.0),
        (f"{PARTS[0]} [1]\n\nSources:\n[1] {PARTS[1]}", 0.5),
        ("Not found in provided documents", 0.0),
        (None, None),
    ],
)
def test_each_part_counts_once(answer: str | None, expected: float | None) -> None:
    gold = tuple(GoldPassage("a.pdf", text) for text in PARTS)
    case = Case(1, "Which laws govern them?", "", gold, reply=Reply(answer))
    assert measure([case], names=["essential_coverage"])["essential_coverage"] == [expected]


def test_a_question_of_one_part_has_none() -> None:
    case = Case(1, "Which law?", "", (GoldPassage("a.pdf", PARTS[0]),), reply=Reply(PARTS[0]))
    assert measure([case], names=["essential_coverage"])["essential_coverage"] == [None]
