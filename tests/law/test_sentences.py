"""The ends of sentences and clauses: each abbreviation and each threshold at its exact value."""

from __future__ import annotations

import pytest

from exhibit.evidence import Span
from exhibit.law.figures import SHORT_MONTHS
from exhibit.law.sentences import extend_to_sentences, split_sentences, tile_clauses


def parts(text: str) -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text)]


@pytest.mark.parametrize(
    "text",
    [
        "See para. 5 of it.", "See paras. B and C.", "Given by Acme Bros. Kiln.", "Sold by J. K. Stone.",
        "Made in the U.S. Goods pass.", "It is 3.5 per cent.", "Use approx. five.", "Rent etc. Fees too.",
        "(a) 5 Goods.", "12. Goods.", "iv. Goods.", "(2.1) Goods.", "Due on Sept. 5.", "He said “stop.” and left.",
        "Acme v. Bolt.", "’s. 5 of it.",
    ],
)  # fmt: skip
def test_a_sentence_goes_on_after_these(text):
    assert parts(text) == [text]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("See the para.", "Goods pass."),
        ("It was made by Acme Inc.", "It binds."),
        ("No.", "Goods pass."),
        ("It is due.", "5 days pass."),
        ("Is it due?", "Yes."),
        ("It is due…", "Rent too."),
        ("They are 12.", "Goods pass."),
        ("The term (a year.)", "Goods pass."),
        ("It is due in may.", "Goods pass."),
        ("x " * 30 + "3.", "Goods pass."),
    ],
)
def test_a_sentence_ends_between_these(first, second):
    assert parts(f"{first} {second}") == [first, second]


def test_a_citation_belongs_to_the_sentence_before_it_unless_the_next_one_begins_with_it():
    assert parts("It ends. [1] The rest.") == ["It ends. [1]", "The rest."]
    assert parts("It ends. [1] says so.") == ["It ends.", "[1] says so."]
    assert parts("It ends.[1]The rest.") == ["It ends.[1]", "The rest."]
    assert parts("It ends.[1] says so.") == ["It ends.[1] says so."]
    assert parts("It ends. a) one b) two") == ["It ends.", "a) one b) two"]
    assert parts("It ends. i. one") == ["It ends.", "i. one"]


def test_months_are_cut_to_three_letters_but_may_is_whole():
    assert SHORT_MONTHS == (
        "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sept",
    )  # fmt: skip


def tiles(text: str, *, least: int, limit: int = 99) -> list[str]:
    return [text[start:end] for start, end in tile_clauses(text, 0, len(text), least=least, limit=limit)]


def test_clauses_tile_a_text_and_short_ones_stay_with_their_neighbour():
    text = "Rent is due; fees too. No: x"
    assert tiles(text, least=1) == ["Rent is due; ", "fees too. ", "No: ", "x"]
    assert tiles(text, least=2) == ["Rent is due; ", "fees too. ", "No: x"]
    assert tiles(text, least=5) == ["Rent is due; ", "fees too. ", "No: x"]
    assert tiles(text, least=6) == ["Rent is due; ", "fees too. No: x"]
    assert tiles(text, least=10) == ["Rent is due; ", "fees too. No: x"]
    assert tiles(text, least=13) == ["Rent is due; ", "fees too. No: x"]
    assert tiles(text, least=14) == [text]
    assert tiles("One\n\ntwo", least=1) == ["One\n\n", "two"]


def test_clauses_longer_than_the_limit_are_cut():
    assert tiles("abcdef", least=1, limit=6) == ["abcdef"]
    assert tiles("abcdefg", least=1, limit=6) == ["abcdef", "g"]
    assert tiles("ab. abcdefghijklm", least=1, limit=6) == ["ab. ", "abcdef", "ghijkl", "m"]


def test_only_the_stretch_that_is_asked_for_is_tiled():
    text = "One. Two. Three. Four."
    assert tile_clauses(text, 5, 17, least=1, limit=99) == [(5, 10), (10, 17)]
    assert tile_clauses(text, 5, 5, least=1, limit=99) == []


@pytest.mark.parametrize(
    ("words", "widest", "extended"),
    [
        ("sell", 900, "The Buyer may sell the boat."),
        ("The Buyer may sell the boat.", 900, "The Buyer may sell the boat."),
        ("boat. She", 900, "The Buyer may sell the boat. She bears: (a) freight; (b) duties."),
        ("bears", 900, "She bears: (a) freight; (b) duties."),
        ("freight", 20, "(a) freight; (b)"),
        ("The Buyer may sell the boat.", 10, "The Buyer may sell the boat."),
        ("may sell", 17, "may sell the"),
    ],
)
def test_a_span_is_extended_to_whole_sentences_as_far_as_there_is_room(words, widest, extended):
    text = "It is so. The Buyer may sell the boat. She bears: (a) freight; (b) duties. The rest is the Seller's."
    at = text.index(words)
    assert text[slice(*extend_to_sentences(text, Span(at, at + len(words)), widest=widest))] == extended


def test_a_list_after_a_colon_is_part_of_the_sentence_up_to_a_limit():
    items = [f"\n({letter}) the costs of work {letter} on the quay;" for letter in "abcdefghijklmnopqrstuvwxyz"]
    text = f"The Tenant bears the following:{''.join(items)}"
    extended = text[slice(*extend_to_sentences(text, Span(4, 10), widest=900))]
    assert extended.startswith("The Tenant bears the following:\n(a) the costs") and 500 < len(extended) <= 600
    assert extended.endswith("on the quay;")
