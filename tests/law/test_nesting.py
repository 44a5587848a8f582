"""Nesting: each heading is assigned to a parent, with a stack of the open headings."""

from __future__ import annotations

import pytest

from exhibit.evidence import Span
from exhibit.law.structure.headings import Heading
from exhibit.law.structure.tree import Node, as_roman, place, to_section


def heading(label: str, style: str, *value: int, sure: bool = True, kind: str = "clause", rank: float = 9.0) -> Heading:
    return Heading(0, len(label), label, "", style, value, rank, kind, sure)


ROOT = Node(heading("", "document", kind="document", rank=0), 0.0, 0)


def stack(*headings: Heading) -> list[Node]:
    return [ROOT, *(Node(one, one.rank, level) for level, one in enumerate(headings, 1))]


def decimal(label: str, *, sure: bool = True) -> Heading:
    return heading(label, "decimal", *map(int, label.split(".")), sure=sure, rank=7)


@pytest.mark.parametrize(
    ("before", "number", "sure", "on"),
    [
        ([], "4.2", False, True),  # nothing is counted yet
        (["1."], "1.1", False, True),
        (["4."], "4.2", False, True),
        (["4."], "3.5", False, False),  # a stray one
        (["4."], "3.5", True, True),
        (["4.", "4.2"], "4.3", False, True),
        (["4.", "4.2"], "4.2", False, False),
        (["4.", "4.2"], "4.1", True, False),
        (["4.", "4.2"], "5.1", False, True),
        (["4.", "4.2"], "6.1", False, False),
        (["4.", "4.2"], "7.1", True, True),
        (["4.", "4.2"], "8.1", True, False),
        (["4.", "4.2"], "1.1", False, True),  # it begins anew
        (["4.", "4.2"], "1.2", False, False),
        (["4.", "4.2"], "1", False, True),
    ],
)
def test_a_number_goes_on_with_the_count_or_begins_it(before, number, sure, on):
    opened = [
        heading(one, "1.", int(one[:-1]), rank=6, kind="section") if one.endswith(".") else decimal(one)
        for one in before
    ]
    assert (place(stack(*opened), decimal(number, sure=sure)) is not None) is on


def lettered(label: str, value: int, style: str = "(a)") -> Heading:
    return heading(label, style, value)


@pytest.mark.parametrize(
    ("before", "label", "value", "ahead", "style", "counted"),
    [
        ([], "(i)", 9, None, "(i)", 1),  # nothing before it is a letter
        ([], "(ii)", 0, None, "(i)", 2),
        ([], "(v)", 22, None, "(a)", 22),
        ([], "(b)", 2, None, "(a)", 2),
        ([("(h)", "(a)", 8)], "(i)", 9, None, "(a)", 9),  # after h comes i
        ([("(h)", "(a)", 8)], "(i)", 9, "(ii)", "(i)", 1),
        ([("(h)", "(a)", 8)], "(i)", 9, "(j)", "(a)", 9),
        ([("(a)", "(a)", 1), ("(i)", "(i)", 1)], "(ii)", 0, None, "(i)", 2),
        ([("(a)", "(a)", 1), ("(iv)", "(i)", 4)], "(v)", 22, None, "(i)", 5),
        ([("(u)", "(a)", 21)], "(v)", 22, None, "(a)", 22),
    ],
)
def test_a_letter_is_a_roman_number_where_its_neighbours_are(before, label, value, ahead, style, counted):
    opened = [heading(one, kind, number) for one, kind, number in before]
    after = heading(ahead, "(a)", 10) if ahead else None
    read = as_roman(stack(*opened), lettered(label, value), after)
    assert (read.style, read.value) == (style, (counted,))


def test_other_styles_are_left_as_they_are():
    for one in (decimal("4.2"), heading("1.", "1.", 1)):
        assert as_roman(stack(), one, None) is one
    assert as_roman(stack(), heading("I.", "A.", 9), None).style == "I."
    assert as_roman(stack(), heading("(I)", "(A)", 9), None).style == "(I)"
    assert as_roman(stack(), heading("i.", "a.", 9), None).style == "i."


def test_recitals_are_one_part_and_the_words_of_agreement_follow_them():
    recitals = heading("", "recitals", kind="recitals", rank=6)
    agreed = heading("", "agreement", kind="agreement", rank=6)
    assert place(stack(), recitals) is not None and place(stack(recitals), recitals) is None
    assert place(stack(), agreed) is None
    node = place(stack(recitals), agreed)
    assert node is not None and (node.level, node.rank) == (1, 6)
    assert place(stack(heading("4.", "1.", 4, rank=6)), decimal("3.5", sure=False)) is None


def test_an_item_of_a_list_closes_what_is_below_the_last_of_its_kind():
    opened = stack(lettered("(a)", 1), heading("(i)", "(i)", 1))
    node = place(opened, lettered("(b)", 2))
    assert node is not None and node.level == 1 and len(opened) == 1, "the item before it is closed with all it holds"
    opened = stack(lettered("(a)", 1))
    deeper = place(opened, heading("(i)", "(i)", 1))
    assert deeper is not None and deeper.level == 2 and len(opened) == 2
    assert place(stack(lettered("(a)", 1)), heading("(c)", "(a)", 30, sure=False)) is None, "it goes on from nothing"
    again = place(stack(lettered("(b)", 2)), heading("(b)", "(a)", 2, sure=False))
    assert again is None, "the same letter twice is no list"


def test_words_before_the_first_heading_are_a_leaf_and_a_heading_alone_is_none():
    text = "Rent\nwords\n1.\nmore"
    child = Node(Heading(11, 13, "1.", "", "1.", (1,), 6, "section"), 6, 1)
    whole = to_section(Node(Heading(0, 4, "", "Rent", "title", (), 5, "section"), 5, 0, [child]), 0, len(text), text)
    assert [(one.span, one.kind, one.level) for one in whole.children] == [
        (Span(0, 11), "opening", 1), (Span(11, 18), "section", 1),
    ]  # fmt: skip
    alone = "Rent\n\n1.\nmore"
    child = Node(Heading(6, 8, "1.", "", "1.", (1,), 6, "section"), 6, 1)
    whole = to_section(Node(Heading(0, 4, "", "Rent", "title", (), 5, "section"), 5, 0, [child]), 0, len(alone), alone)
    assert [one.span for one in whole.children] == [Span(0, 13)] and whole.heading == "Rent"
