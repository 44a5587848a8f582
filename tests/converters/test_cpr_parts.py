"""Exports and web pages of the CPR: cut into records, paragraphs and headings; page numbers in citations."""

from __future__ import annotations

import json

import pytest
from pypdf import PdfWriter

from exhibit.converters import RawDocument
from exhibit.converters.benchmark import Block
from exhibit.converters.civil_procedure import layout
from exhibit.converters.civil_procedure.corpus import Corpus
from exhibit.converters.civil_procedure.layout import Layout, RuleHeading
from exhibit.converters.civil_procedure.layout_lines import SourceLine
from exhibit.converters.civil_procedure.names import read_citation, read_name
from exhibit.converters.civil_procedure.parsing import (
    IndexExport,
    blocks_of,
    cut_body,
    heading_of,
    load_json,
    make_document_key,
    read_export,
    read_page,
    read_records,
    read_string,
)
from exhibit.converters.civil_procedure.resolution import RowEvidence
from exhibit.converters.civil_procedure.sources import (
    RulesFile,
    kind_of,
    make_candidates,
    reference_of,
    restore_full_name,
)
from exhibit.schemas.errors import DocumentError, SourceError


def test_records_are_found_wherever_an_export_puts_them():
    one, two = {"content": "a"}, {"chunks": []}
    assert list(read_records([one, [two]])) == [one, two] and list(
        read_records({"value": [one], "results": [two]})
    ) == [one, two]
    assert list(read_records({"documents": [one], "content": "x"})) == [{"documents": [one], "content": "x"}, one]
    assert list(read_records({"results": "x"})) == list(read_records("x")) == []
    assert read_string({"a": " ", "b": 3, "c": " x "}, "a", "b", "c") == "x" and read_string({}, "a") == ""


def test_chunks_of_a_document_share_its_key(tmp_path):
    keys = [
        {"parent_id": "Part 1", "id": "x"},
        {"id": "Part 1", "sourcefile": "y"},
        {"sourcefile": "z"},
        {"document": "w"},
        {},
    ]
    assert [make_document_key(record) for record in keys] == ["Part 1", "Part 1", "z", "w", ""]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"query": "q", "results": [{"content": "x", "id": "a"}]}), encoding="utf-8")
    assert read_export(path) == [], "what a search found is no document"
    path.write_bytes(
        b'\xef\xbb\xbf[{"id": "A", "content": "x"}, {"id": "A", "content": "y"}, {"id": "B", "content": "z"}]'
    )
    assert [(export.key, export.records) for export in read_export(path)] == [("A", 2), ("B", 1)]
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DocumentError):
        load_json(path)
    with pytest.raises(DocumentError, match="cannot be read"):
        load_json(tmp_path / "none.json")
    assert cut_body(" words ") == "words"


def test_a_page_is_cut_into_paragraphs_and_headings(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(
        "<title>One</title><title>Two</title><h2>Head</h2><p>a <b>b</b>\n c</p><script>x</script><style>y</style>"
        "<div>d<br>e</div><li>f</li><h3></h3>g",
        encoding="utf-8",
    )
    page = read_page(path)
    assert page.title == "One"
    assert page.blocks == (
        Block("h2", "Head"), Block("p", "a b c"), Block("p", "d"), Block("p", "e"), Block("p", "f"), Block("p", "g"),
    )  # fmt: skip


def test_a_text_brings_its_own_title_or_gets_one():
    assert (
        blocks_of("Part 1", "PART 1\n\nx")[0] == Block("h1", "PART 1") and len(blocks_of("Part 1", "PART 1\n\nx")) == 2
    )
    assert blocks_of("Part 1", "y\n\nx")[:2] == [Block("h1", "Part 1"), Block("p", "y")]
    assert blocks_of("Part 1", "") == [Block("h1", "Part 1")]
    assert heading_of("x" * 300 + "\n\ny") == "x" * 300 and heading_of("x" * 301) == heading_of("a\nb\n\nc") == ""


@pytest.mark.parametrize(
    ("paragraph", "heading"),
    [
        ("x" * 150, True),
        ("x" * 151, False),
        ("Costs.", False),
        ("Costs and", False),
        ("1.1 Costs", False),
        ("(a) costs", False),
        ("Costs", True),
        ("two\nlines", False),
    ],
)
def test_a_line_after_a_mark_is_a_heading_or_not(paragraph, heading):
    blocks = blocks_of("T", f"first\n\n---\n\n{paragraph}\n\nnext")
    assert blocks[2] == Block("h2" if heading else "p", paragraph) and blocks[3] == Block("p", "next")


def test_a_line_in_capitals_is_a_heading_without_a_mark():
    assert blocks_of("T", "first\n\nNINE CAPS")[2].style == "h2" and blocks_of("T", "first\n\nEIGHTCAP")[2].style == "p"


@pytest.mark.parametrize(
    ("name", "kind", "reference"),
    [
        ("Part 36 – Offers", "CPR", "Part 36"),
        ("PD 51ZG3 x", "PD", "PD 51ZG3"),
        ("Practice Direction – Reviews", "PD", ""),
        ("Cyfarwyddyd Ymarfer 5A", "PD", "Cyfarwyddyd Ymarfer 5A"),
        ("The Court Guide", "Court Guide", ""),
        ("Guidelines", "", ""),
        ("Notes on Part 3", "", ""),
    ],
)
def test_what_a_document_is_is_said_by_its_name(name, kind, reference):
    assert (kind_of(name), reference_of(name)) == (kind, reference)


def test_a_name_that_was_cut_has_its_section_again():
    assert restore_full_name("Part 3 – abc", "abc def") == "Part 3 – abc", "three letters say too little"
    assert restore_full_name("Part 3 – abcd", "abcd def") == "Part 3 – abcd def" and restore_full_name("", "x") == ""


def test_search_results_become_questions_each_once(tmp_path):
    result = {"id": "Part 3", "sourcepage": "Powers [x]", "content": "The court may.", "category": "c"}
    path = tmp_path / "a.json"
    others = [{**result, "id": f"Part {n}", "sourcepage": "S"} for n in (4, 5, 6)]
    path.write_text(
        json.dumps([{"query": "q?", "results": [result, *others]}, {"query": "none?", "results": []}]), encoding="utf-8"
    )
    again = tmp_path / "b.json"
    again.write_text(json.dumps([{"query": "q?", "results": others}]), encoding="utf-8")
    [one] = make_candidates([path, again])
    assert one["question"] == "q?" and one["source_type"] == "CPR" and one["category"] == "c"
    assert one["truth"] == "The court may. [Part 3#page=Powers (x)] [Part 4#page=S] [Part 5#page=S]", (
        "three at the most"
    )
    path.write_text(json.dumps([result]), encoding="utf-8")
    assert [row["question"] for row in make_candidates([path])] == ["What does Part 3 provide?"]
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(SourceError, match="no search results in it"):
        list(make_candidates([path]))


# ---------------------------------------------------------------- pages


def guide(offset: int = 0, pages: int = 12) -> Corpus:
    lines, headings, at = [], [], 0
    for page in range(1, pages + 1):
        for text in (f"{page}.1 Topic {'abcdefghijklmnop'[page]} of the court", f"Words of page {page}."):
            lines.append(SourceLine(at, at + len(text), text, page))
            at += len(text) + 1
        head, last = lines[-2:]
        headings.append(
            RuleHeading(
                head.start, head.end, read_name(head.text, loose=False), 1, page=page, until=last.end, last_page=page
            )
        )
    made = Layout("\n".join(line.text for line in lines), lines, headings, offset=offset)
    raw = RawDocument("Guide.pdf", "The Harbour Court Guide", path=None)
    source = RulesFile(raw, ("The Harbour Court Guide",), "Court Guide", "Guide.pdf")
    corpus = Corpus([source])
    corpus._layouts["Guide.pdf"] = made
    return corpus


@pytest.mark.parametrize(
    ("page", "offset", "bonus"),
    [(5, 0, 0.3), (6, 0, 0.2), (7, 0, 0.2), (8, 0, 0.0), (10, 0, 0.0), (11, 0, -0.15), (3, 2, 0.3), (1, 2, 0.2)],
)
def test_the_page_that_a_citation_gives_speaks_for_a_heading(page, offset, bonus):
    corpus = guide(offset)
    heading = corpus.read_layout(corpus.sources[0]).headings[4]
    citation = read_citation(f"5.1 Topic f of the court (p. {page})")
    assert corpus.weigh_page(corpus.sources[0], heading, citation) == bonus
    assert corpus.weigh_page(corpus.sources[0], None, citation) == 0.0
    assert corpus.weigh_page(corpus.sources[0], heading, read_citation("5.1 Topic f of the court")) == 0.0


def test_a_section_that_is_cited_with_a_number_and_a_title_is_enough():
    corpus = guide()
    found = corpus.resolve(read_citation("5.1 Topic f of the court"), RowEvidence())
    assert found.place is not None and found.place.text.startswith("5.1 Topic f") and found.place.page == 5
    assert corpus.faults == []
    none = corpus.resolve(read_citation("5.2 Topic of nothing"), RowEvidence())
    assert none.source is None and none.reason == "names no document of the corpus"


@pytest.mark.parametrize(
    ("content", "excerpt"),
    [
        ("a" * 600, "a" * 600),
        ("The rule. " * 70, ("The rule. " * 60).strip()),
        ("word " * 130, ("word " * 120).strip() + " …"),
        ("Short. " + "word " * 130, "Short. " + ("word " * 118).strip() + " …"),
        ("See [x]\n----\nnow", "See (x) now"),
    ],
)
def test_an_excerpt_is_of_whole_sentences_as_far_as_they_fit(tmp_path, content, excerpt):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"id": "Part 3", "content": content}]), encoding="utf-8")
    [one] = make_candidates([path])
    assert one["truth"] == f"{excerpt} [Part 3]"


def test_chunks_stand_in_the_order_of_their_numbers_each_once():
    export = IndexExport("k")
    export.add({"id": "k_chunk_2", "content": "second", "sourcepage": "S"})
    export.add({"id": "k_chunk_1", "content": "first", "sourcefile": "F", "url": "u"})
    export.add({"id": "k_chunk_1", "content": "first"})
    export.add(
        {"chunks": [{"id": "k_chunk_10", "content": "last"}, "odd", {"id": "x", "content": ""}], "content": "not this"}
    )
    assert export.text == "first\n\nsecond\n\nlast" and export.records == 4
    assert (export.sourcefile, export.url, list(export.sections)) == ("F", "u", ["S"])
    long = IndexExport("k")
    long.add({"id": f"k_chunk_{'9' * 10}", "content": "place"})
    long.add({"id": f"k_chunk_{'9' * 9}", "content": "number"})
    assert [number for number, _ in long.pieces] == [0, 999_999_999]
    head = "Document: x\nSection: y\nPart 1 of 2\n=====\nwords"
    assert cut_body(head) == "words" and cut_body("Document: x\nwords") == "Document: x\nwords"


def test_titles_beside_numbered_chapters_are_chapters(monkeypatch, tmp_path):
    listed = [("Foreword", 0), ("Chapter 1 Trial", 1), ("Summary", 1), ("1.1 Witnesses", 2), ("Deep", 2)]
    monkeypatch.setattr(layout, "read_outline", lambda _path: listed)
    assert layout.read_bookmark_levels(tmp_path) == {
        "foreword": 3.0, "chapter1trial": 3.0, "summary": 3.0, "11witnesses": 0.0, "deep": 0.0,
    }  # fmt: skip
    monkeypatch.setattr(layout, "read_outline", lambda _path: [("Foreword", 0)])
    assert layout.read_bookmark_levels(tmp_path) == {"foreword": 0.0}, "nothing is numbered"


def test_the_outline_of_a_pdf_is_read_and_a_damaged_one_has_none(tmp_path):
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    top = writer.add_outline_item("Chapter 1", 0)
    writer.add_outline_item("1.1 Inner", 0, parent=top)
    writer.write(tmp_path / "a.pdf")
    assert layout.read_outline(tmp_path / "a.pdf") == [("Chapter 1", 0), ("1.1 Inner", 1)]
    (tmp_path / "b.pdf").write_bytes(b"no pdf")
    assert layout.read_outline(tmp_path / "b.pdf") == layout.read_outline(tmp_path / "none.pdf") == []


def test_a_document_that_is_cited_as_a_whole_is_a_place_where_it_is_short():
    text = "\n Part 1 – Purpose \n\n1.1 The aim.\n"
    raw = RawDocument("Part 1.pdf", "Part 1 – Purpose", text=text)
    source = RulesFile(raw, ("Part 1 – Purpose", "Part 1"), "CPR", "x", tuple(blocks_of("Part 1 – Purpose", text)))
    found = Corpus([source]).resolve(read_citation("Part 1"), RowEvidence())
    assert found.place is not None and (found.place.page, found.place.heading) == (1, "Part 1 – Purpose")
    assert found.place.text == text.strip() and (found.place.start, found.place.end) == (2, len(text) - 1)


@pytest.mark.parametrize("cited", ["PD 16 para 4.2", "Practice Direction 16, paragraph 4.2(1)", "PD16 4.2"])
def test_a_paragraph_of_a_direction_is_found_by_its_number(cited):
    sources = []
    for number in (16, 17):
        title, text = f"Practice Direction {number}", f"4.1 First of {number}.\n\n4.2 Second of {number}.\n\n4.3 Third."
        blocks = tuple(blocks_of(title, text))
        raw = RawDocument(f"{title}.pdf", title, text="\n\n".join(block.text for block in blocks))
        sources.append(RulesFile(raw, (title,), "PD", title, blocks))
    found = Corpus(sources).resolve(read_citation(cited), RowEvidence("PD"))
    assert found.place is not None and found.place.text == "4.2 Second of 16."
