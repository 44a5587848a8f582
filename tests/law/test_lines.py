"""Thresholds that decide the kind of a line, each tested at its exact value."""

from __future__ import annotations

import pytest

from exhibit.evidence import Document, Page, Span
from exhibit.law.structure.lines import find_contents, is_entry, read_lines


def contents(*pages: int, between: str = "Term") -> str:
    """Return a table of contents with entries that lead to these pages."""
    return "CONTENTS\n" + "".join(f"{between} {page}\n" for page in pages)


def covered(text: str) -> int:
    """Return the number of entries in the table of contents that is detected."""
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
    """Return whether the line after `before` starts a new paragraph, in a text with lines of this width."""
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


@pytest.mark.parametrize(("word", "entries"), [("schedule" + " " * 4, 0), ("schedule" + " " * 5, 3), ("schedules ", 3)])
def test_a_named_number_is_told_by_the_word_within_twelve_characters(word, entries):
    assert covered(f"CONTENTS\nTerm 1\n{word}2\nRent 3\n") == entries


def paged(*texts: str) -> Document:
    start, pages = 0, []
    for number, text in enumerate(texts, 1):
        pages.append(Page(number, Span(start, start + len(text)), 595, 842))
        start += len(text) + 1
    return Document("a.pdf", "\n".join(texts), tuple(pages))


def test_a_running_head_is_left_out_and_a_heading_that_starts_one_page_is_not():
    def heads(*names: str) -> list[str]:
        bodies = ["\n".join(f"Some {letter}{letter * n} words" for letter in "abcdef") for n in range(len(names))]
        lines = read_lines(paged(*(f"{name}\n{body}" for name, body in zip(names, bodies, strict=True))))
        return [line.text for line in lines if not line.text.startswith("Some")]

    assert heads("Lease", "Lease", "Lease") == []
    assert heads("Article 1", "Article 2", "Article 3") == ["Article 1", "Article 2", "Article 3"]
    assert heads("Article 1", "Article 1", "Article 1") == []
    assert heads("Article 1", "Article 1", "Article 2") == ["Article 2"]


def pieces(text: str) -> list[tuple[str, bool, bool]]:
    return [(line.text, line.gap, line.fresh) for line in read_lines(Document("a.txt", text))]


def test_wide_spaces_blank_lines_and_rules_part_lines_and_page_marks_do_not():
    assert pieces("one   two  three") == [("one", True, True), ("two  three", True, True)]
    assert pieces("one two\n\nthree") == [("one two", True, True), ("three", True, True)]
    assert pieces("one two x\n-----\nthree") == [("one two x", True, True), ("three", True, True)]
    assert pieces("long first line\n- 7 -\nsecond") == [("long first line", True, True), ("second", False, False)]
    assert pieces("long first line\nPage 7 of 9\nsecond")[1] == ("second", False, False)
    assert pieces("long first line\nxii\nsecond")[1] == ("second", False, False)


def test_a_list_that_follows_a_title_begins_a_line_within_one_hundred_and_forty_characters():
    assert [text for text, *_ in pieces("4.1 Conduct. (a) The Company")] == ["4.1 Conduct.", "(a) The Company"]
    title = "x" * 120
    assert len(pieces(f"{title}. (a) y")) == 2 and len(pieces(f"{title}{'x' * 20}. (a) y")) == 1


def test_the_margin_is_the_length_that_nine_lines_of_ten_keep_to():
    long, short = "x" * 100, "y" * 50
    nine = "\n".join([long] + [short] * 9 + [short, "next"])
    assert not read_lines(Document("a.txt", nine))[-1].fresh, "fifty is the margin here"
    eight = "\n".join([long] * 2 + [short] * 8 + [short, "next"])
    assert read_lines(Document("a.txt", eight))[-1].fresh, "and here it is a hundred"
