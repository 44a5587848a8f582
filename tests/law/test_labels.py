"""Labels: every way to number a heading, its number, its rank, and texts that only look like a label."""

import pytest

from exhibit.law.structure.headings import Label, read_label
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
def test_label_is_read_in_every_numbering_style(text, number, rest, style, value, rank, kind):
    assert label(text) == Label(number, rest, style, value, rank, kind, sure=True)


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
def test_read_label_returns_none_for_text_that_only_resembles_label(text):
    assert label(text) is None
