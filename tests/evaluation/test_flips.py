"""Questions that were asked several times: what changes between their replies is counted."""

from __future__ import annotations

from dataclasses import replace

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.flips import Flips, flips_of
from exhibit.evidence import Span

GOLD = GoldPassage("lease.txt", "The rent is EUR 1,200.", ((Span(0, 22),),))
RIGHT = Passage("The rent is EUR 1,200.", "lease.txt", Span(0, 22))
OTHER = Passage("No pets.", "rules.txt", Span(0, 8))
CASE = Case(7, "What rent?", "EUR 1,200", (GOLD,))


def asked(*replies: Reply) -> list[Case]:
    return [replace(CASE, reply=reply) for reply in replies]


def test_replies_that_differ_from_the_commonest_are_counted():
    same = Reply("EUR 1,200 [1]", (RIGHT,))
    flips = flips_of(
        asked(same, same, Reply("Not found in provided documents", (OTHER,)), Reply("It is EUR 1,200 [1]", (RIGHT,)))
    )
    assert flips is not None and (flips.asked, flips.answer) == (4, 2)
    assert flips.verdict >= 1 and flips.files == 1


def test_citations_and_case_change_no_answer_and_errors_are_not_counted():
    flips = flips_of(asked(Reply("EUR 1,200 [1]", (RIGHT,)), Reply("eur 1,200", (RIGHT,)), Reply(error="503")))
    assert flips is not None and (flips.asked, flips.answer, flips.verdict) == (2, 0, 0)
    assert flips_of(asked(Reply("a"), Reply(error="503"))) is None


def test_the_headline_says_how_many_questions_flip():
    flips = Flips()
    steady = Reply("EUR 1,200 [1]", (RIGHT,))
    flips.add(asked(steady, steady))
    flips.add([replace(case, id=8) for case in asked(steady, Reply("Not found in provided documents", (OTHER,)))])
    assert flips.in_words("leases").startswith("leases: 1 of 2 questions flip between repetitions")
    assert [one.id for one in flips.counts.most] == [8]
