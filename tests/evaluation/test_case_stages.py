"""The stages at which a question's gold can be lost, from the reply to the row of the run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.outcomes import find_outcome
from exhibit.evaluation.replies import read_reply
from exhibit.evaluation.scoring import format_row
from exhibit.evaluation.stages import find_first_loss, stages_of
from exhibit.evidence import Span
from exhibit.schemas.run import QUESTION

CLAUSES = (
    "The Beekeeper brings forty jars of heather honey to the Hall at Martinmas.",
    "The Smith shoes every horse of the Hall and is paid a groat for each.",
    "The Thatcher mends the roof of the barn before the first frost of the year.",
    "The Gooseherd keeps the flock off the churchyard and out of the barley.",
)
TEXT = "\n".join(CLAUSES)


def span(words: str) -> Span:
    return Span(TEXT.index(words), TEXT.index(words) + len(words))


PASSAGES = tuple(Passage(clause, "hall.txt", span(clause)) for clause in CLAUSES)
GOLD = GoldPassage("hall.txt", CLAUSES[2], ((span(CLAUSES[2]),),), how="exact")
CASE = Case(7, "Who mends the roof?", "The Thatcher.", (GOLD,), filename="hall.txt")


def asked(*golds: GoldPassage, **reply: Any) -> Case:
    given = {"answer": "The Thatcher mends it [3].", "passages": PASSAGES, **reply}
    return replace(CASE, gold=golds or CASE.gold, reply=Reply(**given))


@pytest.mark.parametrize(
    ("reply", "lost_at"),
    [
        ({"selected": 3}, None),
        ({"reranked": (3, 1, 2), "selected": 3}, None),
        ({"reranked": (1, 2, 4)}, "reranked"),
        ({"context": (1, 2), "answer": "The Thatcher mends it."}, "context"),
        ({"passages": PASSAGES[:2], "answer": "The Smith [1]."}, "retrieved"),
        ({"answer": "The Thatcher mends it [1]."}, "cited"),
        ({"answer": "Not found in provided documents"}, "answered"),
        ({"passages": (), "answer": "The Thatcher mends it."}, None),
    ],
)
def test_stages_of_gives_the_stage_that_loses_gold(reply: dict[str, Any], lost_at: str | None) -> None:
    answer = {"answer": "The Thatcher mends it."} if "reranked" in reply else {}
    case = asked(**{**answer, **reply})
    (stages,) = stages_of(case, outcome=find_outcome(case).outcome)
    assert stages["lost_at"] == lost_at


def test_impossible_and_failed_questions_have_no_gold_stages() -> None:
    assert stages_of(replace(asked(), is_impossible=True)) == []
    assert stages_of(asked(error="timeout")) == []


def test_find_first_loss_returns_earliest_stage_of_several_gold_passages() -> None:
    absent = GoldPassage("hall.txt", "Nobody wrote these words.", absent=True)
    other = GoldPassage("hall.txt", CLAUSES[0], ((span(CLAUSES[0]),),))
    both = stages_of(asked(GOLD, other, passages=PASSAGES[1:], answer="The Thatcher mends it."))
    assert [one["lost_at"] for one in both] == [None, "retrieved"]
    assert find_first_loss(both) == "retrieved"
    assert find_first_loss(stages_of(asked(absent, other, passages=PASSAGES[1:]))) == "page"
    assert find_first_loss([]) is None


def test_format_row_writes_gold_stages_and_reranked_numbers() -> None:
    case = asked(answer="The Thatcher mends it.", reranked=(2, 1))
    finding = find_outcome(case)
    stages = stages_of(case, outcome=finding.outcome)
    fields = json.loads(format_row(case, finding, stages, tag="t"))
    fields.pop("trec")
    row = QUESTION.validate_json(json.dumps(fields), strict=True)
    assert row.lost_at == "reranked"
    assert row.gold_stages[0]["reranked"] == {"rank": None, "before": 3}
    assert row.reply.reranked == [2, 1]


@pytest.mark.parametrize(
    "reranked",
    [[3, 1], [CLAUSES[2], CLAUSES[0]], [{"content": f" {CLAUSES[2]}"}, {"text": "of no list"}, {"text": CLAUSES[0]}]],
)
def test_read_reply_matches_reranked_passages_by_number_or_text(reranked: list[object]) -> None:
    row = {"id": 7, "answer": "The Thatcher.", "passages": list(CLAUSES), "reranked": reranked}
    assert read_reply(row, lambda _: None).reranked == (3, 1)
    assert read_reply({**row, "reranked": None}, lambda _: None).reranked is None
    assert read_reply({**row, "reranked": [17, 4]}, lambda _: None).reranked == (4,)
