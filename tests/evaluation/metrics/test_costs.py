"""The cost of a reply, the time to its first token, and the correctness of its pages, in hand-made tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.evaluation.cases import Passage, Reply
from exhibit.evaluation.metrics import Options, claim_citations, cost, first_token, page_accuracy, tokens
from exhibit.evidence import Span
from tests.evaluation.metrics.build import apply, case, gold

OPTIONS = Options()


def told(**fields):
    return replace(case(), reply=Reply(answer="Yes.", **fields))


def test_tokens_are_the_system_s_own_count():
    rows = [told(usage={"tokens_in": 120.0, "tokens_out": 30.0}), told(usage={"tokens_in": 0.0}), told()]
    failed = told(usage={"tokens_in": 7.0}, error="HTTP 500")
    assert apply(tokens, [*rows, failed], OPTIONS) == {
        "tokens_in": [120.0, None, None, None],
        "tokens_out": [30.0, None, None, None],
    }


@pytest.mark.parametrize(
    ("usage", "prices", "expected"),
    [
        ({"cost": 0.25, "tokens_in": 1e6}, (1.0, 1.0), 0.25),  # what the system tells comes first
        ({"tokens_in": 1_000_000.0, "tokens_out": 500_000.0}, (0.5, 2.0), 1.5),  # 0.5 + 1.0
        ({"tokens_out": 1000.0}, (0.5, 2.0), 0.002),
        ({"tokens_in": 1000.0}, (0.5, 2.0), 0.0005),
        ({"tokens_in": 1000.0}, None, None),
        ({}, (0.5, 2.0), None),
    ],
)
def test_cost_is_told_or_counted_by_price(usage, prices, expected):
    assert apply(cost, [told(usage=usage)], Options(prices=prices)) == {"cost": [expected]}


def test_the_first_words_of_a_stream():
    assert apply(first_token, [told(first_token=0.2), told()], OPTIONS) == {"first_token": [0.2, None]}


# ---------------------------------------------------------------- citations claim by claim

RENT, NOTICE = "The rent is £900 a month, payable in advance.", "Notice of ninety days is given in writing."


@pytest.mark.parametrize(
    ("answer", "precision", "recall"),
    [
        ("The rent is £900 a month [1].", 1.0, 1.0),
        ("The rent is £900 a month [2].", 0.0, 0.0),
        ("The rent is £950 a month [1].", 0.0, 0.0),  # a number that the passage has not
        ("The rent is £900 a month [1]. Notice of ninety days is given in writing [1].", 0.5, 0.5),
        ("The rent is £900 a month [1]. Notice of ninety days is given in writing [2]. The lease ends in March.", 1.0,
         2 / 3),
        ("The rent is £900 a month [1][2].", 0.5, 1.0),  # the second adds nothing
        ("The rent is £900 a month [7].", 0.0, 0.0),  # there is no such passage
        ("The rent is £900 a month.", None, 0.0),
        ("Not found in provided documents", None, None),
        (None, None, None),
    ],
)  # fmt: skip
def test_each_citation_is_held_against_its_own_claim(answer, precision, recall):
    row = case(passages=[RENT, NOTICE], answer=answer, question="What is agreed?")
    found = apply(claim_citations, [row], OPTIONS)
    assert found == {"claim_citation_precision": [precision], "claim_citation_recall": [pytest.approx(recall)]}


def test_without_passages_no_citation_can_be_held_against_anything():
    rows = [case(answer="The rent is £900 [1]."), case(passages=[RENT], answer="The rent [1].", error="HTTP 500")]
    assert apply(claim_citations, rows, OPTIONS)["claim_citation_recall"] == [None, None]


# ---------------------------------------------------------------- pages


def on(told_page, pages=(), file="lease.pdf", overlap=None):
    return Passage("words", file, Span(0, 5), told_page=told_page, pages=pages, box_overlap=overlap)


@pytest.mark.parametrize(
    ("passages", "answer", "page", "of_gold", "box"),
    [
        ([on(3, (3,)), on(4, (5, 6))], None, 0.5, 0.5, None),  # all, where the answer cites none
        ([on(3, (3,)), on(4, (5, 6))], "So it is [1].", 1.0, 1.0, None),
        ([on(3, (3,)), on(4, (5, 6))], "So it is [2].", 0.0, 0.0, None),
        ([on(6, (5, 6))], None, 1.0, 0.0, None),  # the page is right, but not the gold's
        ([on(3, (3,), file="other.pdf")], None, 1.0, None, None),
        ([on(None, (3,))], None, None, None, None),  # no page is given
        ([on(3)], None, None, 1.0, None),  # its words were not found, so the page cannot be checked
        ([on(3, (3,), overlap=0.5), on(3, (3,), overlap=0.0), on(3, (3,))], None, 1.0, 1.0, 0.25),
    ],
)
def test_pages_and_boxes_as_the_system_gives_them(passages, answer, page, of_gold, box):
    golds = [replace(gold((0, 5)), pages=(3,))]
    found = apply(page_accuracy, [case(golds, passages, answer=answer)], OPTIONS)
    assert found == {"page_accuracy": [page], "gold_page_accuracy": [of_gold], "box_accuracy": [box]}
