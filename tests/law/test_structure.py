"""Structure: headings of every style become a tree whose leaves tile the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.evidence import Document, Page, Span, read_document
from exhibit.law.structure import cut, format_section_path, read_structure
from exhibit.law.structure.headings import find_headings
from exhibit.law.structure.lines import find_contents
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


def test_a_contract_becomes_the_tree_that_a_reader_sees():
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
        ("ARTICLE IV", "ARTICLE IV", "article"),
        ("Article 4. Payment", "Article 4 Payment", "article"),
        ("SECTION 2.01 Delivery", "SECTION 2.01 Delivery", "section"),
        ("Section 2. Delivery", "Section 2 Delivery", "section"),
        ("9.1 Term. The term is five years.", "9.1 Term", "section"),
        ("9.1Term. The term is five years.", "9.1 Term", "section"),
        ("4. GOVERNING LAW", "4. GOVERNING LAW", "section"),
        ("1.1.1 Delivery in parts. The goods may come in parts.", "1.1.1 Delivery in parts", "section"),
        ("LIMITATION OF LIABILITY", "LIMITATION OF LIABILITY", "section"),
        ("WITNESSETH:", "WITNESSETH", "recitals"),
        ("W I T N E S S E T H", "W I T N E S S E T H", "recitals"),
        ("WHEREAS, Alder mills flour;", "WHEREAS", "recitals"),
        ("DEFINITIONS", "DEFINITIONS", "definitions"),
        ("ANNEX B", "ANNEX B", "schedule"),
        ("Appendix 3: Fees", "Appendix 3 Fees", "schedule"),
        ("IN WITNESS WHEREOF, the parties have signed.", "IN WITNESS WHEREOF", "signature"),
        ("Part 2 General provisions", "Part 2 General provisions", "part"),
        ("CHAPTER III", "CHAPTER III", "chapter"),
        ("PART 36 – OFFERS TO SETTLE", "PART 36 OFFERS TO SETTLE", "part"),
        ("PRACTICE DIRECTION 28 – THE FAST TRACK", "PRACTICE DIRECTION 28 THE FAST TRACK", "part"),
        ("A.1.1 The court is one of the oldest.", "A.1.1", "section"),
        ("§ 12. Records", "§ 12 Records", "section"),
    ],
)
def test_each_style_is_recognised(line, heading, kind):
    root = tree(f"{WORDS * 3}\n{line}\n{WORDS}\n")
    assert (heading, kind) in [(part.heading, part.kind) for part in root.walk()]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("the Buyer may end this Agreement if the goods that were ordered by it under Section", "9.1 and accepted"),
        (
            "the rights that the Supplier has under this Agreement and those that are named in",
            "Article 5 of the Convention",
        ),
        ("such sums as the parties may agree on from time to time, in no case being more than", "3.5 million pounds"),
        ("the notice that a party has to give to the other party as it is set out in paragraph", "(b) above and in no"),
        ("the goods are described in the specification that is attached to this Agreement as", "Exhibit A and form"),
    ],
)
def test_a_reference_at_the_start_of_a_visual_line_is_no_heading(first, second):
    text = f"{first}\n{second} way whatever.\n" + f"{WORDS}\n" * 5
    assert not find_headings(Document("a.pdf", text))


def test_a_shouted_paragraph_is_no_run_of_headings():
    shout = "\n".join(["THE GOODS ARE PROVIDED AS THEY ARE AND WITHOUT ANY WARRANTY"] * 5)
    assert not find_headings(Document("a.txt", f"{WORDS}\n{shout}\n{WORDS}\n"))


@pytest.mark.parametrize(
    "line",
    [
        "IN NO EVENT SHALL ALDER BE LIABLE TO BIRCH",
        "ALDER MILLS, INC.",
        "Section 3.2(a) Company Meeting",
        "A-12",
        "BY AND BETWEEN",
    ],
)
def test_what_merely_looks_like_a_heading_is_none(line):
    assert not find_headings(Document("a.txt", f"{WORDS * 3}\n\n{line}\n\n{WORDS * 3}\n"))


def test_names_below_a_signature_are_no_headings():
    text = f"1. Term. {WORDS}\nIN WITNESS WHEREOF, they have signed.\nALDER MILLING COMPANY OF KENT\nCHIEF EXECUTIVE\n"
    assert outline(tree(text)) == ["1. Term", "IN WITNESS WHEREOF"]


def test_lists_continue_after_a_list_inside_them():
    text = "(a) one;\n(b) two:\n(i) this;\n(ii) that;\n(c) three;\n(h) eight;\n(i) nine;\n(j) ten;\n"
    text = f"1. Term. {WORDS}\n" + text.replace("(h) eight", "(d) d;\n(e) e;\n(f) f;\n(g) g;\n(h) eight")
    assert outline(tree(text))[1:] == [
        "  (a)", "  (b)", "    (i)", "    (ii)", "  (c)", "  (d)", "  (e)", "  (f)", "  (g)", "  (h)", "  (i)", "  (j)",
    ]  # fmt: skip


def test_numbers_that_a_pdf_lost_or_left_in_its_margin_do_not_break_the_count():
    text = f"1. Term. {WORDS}\n2. Price. {WORDS}\n3.3.\n4.\n4.1.\n4.2.\n5.\n{WORDS}\n4. Notices. {WORDS}\n"
    assert outline(tree(text)) == ["1. Term", "2. Price", "4. Notices"]


def test_uk_rules_their_titles_stand_over_their_numbers():
    text = (
        "PART 30 - TRANSFER\n\n---\n\nContents of this Part\n\n---\n\nScope of this Part\n\n30.1\n\n(1) This Part "
        "deals with transfer.\n\n(2) It applies to all courts.\n\n---\n\nCriteria\n\n30.2\n\n(1) The court has "
        "regard to -\n\n(a) convenience; and\n\n(b) cost.\n"
    )
    assert outline(tree(text)) == [
        "PART 30 TRANSFER",
        "  30.1 Scope of this Part",
        "    (1)",
        "    (2)",
        "  30.2 Criteria",
        "    (1)",
        "      (a)",
        "      (b)",
    ]


def test_practice_directions_titles_hold_the_paragraphs_below_them():
    text = (
        "PRACTICE DIRECTION 28 - THE FAST TRACK\n\nGeneral\n\n1.1 Attention is drawn to the rules.\n\n1.2 The court "
        "manages cases.\n\nAllocation\n\n2.1 The court gives directions.\n"
    )
    assert outline(tree(text)) == [
        "PRACTICE DIRECTION 28 THE FAST TRACK", "  General", "    1.1", "    1.2", "  Allocation", "    2.1",
    ]  # fmt: skip


def test_court_guides_and_legislation():
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


# ---------------------------------------------------------------- contents and furniture

CONTENTS = """TABLE OF CONTENTS
ARTICLE I DEFINITIONS ........ 1
1.1 Goods ........ 1
1.2 Territory ........ 2
ARTICLE II SUPPLY AND PRICE ........ 4
EXHIBITS
EXHIBIT A Form of Order 9
"""


def test_a_table_of_contents_makes_no_sections():
    text = CONTRACT.replace("RECITALS\n", CONTENTS + "RECITALS\n")
    assert outline(tree(text)) == outline(tree(CONTRACT))
    assert_tiles(text, tree(text))


def test_a_table_of_contents_on_one_line_is_found_by_its_rising_page_numbers():
    entries = "ARTICLE I DEFINITIONS 2 Section 1.1 Terms 2 Section 1.2 Other 5 ARTICLE II SALE 7"
    text = f"TABLE OF CONTENTS   Page   {entries}   \n"
    assert find_contents(text + CONTRACT) == Span(0, len(text) - 4)
    assert outline(tree(text + CONTRACT)) == outline(tree(CONTRACT))


def test_a_list_of_sections_without_page_numbers_is_contents_too():
    names = ["1. Term of agreement", "2. Price of goods", "3. Notices to parties"]
    text = "\n".join(names) + "\n" + "".join(f"{name}\n{WORDS * 3}\n" for name in names)
    root = tree(text)
    assert outline(root) == names
    assert text[root.children[1].span.start :].startswith(f"{names[0]}\n{WORDS}")


def test_the_word_contents_alone_is_no_table():
    assert find_contents("Contents of the bottle are listed in 1 place and 2 shelves.") == (0, 0)


def paged(*pages: str) -> tuple[str, tuple[Page, ...]]:
    start, made = 0, []
    for number, page in enumerate(pages, 1):
        made.append(Page(number, Span(start, start + len(page)), 595, 842))
        start += len(page) + 1
    return "\n".join(pages), tuple(made)


def test_page_furniture_is_no_heading_and_splits_nothing():
    clauses = [f"{n}. Clause {name}. {WORDS}\nand so on to the end" for n, name in ((1, "A"), (2, "B"), (3, "C"))]
    text, pages = paged(*(f"ALDER SUPPLY AGREEMENT\n{body}\nPage {n} of 3" for n, body in enumerate(clauses, 1)))
    root = tree(text, pages)
    assert outline(root) == ["1. Clause A", "2. Clause B", "3. Clause C"]
    first = next(part for part in root.walk() if part.heading == "1. Clause A")
    assert "Page 1 of 3\nALDER SUPPLY AGREEMENT" in text[first.span.start : first.span.end]
    assert_tiles(text, root)


def test_an_article_that_starts_a_page_is_a_heading_though_articles_start_others():
    names = ["SALE", "PRICE", "TERM", "NOTICES"]
    bodies = [f"ARTICLE {n}\n{name}\n" + f"{name} {WORDS}\n" * 9 + str(n) for n, name in enumerate(names, 1)]
    text, pages = paged(*bodies)
    assert any(text[span.start : span.end] == "ARTICLE 2\n" for span in Document("a.pdf", text, pages).furniture)
    assert [part.heading for part in tree(text, pages).children] == [
        f"ARTICLE {n} {name}" for n, name in enumerate(names, 1)
    ]


def test_sections_run_together_on_one_line_are_told_apart():
    body = WORDS * 4
    text = f"ARTICLE V COVENANTS 5.1 Conduct. (a) {body}(b) {body}5.2 Access. {body}"
    assert outline(tree(text)) == ["ARTICLE V COVENANTS", "  5.1 Conduct", "    (a)", "    (b)", "  5.2 Access"]


# ---------------------------------------------------------------- laws

PIECES = [
    "ARTICLE IV\n", "Article 4.\n", "SECTION 2.01 Title\n", "1. One. ", "1.1 Two. ", "2.\n", "(a) x;\n", "(i) y;\n",
    "(A)\n", "A. Z\n", "RECITALS\n", "WHEREAS, x;\n", "NOW, THEREFORE, y\n", "IN WITNESS WHEREOF\n", "SCHEDULE 1\n",
    "EXHIBIT A\n", "ALL CAPS\n", "PART 3 – X\n", "TABLE OF CONTENTS\n", "Term ..... 4\n", "\n", "\n\n", "   ", "---\n",
    "Title Line\n", "7\n", "\u00a0", "\f", "x", WORDS, f"{WORDS}\n",
]  # fmt: skip


@given(st.text(max_size=400))
def test_leaves_tile_any_text(text):
    assert_tiles(text, tree(text))


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


def test_the_heading_stands_where_its_section_starts():
    root = tree(CONTRACT)
    for part in root.walk():
        if part.heading and not part.heading.startswith(("1.1", "ARTICLE")):
            words = " ".join(CONTRACT[part.span.start : part.span.end].split())
            assert part.heading.split()[0].rstrip(".:") in words[:60]


# ---------------------------------------------------------------- paths


def test_a_path_names_the_headings_above_a_span():
    root = tree(CONTRACT)
    at = CONTRACT.index("the quantity")
    assert (
        format_section_path(root, Span(at, at + 12)) == "ARTICLE II SUPPLY AND PRICE > Section 2.01 Orders > (b) > (i)"
    )
    assert format_section_path(root, Span(at, at)).endswith("(i)")


def test_a_path_of_a_span_over_several_sections_is_that_of_most_of_it():
    root = tree(CONTRACT)
    start, end = CONTRACT.index("(a) each"), CONTRACT.index("Section 2.02")
    assert format_section_path(root, Span(start, end)) == "ARTICLE II SUPPLY AND PRICE > Section 2.01 Orders"
    assert format_section_path(root, Span(0, len(CONTRACT))) == ""


def test_long_paths_are_shortened_to_their_ends():
    names = [f"{'ABCDEFG'[n]} {'word ' * 20}".strip() for n in range(6)]
    section = Section(Span(0, 9), names[5], level=6)
    for level in range(5, -1, -1):
        section = Section(Span(0, 9), names[level - 1] if level else "", level=level, children=(section,))
    path = format_section_path(section, Span(0, 9))
    assert path.startswith("A word") and " > … > " in path and "F word" in path and len(path) <= 200


@given(st.text(max_size=120), st.integers(2, 60))
def test_a_cut_keeps_to_its_limit_and_to_the_beginning(text, limit):
    short = cut(text, limit)
    assert len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


# ---------------------------------------------------------------- real documents


@pytest.mark.data
@pytest.mark.slow
def test_real_documents_have_the_structure_that_they_show(data: Path):
    contracts = sorted((data / "maud" / "maud-main" / "data" / "contracts").glob("*.txt"))[:6]
    guides = sorted((data / "cpr" / "court_guides_pdf").glob("*.pdf"))[:2]
    rules = sorted((data / "cpr" / "docs_json").glob("Part *.json"))[:10]
    for path in [*contracts, *guides, *rules]:
        document = read_document(path)
        root = read_structure(document)
        assert_tiles(document.text, root)
        assert len(outline(root)) >= 3, path
    for path in contracts:
        articles = [
            part for part in read_structure(read_document(path)).walk() if part.heading.upper().startswith("ARTICLE ")
        ]
        assert len(articles) >= 5, path
    nda = json.loads((data / "contractnli" / "contract-nli" / "test.json").read_text(encoding="utf-8"))["documents"]
    found = [len(outline(tree(document["text"]))) >= 3 for document in nda]
    assert sum(found) >= 0.9 * len(found)
