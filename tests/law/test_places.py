"""Register addresses, party names and positions of headings, made by hand."""

from __future__ import annotations

import pytest

from exhibit.evaluation.registers import find_case_path, instrument_path, is_covered, list_provision_paths
from exhibit.evidence import Document, Span
from exhibit.law.opening import parties_of
from exhibit.law.profile import title_of
from exhibit.law.references import Reference
from exhibit.law.references.reference import read_numbers
from exhibit.law.structure import read_structure
from exhibit.law.structure.headings import find_headings
from exhibit.law.structure.tree import Section


@pytest.mark.parametrize(
    ("source", "path", "addresses"),
    [
        ("housing act 1988", ("5", "1", "a"), ["section/5/1/a"]),
        ("housing measure 1988", ("5",), ["section/5"]),
        ("housing order 1988", ("5", "1"), ["article/5/1"]),
        ("housing regulations 1988", ("5",), ["regulation/5"]),
        ("housing rules 1988", ("5", "2"), ["rule/5/2"]),
        ("asp 2001/3", ("5",), ["section/5"]),
        ("eu regulation 2016/679", ("6", "1"), ["article/6"]),
        ("uk gdpr", ("6", "1"), ["article/6"]),
        ("housing act 1988", (), []),
        ("housing act 1988", ("sch 1", "2", "3"), ["schedule/1/paragraph/2/3"]),
        ("housing act 1988", ("sch 1",), ["schedule/1"]),
        ("housing act 1988", ("sch 1", "part 2"), ["schedule/1/part/2"]),
        ("housing act 1988", ("part 2", "chapter 3"), ["part/2/chapter/3"]),
        ("housing act 1988", ("part 2", "recital 3"), []),
        ("housing act 1988", ("chapter 3",), ["chapter/3"]),
        ("eu regulation 2016/679", ("recital 5",), []),
        ("eu regulation 2016/679", ("annex 1",), ["annex/1"]),
        ("windsor framework", ("5", "2"), ["regulation/5/2", "article/5/2", "rule/5/2"]),
    ],
)
def test_a_provision_has_an_address_in_its_instrument(source, path, addresses):
    assert list_provision_paths(Reference("statute", source, path)) == addresses


@pytest.mark.parametrize(
    ("source", "covered", "path"),
    [
        ("si 1998/3132", True, "uksi/1998/3132"),
        ("asp 2001/3", True, "asp/2001/3"),
        ("eu regulation 2016/679", True, "eur/2016/679"),
        ("eu directive 1995/46", True, "eudr/1995/46"),
        ("eu decision 2020/1", True, "eudn/2020/1"),
        ("eu regulation 2021/1", False, None),
        ("uk gdpr", True, "eur/2016/679"),
        ("housing act 1988", True, None),
        ("housing code", False, None),
    ],
)
def test_an_instrument_is_in_the_register_or_not(source, covered, path):
    assert (is_covered(source), instrument_path(source)) == (covered, path)


@pytest.mark.parametrize(
    ("court", "path"),
    [("UKSC", "uksc/2020/5"), ("EWHC (Ch)", "ewhc/ch/2020/5"), ("UKUT (TCC)", "ukut/tcc/2020/5"), ("EWHC", None)],
)
def test_a_judgment_has_the_address_of_its_court(court, path):
    assert find_case_path(Reference("case", court, ("2020", "5"))) == path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("between SAP AG, a company (“SAP”) and OAKS INC. (“Oaks”)", ["SAP AG", "OAKS INC."]),
        ("between JEA (“JEA”) and ALDER MILLS LTD (“Alder”)", ["JEA", "Alder Mills Ltd"]),
        ("between ALDERS AG (“A”) and OAK ELM FIR INC (“B”)", ["Alders AG", "Oak Elm Fir Inc"]),
        ("between Ab (“A”) and Abc (“B”)", ["Abc"]),
    ],
)
def test_short_names_in_capitals_are_no_shouts(text, names):
    assert parties_of(text) == names


def test_a_name_of_three_words_is_a_policys_title():
    assert title_of("Oak Privacy Policy\nWe keep it.", "privacy policy", "elm") == "Oak Privacy Policy"
    assert title_of("Privacy Policy\nWe keep it.", "privacy policy", "elm") == "elm Privacy Policy"


def test_a_paragraph_with_a_letter_behind_its_number_is_a_number():
    for text, last in (("25.2(2A), (4)", "4"), ("25.2(2), (4A)", "4A")):
        numbers = read_numbers(text, 0, plural=True)
        assert numbers is not None and numbers.paths[-1] == ("25", "2", last) and len(numbers.paths) == 2


def test_a_section_stands_at_the_top_unless_told_otherwise():
    made = Section(Span(0, 9))
    assert (made.level, made.kind, made.heading, made.children) == (0, "section", "", ())
    outer = Section(Span(0, 9), children=(made, Section(Span(5, 9), "b")))
    assert [section.heading for section in outer.walk()] == ["", "", "b"]


WORDS = "The Supplier shall deliver the goods to the Buyer at the agreed place and the Buyer shall pay for them.\n"


def test_a_title_on_two_lines_is_one_heading_and_the_next_line_is_read():
    text = f"{WORDS}4. Supply of\nthe Goods\n{WORDS}5. Price\n{WORDS}"
    assert [heading.text for heading in find_headings(Document("a.txt", text))] == [
        "4. Supply of the Goods",
        "5. Price",
    ]
    text = f"{WORDS}ARTICLE I\nTerm of Lease\n{WORDS}ARTICLE II\nPrice of Goods\n{WORDS}"
    assert [heading.text for heading in find_headings(Document("a.txt", text))] == [
        "ARTICLE I Term of Lease", "ARTICLE II Price of Goods",
    ]  # fmt: skip


def test_a_heading_ends_where_the_title_that_runs_in_does():
    text = f"{WORDS}4. Term. It is one year and {WORDS}5. Price\n{WORDS}"
    found = find_headings(Document("a.txt", text))
    assert [text[heading.start : heading.end] for heading in found] == ["4. Term.", "5. Price"]


def outline(text: str) -> list[str]:
    root = read_structure(Document("a.txt", text))
    return [f"{section.level} {section.heading}" for section in root.walk() if section.heading]


def test_items_of_lists_are_counted_on_where_they_were_begun():
    items = "".join(f"({letter}) {WORDS}" for letter in "abc")
    text = f"1. Supply\n{WORDS}{items}2. Price\n{WORDS}(a) {WORDS}(i) {WORDS}(ii) {WORDS}(b) {WORDS}"
    assert outline(text) == [
        "1 1. Supply", "2 (a)", "2 (b)", "2 (c)", "1 2. Price", "2 (a)", "3 (i)", "3 (ii)", "2 (b)",
    ]  # fmt: skip
