"""Headings in a guide as it is printed: contents, running heads, wrapped titles, and the section under each."""

from __future__ import annotations

import pytest

from exhibit.converters._cpr.layout import Heading, find_headings, lines_of
from exhibit.converters._cpr.names import guide_courts, likeness, names_court, read_name, strange_courts
from exhibit.evidence import Document, Span
from exhibit.evidence.document import Page
from exhibit.law.structure.lines import Outline

PAGES = (
    "The Harbour Court Guide\nIssued in spring\n",
    "Contents\nSection 1. Moorings 1\n1.1 Who may ask 1\n1.2 What a harbour master must \nsay in reply 2\n"
    "Waiting times 2\nSection 2. Dues 3\nAppendix A: Forms 4\nAppendix B: Signals 4\n",
    "Moorings\n1\nSection 1. Moorings\n1.1 Who may ask\n1.1.1 An owner may ask for a mooring. The court has no\n"
    "waiting times\nof its own.\n1.1.2 So may a master.\n",
    "The Harbour Court Guide\n2\n1.2 What a harbour master must \nsay in reply\n1.2.1 The reply is in writing.\n"
    "Waiting times\n1.2.2 A berth is given within a week.\n",
    "Dues\n3\nSection 2. Dues\n2.1 Dues are paid in advance, see Appendix A: Forms;\nand they are not returned.\n"
    "Appendix A: Forms\nAppendix B: Signals\n",
    "The Harbour Court Guide\n4\nAppendix A: Forms\nForm 1 is blue.\nSCHEDULE 1\nIt has a seal.\n"
    "Appendix B: Signals7\nA bell is rung.\n",
)


@pytest.fixture(scope="module")
def guide() -> Document:
    pages, at = [], 0
    for number, text in enumerate(PAGES, 1):
        pages.append(Page(number, Span(at, at + len(text)), 595, 842))
        at += len(text)
    return Document("guide.pdf", "".join(PAGES), tuple(pages))


def headings_of(guide: Document) -> list[Heading]:
    lines, entries, _, running = lines_of(guide)
    return [h for h in find_headings(guide, lines, Outline(dict.fromkeys(entries, 0.0), running)) if h.titled]


def test_contents_and_running_heads_are_no_text_and_pages_have_their_printed_numbers(guide):
    lines, entries, printed, _ = lines_of(guide)
    assert {line.page for line in lines} == {1, 3, 4, 5, 6}
    assert entries["12whataharbourmastermustsayinreply"] == "1.2 What a harbour master must say in reply"
    assert printed == {3: 1, 4: 2, 5: 3, 6: 4}
    texts = [line.text for line in lines if line.page > 1]
    assert not {"Moorings", "Dues", "The Harbour Court Guide", "1", "4"} & set(texts)


def test_each_heading_has_the_section_under_it(guide):
    found = {h.name.text: (guide.text[h.start : h.until], h.page, h.last_page) for h in headings_of(guide)}
    assert list(found) == [
        "Section 1. Moorings",
        "1.1 Who may ask",
        "1.2 What a harbour master must say in reply",
        "Waiting times",
        "Section 2. Dues",
        "Appendix A: Forms",
        "SCHEDULE 1",
        "Appendix B: Signals",
    ]
    text, *pages = found["Section 1. Moorings"]
    assert text.endswith("given within a week.")
    assert pages == [3, 4]
    assert found["1.1 Who may ask"][0].endswith("So may a master.")
    assert found["1.2 What a harbour master must say in reply"][0].count("\n") == 4
    assert found["Waiting times"][1:] == (4, 4)
    assert found["Section 2. Dues"][0].endswith("not returned.")
    assert found["Appendix A: Forms"] == ("Appendix A: Forms\nForm 1 is blue.\nSCHEDULE 1\nIt has a seal.", 6, 6)
    assert found["Appendix B: Signals"][0].endswith("A bell is rung.")


@pytest.mark.parametrize(
    ("text", "kind", "number", "title"),
    [
        ("K.1 Continuation", "", "K1", "Continuation"),
        ("K. After trial", "", "K", "After trial"),
        ("Section 12. Witnesses", "", "12", "Witnesses"),
        ("Chapter 5 Judgment", "", "5", "Judgment"),
        ("Appendix B: Forms", "appendix", "B", "Forms"),
        ("Annex 12 – Names", "annex", "12", "Names"),
        ("Apendix B: Forms", "appendix", "B", "Forms"),
        ("9 Hearings", "", "9", "Hearings"),
        ("24.Bail", "", "24", "Bail"),
        ("5A. Use of juniors", "", "5A", "Use of juniors"),
        ("Rule 3.4(2)(a)", "", "3.4", ""),
        ("para 6.43", "", "6.43", ""),
        ("A guide to costs", "", "", "A guide to costs"),
        ("Costs", "", "", "Costs"),
    ],
)
def test_a_name_is_read_into_number_and_title(text, kind, number, title):
    name = read_name(text)
    assert (name.kind, name.number, name.title) == (kind, number, title)


@pytest.mark.parametrize(
    ("cited", "heading", "alike"),
    [
        ("Section 5. Case management", "Section 5. Case management in the TCC", True),
        ("5.9 Drawing Up of Orders", "5.9 Drawing up of orders", True),
        ("O.5 Acknowledgement of service", "O.5 Acknowledgment of service", True),
        ("After Trial", "K. After Trial", True),
        ("Pre-Trial Review", "D.17 Pretrial Review", True),
        ("D.7 Pre-trial checklist", "D.13 Pre-trial checklist", False),
        ("Annex 5. Contact details", "5. Contact details", False),
        ("Part 8 claims", "Part 20 claims", False),
        ("A.3 Circuit Commercial Court Users Committees", "A.3 The Commercial Court Users Committee", False),
        ("B.2 Starting a case in a Circuit Commercial Court", "B.2 Starting a case in the Commercial Court", False),
        ("25. Enforcement", "Enforcement", False),
        ("J.5 Reading lists …", "J.5 Reading", False),
    ],
)
def test_a_heading_is_alike_or_it_is_another(cited, heading, alike):
    assert (likeness(read_name(cited), read_name(heading, loose=False)) > 0) == alike


def test_a_court_is_known_by_its_name_its_initials_and_not_by_a_part_of_another():
    works = guide_courts(["The-Works-and-Water-Court-Guide"])
    assert works == {"works water": {"wwc"}}
    assert names_court("Works & Water Court", works)
    assert names_court("WWC Guide, section 4", works)
    assert not names_court("Water Court", works)
    harbour = guide_courts(["14.1_JO_Harbour_Court_Guide_FINAL"])
    assert names_court("In the Harbour Court, a claim", harbour)
    assert not names_court("Inland Harbour Court", harbour)
    assert not names_court("Harbour Registry Guide", harbour)
    said = "See the Inland Harbour Court Guide and the Harbour Court Guide."
    assert strange_courts(said, harbour, guides_only=True) == ["Inland Harbour Court Guide"]
    assert not strange_courts("Purpose of Guide", harbour, guides_only=True)
