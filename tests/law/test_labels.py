"""Labels: every way to number a heading, its number, its rank, and texts that only look like a label."""

from __future__ import annotations

import pytest

from exhibit.law.structure.labels import Label, drop_stray, parse_roman, read_label
from exhibit.law.structure.lines import Line


def label(text: str, *, gap: bool = False, fresh: bool = True, before: str = "") -> Label | None:
    return read_label(Line(0, len(text), text, gap, fresh, before))


@pytest.mark.parametrize(
    ("text", "number", "rest", "style", "value", "rank", "kind"),
    [
        ("ARTICLE IV", "ARTICLE IV", "", "article", (4,), 4, "article"),
        ("ARTICLE FOUR", "ARTICLE FOUR", "", "article", (4,), 4, "article"),
        ("ARTICLE TWELVE", "ARTICLE TWELVE", "", "article", (12,), 4, "article"),
        ("Article 4 Payment", "Article 4", "Payment", "article", (4,), 4, "article"),
        ("Article 4.2 Payment", "Article 4.2", "Payment", "decimal", (4, 2), 7, "section"),
        ("Section 2.01 Orders", "Section 2.01", "Orders", "decimal", (2, 1), 7, "section"),
        ("Section 3 Orders", "Section 3", "Orders", "decimal", (3,), 6, "section"),
        ("SECTION IV. ORDERS", "SECTION IV", "ORDERS", "section", (4,), 5, "section"),
        ("Section A-1. Orders", "Section A-1", "Orders", "section", (1, 1), 5, "section"),
        ("Section 12AB Records", "Section 12AB", "Records", "decimal", (12,), 6, "section"),
        ("Sec. 7. Records", "Sec. 7", "Records", "decimal", (7,), 6, "section"),
        ("§ 12. Records", "§ 12", "Records", "decimal", (12,), 6, "section"),
        ("Rule 3.4.1 Scope", "Rule 3.4.1", "Scope", "decimal", (3, 4, 1), 8, "section"),
        ("Clause 9 The rent is due.", "Clause 9", "The rent is due.", "decimal", (9,), 6, "section"),
        ("Schedule 2", "Schedule 2", "", "schedule", (2,), 1, "schedule"),
        ("SCHEDULE", "SCHEDULE", "", "schedule", (), 1, "schedule"),
        ("Exhibit B: Form of Order", "Exhibit B", "Form of Order", "schedule", (2,), 1, "schedule"),
        ("EXHIBIT B (FORM)", "EXHIBIT B", "(FORM)", "schedule", (2,), 1, "schedule"),
        ("Exhibit A. The form is used.", "Exhibit A", "The form is used.", "schedule", (1,), 1, "schedule"),
        ("Title 4 Records", "Title 4", "Records", "part", (4,), 1.6, "part"),
        ("BOOK 2 OF THINGS", "BOOK 2", "OF THINGS", "part", (2,), 1.4, "part"),
        ("Practice Direction 28 The Track", "Practice Direction 28", "The Track", "part", (28,), 2, "part"),
        ("Part 2 General provisions", "Part 2", "General provisions", "part", (2,), 2, "part"),
        ("Chapter III) The Court", "Chapter III)", "The Court", "chapter", (3,), 3, "chapter"),
        ("A.1.2 Records", "A.1.2", "Records", "decimal", (1, 1, 2), 8, "section"),
        ("4.1 Payment. It is due.", "4.1", "Payment. It is due.", "decimal", (4, 1), 7, "section"),
        ("4.1.2 Records", "4.1.2", "Records", "decimal", (4, 1, 2), 8, "section"),
        ("4.1A Records", "4.1A", "Records", "decimal", (4, 1), 7, "section"),
        ("1.2.3.4.5 Deep", "1.2.3.4.5", "Deep", "decimal", (1, 2, 3, 4, 5), 10, "section"),
        ("4. Payment. It is due.", "4.", "Payment. It is due.", "1.", (4,), 6, "section"),
        ("4. PAYMENT", "4.", "PAYMENT", "1.", (4,), 6, "section"),
        ("4) Payment of the Price", "4)", "Payment of the Price", "1.", (4,), 6, "section"),
        ("12A. Records", "12A.", "Records", "1.", (12,), 6, "section"),
        ("4— Records", "4—", "Records", "1.", (4,), 6, "section"),
    ],
)
def test_a_label_says_what_it_counts_to_and_how_high_it_stands(text, number, rest, style, value, rank, kind):
    assert label(text) == Label(number, rest, style, value, rank, kind, sure=True)


@pytest.mark.parametrize(
    ("words", "rank", "kind"),
    [
        ("Schedule Exhibit Annex Annexure Appendix Attachment Addendum", 1, "schedule"),
        ("Book", 1.4, "part"),
        ("Title", 1.6, "part"),
        ("Part", 2, "part"),
        ("Chapter", 3, "chapter"),
        ("Article", 4, "article"),
        ("Section Sec. § Rule Clause Paragraph Regulation", 5, "section"),
    ],
)
def test_every_word_that_a_number_may_follow(words, rank, kind):
    for word in words.split():
        for written in (word, word.upper()):
            found = label(f"{written} IV. Goods")
            assert found is not None and (found.rank, found.kind, found.value) == (rank, kind, (4,)), written
            numbered = label(f"{written} 4. Goods")
            assert numbered is not None and numbered.rank == (6 if rank == 5 else rank)


@pytest.mark.parametrize(
    ("text", "number", "rest", "style", "value", "rank", "kind"),
    [
        ("4. The price is due in cash.", "4.", "The price is due in cash.", "1.", (4,), 6, "section"),
        ("4. (a) pay", "4.", "(a) pay", "1.", (4,), 6, "section"),
        ("4.", "4.", "", "1.", (4,), 6, "section"),
        ("4.1", "4.1", "", "decimal", (4, 1), 7, "section"),
        ("A. Goods", "A.", "Goods", "A.", (1,), 5.5, "section"),
        ("A. “Goods”", "A.", "“Goods”", "A.", (1,), 5.5, "section"),
        ("C. Goods", "C.", "Goods", "A.", (3,), 5.5, "section"),
        ("A.", "A.", "", "A.", (1,), 5.5, "section"),
        ("a. Goods", "a.", "Goods", "a.", (1,), 9, "clause"),
        ("z) Goods", "z)", "Goods", "a.", (26,), 9, "clause"),
        ("(a) pay", "(a)", "pay", "(a)", (1,), 9, "clause"),
        ("(aa) pay", "(aa)", "pay", "(a)", (27,), 9, "clause"),
        ("(bb) pay", "(bb)", "pay", "(a)", (28,), 9, "clause"),
        ("(B) pay", "(B)", "pay", "(A)", (2,), 9, "clause"),
        ("(12) pay", "(12)", "pay", "(1)", (12,), 9, "clause"),
    ],
)
def test_a_label_that_must_continue_a_count_is_not_sure(text, number, rest, style, value, rank, kind):
    assert label(text) == Label(number, rest, style, value, rank, kind, sure=False)


@pytest.mark.parametrize(
    "text",
    [
        "Article 4 of the Convention", "Schedule", "ARTICLE", "Exhibit B (form)", "Annex A Page 3", "Section 9% of it",
        "Part 2 general provisions", "Part 2, general", "PART 2; GENERAL", "Part 2 & Part 3", "Part 2/3 Things",
        "Exhibit A Form of order that goes on.", "Exhibit A. the form", "Part 9 The rent is due.",
        "Section 12ABC Records", "4. payment", "4 Payment", "4. 5 pounds", "4. % of", "4. ; and", "4. = 5", "1234. Big",
        "4.1 the price", "4.1 = x", "4.1 5 pounds", "4.1 & 4.2", "(a) above", "(a), (b)", "(a) and (b)", "(a); and",
        "(a) of this Section", "(1234) pay", "(abc) pay", "A. goods", "AB. Goods", "X) 5 goods", "B", "Term ..... 4",
        "4. Term ..... 4",
    ],
)  # fmt: skip
def test_what_only_begins_like_a_label(text):
    assert label(text) is None


@pytest.mark.parametrize(
    ("text", "facts", "is_label"),
    [
        ("Article 4. Payment", {"fresh": False}, False),
        ("ARTICLE 4. PAYMENT", {"fresh": False, "before": "the parties"}, True),
        ("ARTICLE 4. PAYMENT", {"fresh": False, "before": "THE PARTIES"}, False),
        ("Section 4. Payment", {"before": "as set out in"}, False),
        ("Section 4. Payment", {"before": "as set out in", "gap": True}, True),
        ("Exhibit 4. Payment", {"before": "as set out in"}, True),
        ("Section 4. Payment", {"before": "subsection " + "x" * 16}, True),
        ("4 Payment", {"gap": True}, True),
        ("4", {"gap": True}, False),
        ("4. Payment", {"fresh": False}, False),
        ("4. Payment", {"fresh": False, "gap": True}, True),
        ("4. Payment", {"fresh": False, "gap": True, "before": "under"}, False),
        ("4.1 Payment. It is due.", {"fresh": False}, True),
        ("4.1 Payment. It is due.", {"fresh": False, "before": "set out in Section"}, False),
        ("4.1 Payment. It is due.", {"before": "set out in Section"}, True),
        ("4.1 The price is due in cash", {"fresh": False}, False),
        ("4.1 the price", {"gap": True}, True),
        ("(a) pay", {"fresh": False}, False),
        ("(a) pay", {"fresh": False, "before": "shall,"}, True),
        ("A. Goods", {"fresh": False}, False),
    ],
)
def test_what_stands_before_a_label_decides(text, facts, is_label):
    assert (label(text, **facts) is not None) is is_label


def test_the_title_after_a_number_makes_it_sure_up_to_sixty_characters():
    exact = "Ab" + "c" * 58
    read = [label(f"4. {title}") for title in (exact, f"{exact}c")]
    assert [found and found.sure for found in read] == [True, False]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i", 1), ("iii", 3), ("iv", 4), ("v", 5), ("vi", 6), ("ix", 9), ("x", 10), ("xiv", 14), ("xix", 19),
        ("xl", 40), ("xlix", 49), ("l", 50), ("lix", 59), ("xc", 90), ("xcix", 99), ("c", 100), ("cxc", 190),
        ("ccc", 300), ("iiii", 0), ("vx", 0), ("a", 0), ("", 0),
    ],
)  # fmt: skip
def test_roman_numbers(text, value):
    assert parse_roman(text) == value


def test_three_labels_with_nothing_beside_them_are_a_margin_and_two_are_not():
    bare = [label("4."), label("4.1"), label("(a)")]
    titled = label("5. Term")
    labels = [*bare[:2], titled, *bare, None, *bare[:2]]
    drop_stray(labels)
    assert labels == [*bare[:2], titled, None, None, None, None, *bare[:2]]
    articles = [label("ARTICLE I"), label("ARTICLE II"), label("ARTICLE III")]
    kept = list(articles)
    drop_stray(kept)
    assert kept == articles, "a word beside the number is enough"
