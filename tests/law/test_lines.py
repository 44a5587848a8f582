"""The numbers that decide what a line is, each at its edge."""

from __future__ import annotations

import pytest

from evidence import Document
from law.structure.lines import find_contents, is_entry, read_lines


def contents(*pages: int, between: str = "Term") -> str:
    """Return a table of contents with entries that lead to these pages."""
    return "CONTENTS\n" + "".join(f"{between} {page}\n" for page in pages)


def covered(text: str) -> int:
    """Return how many entries are in the table that is found."""
    start, end = find_contents(text)
    return len(text[start:end].splitlines()[1:])


def test_three_entries_are_a_table_and_two_are_none():
    assert covered(contents(1, 2, 3)) == 3
    assert covered(contents(1, 2)) == 0


def test_pages_go_up_by_forty_at_most_and_never_down():
    assert covered(contents(1, 5, 45)) == 3
    assert covered(contents(1, 5, 46)) == 0
    assert covered(contents(3, 3, 3)) == 3
    assert covered(contents(3, 2, 1)) == 0
    assert covered(contents(40, 41, 42)) == 3 and covered(contents(41, 42, 43)) == 0


@pytest.mark.parametrize(("length", "entries"), [(300, 3), (330, 0)])
def test_entries_are_not_farther_apart_than_three_hundred_and_twenty_characters(length, entries):
    assert covered(contents(1, 2, 3, between="x" * length)) == entries


def test_the_table_is_looked_for_near_the_beginning_and_at_the_first_twenty_headings():
    table = contents(1, 2, 3)
    assert find_contents("x\n" * 29_000 + table).start == 58_000
    assert find_contents("x\n" * 31_000 + table) == (0, 0)
    lone = "Contents\n" + "word " * 80 + "\n"
    assert find_contents(lone * 19 + table).start == 19 * len(lone)
    assert find_contents(lone * 20 + table) == (0, 0)


def test_a_number_that_names_an_article_is_no_page():
    assert covered("CONTENTS\nsee Article 1\nsee Article 2\nsee Article 3\n") == 0


def test_what_leads_to_a_page_number_is_an_entry():
    assert is_entry("Term .... 4") and is_entry("Term  4") and is_entry("Term …… 4")
    assert not is_entry("Term ... 4") and not is_entry("Term 4")


def freshness(before: str, *, width: int) -> bool:
    """Return whether a line begins something new after one, in a text whose lines are so wide."""
    lines = read_lines(Document("a.txt", "\n".join(["x" * width] * 18 + [before, "next"])))
    return lines[-1].fresh


def test_a_line_that_ends_before_three_fifths_of_the_margin_ends_its_paragraph():
    assert freshness("y" * 59, width=100) and not freshness("y" * 60, width=100)
    assert freshness("y" * 90 + ".", width=100), "so does one that ends a sentence"


def test_where_most_lines_are_longer_than_a_margin_each_is_a_paragraph():
    assert not freshness("y" * 150, width=160)
    assert freshness("y" * 150, width=161)


@pytest.mark.parametrize(("length", "count"), [(700, 1), (900, 2)])
def test_only_a_very_long_line_is_taken_apart_at_its_sections(length, count):
    text = "1.1 Term. " + "x" * (length - 60) + " ends. 1.2 Rent. The rent is due."
    assert len(read_lines(Document("a.txt", text))) == count
