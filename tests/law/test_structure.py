"""Structure: headings of every style become a tree whose leaves tile the text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.evidence import Document, Page, Span
from exhibit.law.structure import format_section_path, read_structure
from exhibit.law.structure.tree import Section

WORDS = "The Supplier shall deliver the goods to the Buyer at the agreed place and the Buyer shall pay for them. "


def tree(text: str, pages: tuple[Page, ...] = ()) -> Section:
    return read_structure(Document("a.txt", text, pages))


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
def test_heading_without_a_label_is_recognised_by_capitals_or_known_words(line, heading, kind):
    root = tree(f"{WORDS * 3}\n{line}\n{WORDS}\n")
    assert (heading, kind) in [(part.heading, part.kind) for part in root.walk()]


def test_read_structure_ignores_stray_numbers_left_by_pdf_extraction():
    text = f"1. Term. {WORDS}\n2. Price. {WORDS}\n3.3.\n4.\n4.1.\n4.2.\n5.\n{WORDS}\n4. Notices. {WORDS}\n"
    assert [part.heading for part in tree(text).walk() if part.heading] == ["1. Term", "2. Price", "4. Notices"]


def read_levels(labels: str) -> str:
    """Return the level and heading of each section in a text whose paragraphs start with these labels."""
    shouted = {label: sum(map(str.isupper, label)) > 3 for label in labels.split("|")}
    paragraphs = [label if shouted[label] else f"{label} Goods are sold here." for label in labels.split("|")]
    root = read_structure(Document("a.txt", "".join(f"{paragraph}\n\n" for paragraph in paragraphs)))
    return "|".join(f"{part.level} {part.heading}" for part in root.walk() if part.heading)


@pytest.mark.parametrize(
    ("labels", "levels"),
    [
        # a count may miss three numbers; an uncertain count inside another list may miss none
        ("(a)|(b)|(e)", "1 (a)|1 (b)|1 (e)"),
        ("(a)|(b)|(f)", "1 (a)|1 (b)"),
        ("(a)|(1)|(b)|(2)", "1 (a)|2 (1)|1 (b)"),
        ("(a)|(1)|(2)|(3)|(c)", "1 (a)|2 (1)|2 (2)|2 (3)"),
        ("(a)|(1)|(2)|(3)|(b)", "1 (a)|2 (1)|2 (2)|2 (3)|1 (b)"),
        ("1. Term.|(a)|4. Price.", "1 1. Term|2 (a)|1 4. Price"),
        ("1. Term.|(b)", "1 1. Term"),
        ("(c)", ""),
        ("3. Term.|4. Price.", "1 3. Term|1 4. Price"),
        ("1. Term.|2. Price.|6. Law.", "1 1. Term|1 2. Price|1 6. Law"),
        # numbers with a point rise by one, or by three if they are certain, or begin again
        ("1.1|1.2|2.1|3.1", "1 1.1|1 1.2|1 2.1|1 3.1"),
        ("1.1|2.1|5.1", "1 1.1|1 2.1|1 5.1"),
        ("1.1|2.1|6.1", "1 1.1|1 2.1"),
        ("4.1|1.1|1.2", "1 4.1|1 1.1|1 1.2"),
        ("4.1|1.2", "1 4.1"),
        ("4.1|4.1", "1 4.1"),
        ("4.2|4.1|4.3", "1 4.2|1 4.3"),
        ("4.1 Term.|7.1 Law.", "1 4.1 Term|1 7.1 Law"),
        ("4.1 Term.|8.1 Law.", "1 4.1 Term"),
        ("1. Term.|4.2 Price.", "1 1. Term|2 4.2 Price"),
        ("1. Term.|4.2 goods", "1 1. Term"),
        ("1. Term.|1.2 goods", "1 1. Term|2 1.2"),
        ("ARTICLE II|2.1 goods|2.2 goods|4.1 goods", "1 ARTICLE II|2 2.1|2 2.2"),
        ("PART 3 USE|3.1 goods|4.1 goods|6.1 goods", "1 PART 3 USE|2 3.1|2 4.1"),
        ("ARTICLE I|2.1|1.1", "1 ARTICLE I|2 2.1|2 1.1"),
        # letters that are Roman numbers too
        ("(a)|(i)|(ii)|(b)", "1 (a)|2 (i)|2 (ii)|1 (b)"),
        ("1. Term.|(i)|(ii)|(iii)|(iv)|(v)|(vi)", "1 1. Term|2 (i)|2 (ii)|2 (iii)|2 (iv)|2 (v)|2 (vi)"),
        ("(h)|(i)|(j)", "1 (i)"),
        ("(f)|(g)", ""),
        ("(a)|(d)|(g)|(h)|(i)|(j)", "1 (a)|1 (d)|1 (g)|1 (h)|1 (i)|1 (j)"),
        ("(a)|(d)|(g)|(h)|(i)|(ii)|(iii)", "1 (a)|1 (d)|1 (g)|1 (h)|2 (i)|2 (ii)|2 (iii)"),
        ("(a)|(iii)", "1 (a)"),
        ("a.|b.|i.|ii.|c.", "1 a.|1 b.|2 i.|2 ii.|1 c."),
        ("A.|B.|I.|II.|C.", "1 A.|1 B.|2 I.|2 II.|1 C."),
        ("(A)|(B)|(I)|(II)|(C)", "1 (A)|1 (B)|2 (I)|2 (II)|1 (C)"),
        ("I.|II.|III.|IV.", "1 I.|1 II.|1 III.|1 IV."),
        # parts without numbered sections, and parts with numbered sections
        ("RECITALS|A.|B.", "1 RECITALS|2 A.|2 B."),
        ("RECITALS|WHEREAS, x|NOW, THEREFORE, y|1. Term.", "1 RECITALS|1 NOW, THEREFORE|1 1. Term"),
        ("RECITALS|1. Term.", "1 RECITALS|1 1. Term"),
        ("NOW, THEREFORE, y|1. Term.", "1 1. Term"),
        (
            "1. Term.|IN WITNESS WHEREOF, z|(a)|SCHEDULE 1|1. Price.|(a)",
            "1 1. Term|1 IN WITNESS WHEREOF|1 (a)|1 SCHEDULE 1|2 1. Price|3 (a)",
        ),
        ("SUPPLY AGREEMENT|(a)|(b)", "1 SUPPLY AGREEMENT|1 (a)|1 (b)"),
        ("TERM|1. One.|PRICE|2. Two.", "1 TERM|1 1. One|1 PRICE|2 2. Two"),
        ("1.1 One.|TERM|1.2 Two.", "1 1.1 One|1 TERM|2 1.2 Two"),
        ("1.1 One.|TERM|(a)|(b)", "1 1.1 One|1 TERM|2 (a)|2 (b)"),
        # at most nine levels: deeper headings are siblings
        (
            "PART 1 GENERAL|CHAPTER I COURT|ARTICLE I SCOPE|Section 1. Use.|1.1 Term.|1.1.1 Time.|1.1.1.1 Hours.|"
            "(a)|(1)|(A)|(i)|(b)|a.",
            "1 PART 1 GENERAL|2 CHAPTER I COURT|3 ARTICLE I SCOPE|4 Section 1 Use|5 1.1 Term|6 1.1.1 Time|"
            "7 1.1.1.1 Hours|8 (a)|9 (1)|9 (A)|9 (i)|8 (b)|9 a.",
        ),
        (
            "PART 1 GENERAL|CHAPTER I COURT|ARTICLE I SCOPE|Section 1. Use.|(a)|CHAPTER II OTHER|PART 2 MORE|"
            "SCHEDULE 1",
            "1 PART 1 GENERAL|2 CHAPTER I COURT|3 ARTICLE I SCOPE|4 Section 1 Use|5 (a)|2 CHAPTER II OTHER|"
            "1 PART 2 MORE|1 SCHEDULE 1",
        ),
    ],
)
def test_read_structure_nests_headings_by_sequence_of_labels(labels, levels):
    assert read_levels(labels) == levels


def test_format_section_path_is_empty_before_first_section():
    root = Section(Span(10, 20), children=(Section(Span(10, 20), "A", level=1),))
    assert format_section_path(root, Span(0, 5)) == ""


PIECES = [
    "ARTICLE IV\n", "Article 4.\n", "SECTION 2.01 Title\n", "1. One. ", "1.1 Two. ", "2.\n", "(a) x;\n", "(i) y;\n",
    "(A)\n", "A. Z\n", "RECITALS\n", "WHEREAS, x;\n", "NOW, THEREFORE, y\n", "IN WITNESS WHEREOF\n", "SCHEDULE 1\n",
    "EXHIBIT A\n", "ALL CAPS\n", "PART 3 – X\n", "TABLE OF CONTENTS\n", "Term ..... 4\n", "\n", "\n\n", "   ", "---\n",
    "Title Line\n", "7\n", "\u00a0", "\f", "x", WORDS, f"{WORDS}\n",
]  # fmt: skip


@settings(max_examples=settings.default.max_examples * 2)
@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(0, 40))
def test_leaf_sections_cover_any_text_without_gap_or_overlap(pieces, at):
    text = "".join(pieces)
    middle = min(at * 7, len(text))
    pages = (Page(1, Span(0, middle), 1, 1), Page(2, Span(middle, len(text)), 1, 1)) if middle else ()
    root = tree(text, pages)
    assert_tiles(text, root)
    assert max(part.level for part in root.walk()) <= 10
    for leaf in leaves(root):
        assert len(format_section_path(root, leaf.span)) <= 200
