"""Headings in a guide as it is printed: contents, running heads, wrapped titles, and the section under each."""

from __future__ import annotations

import pytest

from exhibit.converters.civil_procedure.layout import Layout, RuleHeading, find_headings, list_splits
from exhibit.converters.civil_procedure.layout_lines import SourceLine, lines_of
from exhibit.converters.civil_procedure.names import (
    compare_names,
    find_citations,
    find_courts,
    find_strange_courts,
    guide_courts,
    names_court,
    read_citation,
    read_name,
)
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


def headings_of(guide: Document) -> list[RuleHeading]:
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
    assert (compare_names(read_name(cited), read_name(heading, loose=False)) > 0) == alike


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
    assert find_strange_courts(said, harbour, guides_only=True) == ["Inland Harbour Court Guide"]
    assert not find_strange_courts("Purpose of Guide", harbour, guides_only=True)


@pytest.mark.parametrize(
    ("text", "kind", "number", "title"),
    [
        ("Part 20 claims", "", "", "Part 20 claims"),
        ("Part 20. Claims", "part", "20", "Claims"),
        ("Part 20", "part", "20", ""),
        ("Chapter 5 Judgment", "", "5", "Judgment"),
        ("Section 3 (draft)", "", "3", ""),
        ("Annex 2 of the guide", "", "", "Annex 2 of the guide"),
        ("Appendix B) list", "", "", "Appendix B) list"),
        ("Schedule 1 –", "schedule", "1", ""),
        ("Rule 3.4 Strike out", "", "", "Rule 3.4 Strike out"),
        ("9 Hearings", "", "", "9 Hearings"),
        ("7. Names", "", "7", "Names"),
        ("Chaptr 5 Costs", "", "", "Chaptr 5 Costs"),
    ],
)
def test_a_heading_has_a_number_where_the_words_before_it_are_its_own(text, kind, number, title):
    name = read_name(text, loose=False)
    assert (name.kind, name.number, name.title) == (kind, number, title)


def test_a_citation_may_have_a_slip_in_the_word_before_its_number():
    assert read_name("Chaptr 5 Costs").number == "5" and read_name("Sectoin 5 Costs").number == ""


@pytest.mark.parametrize(
    ("cited", "heading", "like"),
    [
        ("Costs", "5. Costs", 1.0),
        ("5. Costs", "Costs", 0.0),
        ("Section 5", "5. Costs", 1.0),
        ("5. Costs", "5.", 0.0),
        ("", "Costs", 0.0),
        ("Costs and fees", "Fees and costs", 0.97),
        ("Judgement", "Judgment", 0.97),
        ("Cost…", "Costs", 0.97),
        ("Cos…", "Costs", 0.0),
        ("Costs budgets…", "Costs budget and list", 0.0),
        ("5.1 Bail form", "5.1 Mail form", 0.93),
        ("Bail form", "Mail form", 0.0),
        ("5.1 Bail form", "5.1 Bali form", 0.0),
        ("5.1 Ba form", "5.1 Be form", 0.0),
        ("5.1 Bail 2021", "5.1 Bail 2022", 0.0),
        ("Costs budget list", "The costs budget list of cases", 0.8 + 0.15 * 3 / 4),
        ("Costs budget list", "Costs budget list claims fees", 0.8 + 0.15 * 3 / 5),
        ("Costs budget list", "Costs budget list claims fees more", 0.0),
        ("Costs budget", "Costs budget list", 0.0),
        ("Costs budget list", "Budget costs list fees", 0.0),
        ("5.1 Costs", "5.1 Costs budget list", 0.8 + 0.15 / 3),
        ("5.1 Costs", "5.1 Costs budget list fees", 0.0),
        ("Acknowledgement", "Acknowledgmint", 0.97),
        ("Acknowledgement", "Acknowladgmint", 0.0),
        ("Trials", "Trial", 0.97),
        ("Trial", "Trail", 0.0),
        ("Bails", "Bail", 0.0),
        ("Dwellings", "Swellings", 0.97),
        ("Dwelling", "Swellinh", 0.0),
        ("Annex A: X y", "Appendix A: X y", 0.0),
    ],
)
def test_how_alike_two_headings_are(cited, heading, like):
    assert compare_names(read_name(cited), read_name(heading, loose=False)) == pytest.approx(like)


@pytest.mark.parametrize(
    ("text", "document", "section", "pages"),
    [
        ("Part 3, p. 12", "Part 3", "", (12, 12)),
        ("Guide (pp. 12-14)", "Guide", "", (12, 14)),
        ("Guide, pages 3, 5", "Guide", "", (3, 5)),
        ("Guide#page=12-9", "Guide", "", (12, 12)),
        ("Guide#page=Time (p. 4)", "Guide", "Time", (4, 4)),
        ("Guide#page=C.2 Time", "Guide", "C.2 Time", None),
        ("Guide p. 123456789", "Guide", "", (123456789, 123456789)),
        ("Guide p. 1234567890", "Guide", "", None),
    ],
)
def test_a_citation_is_read_into_document_section_and_pages(text, document, section, pages):
    one = read_citation(text)
    assert (one.text, one.document, one.section, one.pages) == (text, document, section, pages)


@pytest.mark.parametrize(
    ("truth", "cited"),
    [
        ("A. [1, 2–4]", []),
        ("A [Offers to Settle]", ["Offers to Settle"]),
        ("A. [offers]", ["offers"]),
        ("He said “[the] rent”. [Costs]", ["Costs"]),
        ('He "said [Costs Budget] it"', []),
        ("Pay [insert date].", []),
        ("Pay. [The Name of Parties]", ["The Name of Parties"]),
        ("Pay [The Name of Parties] soon.", []),
        ("Pay. [Name Parties]", ["Name Parties"]),
        ("Pay. [Name parties]", []),
        ("Pay. [Name of party]", ["Name of party"]),
        ("Pay. [Name]", []),
        ("Pay [a b] soon", []),
        ("Pay [Costs] soon", []),
        ("Pay [Costs], soon", ["Costs"]),
        ("Pay [Costs Fees] soon", ["Costs Fees"]),
        ("Pay [x].", []),
        ("Pay [part 3] soon", ["part 3"]),
        ("Pay [costs fees]", ["costs fees"]),
        ("Pay [costs fees]. More", []),
        ("Pay: [costs fees]\nMore", ["costs fees"]),
        ("Q [Part 3] and [PART  3].", ["Part 3"]),
    ],
)
def test_a_bracket_is_a_citation_or_an_editors(truth, cited):
    assert [one.text for one in find_citations(truth)] == cited


def test_a_citation_has_five_hundred_characters_at_the_most():
    for length, number in ((500, 1), (501, 0)):
        assert len(find_citations(f"A. [{'Part 3 ' * 71}{'a' * (length - 497)}]")) == number


@pytest.mark.parametrize(
    ("text", "courts", "guides"),
    [
        ("See the Harbour Court and the Inland Harbour Court.", ["harbour", "inland harbour"], {}),
        ("Queen's Bench Division", ["kings bench"], {}),
        ("the Court of Appeal", [], {}),
        ("Courts and Tribunals Judiciary The Commercial Court", ["commercial"], {}),
        ("King's Bench Guide 2024", ["kings bench"], {"kings bench": {"kb", "kbd"}}),
        ("Chancery Division Guide", ["chancery"], {"chancery": {"cd"}}),
        ("Harbour and Dock Division Guide", ["harbour dock"], {"harbour dock": {"hd", "hdd"}}),
        ("Patent Court Guide", ["patents"], {"patents": {"pc"}}),
    ],
)
def test_courts_are_told_by_the_words_that_tell(text, courts, guides):
    assert list(find_courts(text)) == courts and guide_courts([text]) == guides


# ---------------------------------------------------------------- what a citation means in a layout


def layout_of(*rows: tuple[str, int]) -> Layout:
    """Return a layout of these lines on one page; each has a heading level, which is 0 for plain text."""
    lines, at = [], 0
    for text, _ in rows:
        lines.append(SourceLine(at, at + len(text), text, 1))
        at += len(text) + 1
    headings = []
    for place, (line, (text, level)) in enumerate(zip(lines, rows, strict=True)):
        if level:
            after = [
                other.start
                for other, (_, deep) in zip(lines[place + 1 :], rows[place + 1 :], strict=True)
                if 0 < deep <= level
            ]
            until = min([lines[-1].end, *(start - 1 for start in after)])
            headings.append(RuleHeading(line.start, line.end, read_name(text, loose=False), level, page=1, until=until))
    return Layout("\n".join(text for text, _ in rows), lines, headings, listed=(read_name("9.9 Unread page"),))


RULES = layout_of(
    ("Chapter 1 Trial", 1), ("Opening speech", 0), ("It is short.", 0), ("1.1 Witness list", 2), ("A list.", 0),
    ("Closing speech", 0), ("Last.", 0), ("Chapter 2 Costs", 1), ("2.1 Budget", 2), ("Closing speech", 0),
    ("It is long", 0), ("2.2 Fees", 2), ("the fee is due", 0), ("and a Small note.", 0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("cited", "meant"),
    [
        ("1.1 Witness list", [("1.1 Witness list\nA list.\nClosing speech\nLast.", 1.0, False)]),
        ("Chapter 1 Trial, 1.1 Witness list", [("1.1 Witness list\nA list.\nClosing speech\nLast.", 1.0, True)]),
        ("Opening speech", [("Opening speech\nIt is short.", 1.0, False)]),
        ("Closing speech", [("Closing speech\nLast.", 1.0, False), ("Closing speech\nIt is long", 1.0, False)]),
        (
            "Chapter 2 Costs, Closing speech",
            [
                (RULES.text[RULES.text.index("Chapter 2") :], 0.8 + 0.15 / 3, False),
                ("Closing speech\nIt is long", 1.0, True),
            ],
        ),
        ("Part 7, 2.2 Fees", [("2.2 Fees\nthe fee is due\nand a Small note.", 1.0, True)]),
        ("Chapter 2 Cost, 2.2 Fees", [("2.2 Fees\nthe fee is due\nand a Small note.", 1.0, True)]),
        ("Budgets", [("2.1 Budget\nClosing speech\nIt is long", 0.97, False)]),
        ("9.9 Unread page", [(None, 1.0, False)]),
        ("9.9", []),
        ("The fee is due", []),
        ("Speech", []),
        ("Small note", []),
    ],
)
def test_what_a_text_can_mean(cited, meant):
    found = [(h and RULES.text[h.start : h.until], like, above) for h, like, above in RULES.find_meant(cited)]
    assert found == [(text, pytest.approx(like), above) for text, like, above in meant]


def test_a_title_stands_as_whole_lines_and_four_at_the_most():
    lines = [(word, 0) for word in ("One", "Two", "Three", "Four", "Five")]
    four, five = layout_of(*lines), "One Two Three Four Five"
    assert [(h.start, h.end) for h in four.find_titled("One Two Three Four")] == [(0, 18)]
    assert list(four.find_titled(five)) == list(four.find_titled("")) == list(four.find_titled("One Tw")) == []
    for end in ".,;:":
        assert list(layout_of((f"One{end}", 0)).find_titled("One")) == []
    assert len(list(layout_of(("One.x", 0)).find_titled("One.x"))) == 1, "a mark within it ends nothing"


def test_a_text_is_two_names_at_each_mark_between_words():
    assert list_splits("Guide, Part 3 - Costs") == [("Guide", "Part 3 - Costs"), ("Guide, Part 3", "Costs")]
    assert list_splits("Court Guide Costs: fees") == [("Court Guide", "Costs: fees"), ("Court Guide Costs", "fees")]
    assert list_splits("Court Guide 2024 Costs") == [("Court Guide", "2024 Costs"), ("Court Guide 2024", "Costs")]
    assert list_splits("Costs, ") == list_splits("One-two") == []
