"""A question "How many …?" is answered by counting, where a clause lists the items and the list is complete."""

from __future__ import annotations

import pytest

from exhibit.law.counting import asked_to_count, count_items

USES = "The Tenant has these permitted uses of the yard: (a) storing boats; (b) washing them; and (c) selling paint."


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("How many permitted uses are listed?", "permitted uses"),
        ("In the yard lease, how many trusts sign?", "trusts sign"),
        ("For how many years must books be kept?", "years"),
        ("How many events of default does the loan name?", "events"),
        ("How many trusts?", "trusts"),
        ("How much is the rent?", ""),
        ("Which uses are permitted?", ""),
    ],
)
def test_the_noun_that_a_question_counts(question: str, noun: str) -> None:
    assert asked_to_count(question) == noun


@pytest.mark.parametrize(
    ("noun", "text", "count"),
    [
        ("permitted uses", USES, 3),
        ("use", USES.replace(" (b) washing them;", " (b) washing them, where (i) dry or (ii) clean;"), 3),
        ("trusts", "The selling trusts are (1) the Alder Trust, (2) the Birch Trust or (3) the Cedar Trust.", 3),
        ("events", "Events of default: (i) non-payment; (ii) a false statement; and (iii) insolvency.", 3),
        ("boats", USES, None),
        ("uses", USES.replace("and (c)", "(c)"), None),
        ("uses", USES.replace("(b)", "(d)"), None),
        ("uses", USES.replace("(a) storing boats; ", ""), None),
        ("uses", "The uses are (a) those above.", None),
        ("uses", "The uses are storing, washing and selling.", None),
        ("uses", USES[USES.index("(a)") :], None),
    ],
)
def test_only_a_complete_list_that_the_noun_announces_is_counted(noun: str, text: str, count: int | None) -> None:
    assert count_items(noun, text) == count
