"""Spans on pages, by hand: their boundaries, what is cut out of them, and running headers and footers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import etree

from exhibit.evidence import Document, Page, Span, locate
from exhibit.evidence.document import find_furniture
from exhibit.evidence.numbering import ListLevel, Numbering, W, read_numbering
from exhibit.evidence.read import read_boxes, read_words
from exhibit.evidence.readers import opendocument, pdf, word
from tests.evidence import files


@pytest.mark.parametrize(
    ("text", "at", "inside"),
    [("may", 0, False), ("may", 1, True), ("may", 3, False), ("m y", 1, False), ("m y", 2, False), ("12", 1, True),
     ("1a", 1, False), ("a1", 1, False), ("a.", 1, False)],
)  # fmt: skip
def test_a_place_inside_a_word_or_a_number(text, at, inside):
    for quote in filter(None, (text[:at], text[at:])):
        [match] = locate(quote, Document("a.txt", text))
        assert match.whole is not inside


def test_a_span_is_whole_where_neither_end_is_inside():
    made = Document("a.txt", "may do")
    assert [locate(quote, made)[0].whole for quote in ("may", "ma", "ay", "may do")] == [True, False, False, True]


HEAD = "Oak Lease\n"
PAGES = [f"{HEAD}the rent of page {word}\nFoot {number}" for number, word in ((1, "one"), (2, "two"), (3, "three"))]


def paged(*pages: str) -> Document:
    spans, start = [], 0
    for number, page in enumerate(pages, 1):
        spans.append(Page(number, Span(start, start + len(page)), 100.0, 100.0))
        start += len(page) + 1
    return Document("a.pdf", "\n".join(pages), tuple(spans))


def furniture(*pages: str) -> list[str]:
    made = paged(*pages)
    return [made.text[slice(*line)].strip() for line in made.furniture]


def test_lines_that_recur_at_an_edge_or_go_up_with_the_page_are_furniture():
    assert furniture(*PAGES) == ["Oak Lease", "Foot 1", "Oak Lease", "Foot 2", "Oak Lease", "Foot 3"]
    assert furniture(PAGES[0]) == [], "of one page nothing recurs"
    assert furniture("a\nb one\nc", "a\nd two\ne") == ["a", "a"]
    assert furniture("b one\nFoot 1", "d two\nFoot 2") == ["Foot 1", "Foot 2"], "of two pages two are all"
    assert furniture("b\nFoot 1", "d\nFoot 2", "e\nend", "f\nstop") == [], "of more pages it takes three in step"
    assert furniture("b\nFoot 1", "d\nFoot 2", "e\nFoot 3", "f\nstop") == ["Foot 1", "Foot 2", "Foot 3"]
    assert furniture("b\nFoot 1", "d\nFoot 3", "e\nFoot 5", "f\nstop") == [], "they go up by one"


def test_what_a_running_line_has_in_common_with_others():
    numbered = ["Page 3 of 9", "Page 4 of 9", "PAGE  5 of 9"]
    assert furniture(*(f"{line}\n{word}" for line, word in zip(numbered, "abc", strict=True))) == numbered
    lists = [(7, 1, 4, 9), (2, 8, 8, 3), (5, 5, 1, 1)]  # numbers that do not go up with the page
    for before, running in ((3, True), (4, False)):
        lines = ["a".join(map(str, [*some[:before], page])) for page, some in enumerate(lists, 1)]
        assert furniture(*(f"{line}\n{word}" for line, word in zip(lines, "abc", strict=True))) == lines * running
    assert furniture(" \nOak\nb one\nc", " \nOak\nd two\ne") == ["Oak", "Oak"], "a blank line is none"
    assert find_furniture("a", [Span(0, 1)]) == []


def test_furniture_is_cut_out_of_a_span_and_the_rest_is_trimmed():
    made = paged(*(page.replace(HEAD, f"{HEAD}\n  ") for page in PAGES))

    def words(quote: str) -> list[list[str]]:
        return [[made.text[slice(*span)] for span in match.spans] for match in locate(quote, made)]

    [match] = locate("PAGE ONE the rent of page TWO", made)
    assert match.how == "parts" and match.whole
    assert words("PAGE ONE the rent of page TWO") == [["page one", "the rent of page two"]], "trimmed on both sides"
    assert words("PAGE ONE foot 1 oak lease THE rent") == [["page one", "the rent"]]
    assert words("THE RENT") == [["the rent"]] * 3
    assert words("OAK LEASE") == [["Oak Lease"]] * 3 and words("foot 2") == [["Foot 2"]], "nothing but furniture"
    [part] = locate("AGE ONE", made)
    assert part.how == "folded" and not part.whole
    [across] = locate("page one the rent of page tw", made)
    assert len(across.spans) == 2 and not across.whole, "its last word goes on"
    assert locate("nowhere", made) == []


def test_spans_are_counted_from_the_beginning_of_their_page(monkeypatch, tmp_path):
    asked = []

    @contextmanager
    def opened(path):
        yield "pdf"

    def found(page, number, parts):
        asked.append((page, number, list(parts)))
        return [[f"box {part}"] for part in parts]

    monkeypatch.setattr(pdf, "open_pdf", opened)
    monkeypatch.setattr(pdf, "_open_page", lambda pdf, path, number: f"page {number}")
    monkeypatch.setattr(pdf, "find_boxes_on_page", found)
    made = Document("a.pdf", "x" * 31, tuple(Page(n, Span(11 * n - 11, 11 * n - 1), 9, 9) for n in (1, 2, 3)), tmp_path)
    assert pdf.find_page_boxes(made, 2, [Span(12, 15), Span(0, 31)]) == [["box (1, 4)"], ["box (0, 10)"]]
    assert asked.pop() == ("page 2", 2, [(1, 4), (0, 10)])
    assert pdf.find_boxes(made, Span(5, 13)) == ["box (5, 10)", "box (0, 2)"]
    assert [(page, number) for page, number, _ in asked] == [("page 1", 1), ("page 2", 2)]
    assert pdf.find_page_boxes(made, 2, []) == []


def test_nothing_is_opened_where_there_is_nothing_to_find(tmp_path):
    page = (Page(1, Span(0, 4), 9, 9),)
    assert read_boxes(Document("a.pdf", "rent", page), [Span(0, 4)]) == [[]]
    assert read_boxes(Document("a.pdf", "rent", page, tmp_path / "none.pdf"), []) == []
    assert read_words(Document("a.pdf", "rent", page), 1) == []


def test_a_paragraph_that_says_its_level_alone_is_of_its_styles_list():
    def place(inner: str) -> tuple[str | None, int]:
        told = f'<w:p xmlns:w="{W[1:-1]}"><w:pPr><w:pStyle w:val="S"/><w:numPr>{inner}</w:numPr></w:pPr></w:p>'
        return Numbering(styles={"S": ("5", 2)}).place_of(etree.fromstring(told))

    assert (
        place("") == ("5", 2) and place('<w:ilvl w:val="4"/>') == ("5", 4) and place('<w:ilvl w:val="x"/>') == ("5", 2)
    )
    assert place('<w:numId w:val="7"/>') == ("7", 0) and place('<w:numId w:val="7"/><w:ilvl w:val="1"/>') == ("7", 1)


# ---------------------------------------------------------------- numbers of headings


def odt(folder: Path, body: str, levels: str, style: str = "text:outline-style") -> str:
    """Return the HTML of an OpenDocument text whose headings, or whose list L, have these level definitions."""
    named = ' style:name="L"' if style == "text:list-style" else ""
    (folder / "a.odt").write_bytes(files.odt(body, automatic=f"<{style}{named}>{levels}</{style}>"))
    return opendocument.page(folder / "a.odt").html


def level(number: int, more: str, kind: str = "outline-level-style") -> str:
    return f'<text:{kind} text:level="{number}" {more}/>'


def test_headings_have_ten_levels_and_html_six(tmp_path):
    def heading(number: int, shown: int = 1) -> str:
        form = f'style:num-format="1" style:num-suffix="." text:display-levels="{shown}"'
        levels = "".join(level(n, form) for n in range(1, 12))
        return odt(tmp_path, f'<text:h text:outline-level="{number}">Rent</text:h>', levels)

    assert heading(1) == "<h1>1. Rent</h1>" and heading(6) == "<h6>1. Rent</h6>" == heading(7) == heading(99)
    assert heading(12, 10) == f"<h6>{'1.' * 10} Rent</h6>"
    assert odt(tmp_path, "<text:h>Rent</text:h>", "") == "<h1>Rent</h1>"


@pytest.mark.parametrize(
    ("value", "whole"), [(None, 7), ("", 7), ("x", 7), ("-1", 7), ("3", 3), ("1000000", 10**6), ("1000001", 10**6)]
)
def test_whole_numbers_of_a_file(value, whole):
    assert opendocument.parse_whole_number(value, 7) == whole


def test_levels_of_a_list_as_the_file_describes_them(tmp_path):
    number = "list-level-style-number"
    levels = level(1, 'style:num-format="1" text:start-value="3"', number)
    levels += level(2, 'style:num-format="i" text:start-value="4" text:display-levels="2"', number)
    levels += level(3, "", "list-level-style-bullet") + level(12, 'style:num-format="1"', number)

    def listed(depths: Sequence[int]) -> list[str]:
        items = ""
        for depth in depths:
            inner = "<text:p>x</text:p>"
            for _ in range(depth - 1):
                inner = f"<text:list><text:list-item>{inner}</text:list-item></text:list>"
            items += f"<text:list-item>{inner}</text:list-item>"
        html = odt(tmp_path, f'<text:list text:style-name="L">{items}</text:list>', levels, "text:list-style")
        return html.removeprefix("<p>").removesuffix("x</p>").split("x</p><p>")

    assert listed((1, 2, 2, 1, 2)) == ["3 ", "3.iv ", "3.v ", "4 ", "4.iv "]
    assert listed((2,)) == ["3.iv "], "a list that begins deep counts the level above as begun"
    assert listed((1, 3, 4, 12, 13)) == ["3 ", "\N{BULLET} ", "", "", ""]


def test_a_style_has_the_level_that_it_says_or_the_first():
    def style(name: str, inner: str, based: str = "") -> str:
        place = f"<w:pPr><w:numPr>{inner}</w:numPr></w:pPr>"
        return f'<w:style w:styleId="{name}"><w:basedOn w:val="{based}"/>{place}</w:style>'

    inner = style("A", '<w:numId w:val="1"/><w:ilvl w:val="x"/>')
    inner += style("B", '<w:numId w:val="2"/><w:ilvl w:val="3"/>') + style("C", '<w:ilvl w:val="2"/>', "B")
    inner += style("D", "", "B") + style("E", "") + style("F", '<w:numId w:val="4"/>')
    none = etree.fromstring(f'<w:numbering xmlns:w="{W[1:-1]}"/>')
    told = read_numbering(none, etree.fromstring(f'<w:styles xmlns:w="{W[1:-1]}">{inner}</w:styles>'))
    assert told.styles == {"A": ("1", 0), "B": ("2", 3), "C": ("2", 2), "D": ("2", 3), "F": ("4", 0)}
    assert told.lists == {}
    assert read_numbering(none, None).styles == {}


def test_a_number_is_written_before_the_words_and_behind_what_the_paragraph_says_of_itself():
    space = W[1:-1]
    lists = Numbering(lists={"1": ("9", {0: ListLevel(text="%1.")})}, styles={"": ("1", 0)})
    root = etree.fromstring(
        f'<w:body xmlns:w="{space}"><w:p><w:r><w:t>one</w:t></w:r><w:r><w:t>!</w:t></w:r></w:p>'
        '<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>two</w:t></w:r></w:p>'
        '<w:p><w:pPr><w:numPr><w:numId w:val="7"/></w:numPr></w:pPr><w:r><w:t>three</w:t></w:r></w:p></w:body>'
    )
    word.write_numbers(root, lists)
    assert ["".join(paragraph.itertext()) for paragraph in root] == ["1. one!", "2. two", "three"]
    assert root[1][0].tag == f"{W}pPr" and not root.findall(f".//{W}numPr")
    assert root[0][0][0].get("{http://www.w3.org/XML/1998/namespace}space") == "preserve"
    untouched = etree.tostring(root)
    word.write_numbers(root, Numbering(styles={"": ("1", 0)}))
    assert etree.tostring(root) == untouched
