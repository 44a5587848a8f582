"""Structure: headings of every style become a tree whose leaves tile the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.evidence import Document, Page, Span
from exhibit.law.structure import format_section_path, read_structure
from exhibit.law.structure.tree import Section

WORDS = "The Supplier shall deliver the goods to the Buyer at the agreed place and the Buyer shall pay for them. "


def tree(text: str, pages: tuple[Page, ...] = ()) -> Section:
    return read_structure(Document("a.txt", text, pages))


def outline(section: Section) -> list[str]:
    """Return the headings indented by level; sections without a heading are left out."""
    return [f"{'  ' * (part.level - 1)}{part.heading}" for part in section.walk() if part.heading]


def leaves(section: Section) -> list[Section]:
    return [part for part in section.walk() if not part.children]


def assert_tiles(text: str, root: Section) -> None:
    """Check that the root spans the text, the leaves have no gaps, and each child is inside its parent."""
    assert root.span == (0, len(text))
    assert "".join(text[leaf.span.start : leaf.span.end] for leaf in leaves(root)) == text
    for part in root.walk():
        assert part.span.start < part.span.end or not text
        if part.children:
            assert part.children[0].span.start == part.span.start
            assert part.children[-1].span.end == part.span.end
            assert all(child.level == part.level + 1 for child in part.children)
            for before, after in zip(part.children, part.children[1:], strict=False):
                assert before.span.end == after.span.start


CONTRACT = f"""SUPPLY AGREEMENT
This Supply Agreement is made on 3 May 2021 between Alder Mills Limited and Birch Foods plc.
RECITALS
A. Alder mills flour and wishes to sell it.
B. Birch bakes bread and wishes to buy flour.
NOW, THEREFORE, the parties agree as follows:
ARTICLE I
DEFINITIONS
1.1 Goods. {WORDS}
1.2 Territory. {WORDS}
ARTICLE II
SUPPLY AND PRICE
Section 2.01 Orders. {WORDS}
(a) each order is in writing;
(b) each order names
(i) the quantity, and
(ii) the place of delivery; and
(c) no order is binding before it is accepted.
Section 2.02 Price. {WORDS}
IN WITNESS WHEREOF, the parties have signed this Agreement.
ALDER MILLS LIMITED
BIRCH FOODS PLC
SCHEDULE 1
PRICES
1. Wheat flour. {WORDS}
2. Rye flour. {WORDS}
EXHIBIT A - FORM OF ORDER
{WORDS}
"""


def test_read_structure_builds_expected_tree_of_contract():
    root = tree(CONTRACT)
    assert outline(root) == [
        "SUPPLY AGREEMENT",
        "RECITALS",
        "  A.",
        "  B.",
        "NOW, THEREFORE",
        "ARTICLE I DEFINITIONS",
        "  1.1 Goods",
        "  1.2 Territory",
        "ARTICLE II SUPPLY AND PRICE",
        "  Section 2.01 Orders",
        "    (a)",
        "    (b)",
        "      (i)",
        "      (ii)",
        "    (c)",
        "  Section 2.02 Price",
        "IN WITNESS WHEREOF",
        "SCHEDULE 1 PRICES",
        "  1. Wheat flour",
        "  2. Rye flour",
        "EXHIBIT A FORM OF ORDER",
    ]
    kinds = {part.heading: part.kind for part in root.walk()}
    assert kinds["RECITALS"] == "recitals"
    assert kinds["ARTICLE I DEFINITIONS"] == "definitions"
    assert kinds["ARTICLE II SUPPLY AND PRICE"] == "article"
    assert kinds["(b)"] == "clause"
    assert kinds["IN WITNESS WHEREOF"] == "signature"
    assert kinds["SCHEDULE 1 PRICES"] == "schedule"
    assert kinds[""] == "opening"
    assert_tiles(CONTRACT, root)


@pytest.mark.parametrize(
    ("line", "heading", "kind"),
    [
        ("9.1Term. The term is five years.", "9.1 Term", "section"),
        ("LIMITATION OF LIABILITY", "LIMITATION OF LIABILITY", "section"),
        ("WITNESSETH:", "WITNESSETH", "recitals"),
        ("WHEREAS, Alder mills flour;", "WHEREAS", "recitals"),
        ("DEFINITIONS", "DEFINITIONS", "definitions"),
        ("IN WITNESS WHEREOF, the parties have signed.", "IN WITNESS WHEREOF", "signature"),
    ],
)
def test_heading_without_a_label_is_recognised_by_its_words(line, heading, kind):
    root = tree(f"{WORDS * 3}\n{line}\n{WORDS}\n")
    assert (heading, kind) in [(part.heading, part.kind) for part in root.walk()]


def test_read_structure_ignores_stray_numbers_left_by_pdf():
    text = f"1. Term. {WORDS}\n2. Price. {WORDS}\n3.3.\n4.\n4.1.\n4.2.\n5.\n{WORDS}\n4. Notices. {WORDS}\n"
    assert outline(tree(text)) == ["1. Term", "2. Price", "4. Notices"]


def test_read_structure_nests_court_guides_and_legislation():
    guide = (
        f"A. INTRODUCTION\nA.1 The Court\nA.1.1 {WORDS}\nA.1.2 {WORDS}\nB. COMMENCEMENT\nB.1 Claims\nB.1.1 {WORDS}\n"
    )
    assert outline(tree(guide)) == [
        "A. INTRODUCTION",
        "  A.1 The Court",
        "    A.1.1",
        "    A.1.2",
        "B. COMMENCEMENT",
        "  B.1 Claims",
        "    B.1.1",
    ]
    law = f"PART I\nGENERAL\nCHAPTER I\nScope\nArticle 1\nSubject matter\n1. {WORDS}\n2. {WORDS}\n"
    law += f"Article 2\nDefinitions\n{WORDS}\n"
    assert outline(tree(law)) == [
        "PART I GENERAL",
        "  CHAPTER I Scope",
        "    Article 1 Subject matter",
        "      1.",
        "      2.",
        "    Article 2 Definitions",
    ]


# ---------------------------------------------------------------- laws

PIECES = [
    "ARTICLE IV\n", "Article 4.\n", "SECTION 2.01 Title\n", "1. One. ", "1.1 Two. ", "2.\n", "(a) x;\n", "(i) y;\n",
    "(A)\n", "A. Z\n", "RECITALS\n", "WHEREAS, x;\n", "NOW, THEREFORE, y\n", "IN WITNESS WHEREOF\n", "SCHEDULE 1\n",
    "EXHIBIT A\n", "ALL CAPS\n", "PART 3 – X\n", "TABLE OF CONTENTS\n", "Term ..... 4\n", "\n", "\n\n", "   ", "---\n",
    "Title Line\n", "7\n", "\u00a0", "\f", "x", WORDS, f"{WORDS}\n",
]  # fmt: skip


@settings(max_examples=settings.default.max_examples * 2)
@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(0, 40))
def test_leaves_tile_any_legal_text_with_pages(pieces, at):
    text = "".join(pieces)
    middle = min(at * 7, len(text))
    pages = (Page(1, Span(0, middle), 1, 1), Page(2, Span(middle, len(text)), 1, 1)) if middle else ()
    root = tree(text, pages)
    assert_tiles(text, root)
    assert max(part.level for part in root.walk()) <= 10
    for leaf in leaves(root):
        assert len(format_section_path(root, leaf.span)) <= 200
