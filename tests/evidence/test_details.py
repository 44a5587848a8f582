"""Small guarantees that are easy to break: missing values, order, and boundary values."""

from __future__ import annotations

import unicodedata

import pytest
from lxml import etree
from PIL import Image, ImageChops, ImageDraw

from exhibit.evidence import Document, Span, fold, read_document
from exhibit.evidence.files import decode_bytes
from exhibit.evidence.numbering import W, read_numbering
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.read import read_boxes, read_words, render_within
from exhibit.evidence.readers import export, libreoffice, opendocument
from exhibit.evidence.readers.pdf import render
from exhibit.evidence.scan import measure_skew, sort_lines
from exhibit.evidence.text import KIND
from exhibit.schemas.errors import DocumentError
from tests.evidence.files import pack, pdf


def test_a_page_is_drawn_within_limits_as_without(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf("The rent is due."))
    one, other = render(tmp_path / "a.pdf", 1, scale=0.5), render_within(tmp_path / "a.pdf", 1, scale=0.5)
    assert one.size == other.size and ImageChops.difference(one, other).getbbox() is None


def test_a_text_without_a_file_has_no_boxes(tmp_path):
    assert read_boxes(Document("a.txt", "rent"), [Span(0, 4), Span(1, 2)]) == [[], []]
    assert read_words(Document("a.txt", "rent"), 1) == []
    (tmp_path / "a.pdf").write_bytes(pdf("The rent is due."))
    assert read_boxes(read_document(tmp_path / "a.pdf"), []) == []


def test_an_export_that_is_nested_too_deep_is_said_to_be(tmp_path, monkeypatch):
    def texts(_):
        raise RecursionError

    (tmp_path / "a.json").write_text('{"content": "rent"}', encoding="utf-8")
    monkeypatch.setattr(export, "_find_texts", texts)
    with pytest.raises(DocumentError, match="nested too deep"):
        export.read(tmp_path / "a.json")


def test_two_bytes_are_too_few_to_tell_an_encoding_by():
    assert decode_bytes(b"A\0") == ("A\0", "utf-8")
    assert decode_bytes(b"A\0B\0") == ("AB", "utf-16-le") and decode_bytes(b"\0A\0B") == ("AB", "utf-16-be")
    assert decode_bytes(b"A\0B\0C") == ("A\0B\0C", "utf-8"), "half a character"


def test_lines_are_ordered_by_their_middle_whatever_their_height():
    low, high = TextLine(0, 50, 10, 90, "tall and low", 1.0), TextLine(20, 0, 30, 10, "short and high", 1.0)
    assert sort_lines([low, high]) == [high, low]


def ruled(angle: float) -> Image.Image:
    picture = Image.new("L", (800, 1000), 255)
    draw = ImageDraw.Draw(picture)
    for top in range(150, 850, 30):
        draw.rectangle((150, top, 650, top + 8), fill=0)
    return picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)


@pytest.mark.parametrize(
    ("angle", "turn"), [(0.7, -0.7), *(pytest.param(angle, -angle, marks=pytest.mark.slow) for angle in (5.0, -2.4))]
)
def test_a_page_is_turned_back_to_a_tenth_of_a_degree(angle, turn):
    assert measure_skew(ruled(angle)) == turn


def test_no_finer_angle_is_tried():
    assert round(10 * measure_skew(ruled(2.37)), 6) in (-24, -23)


def restart(inside: str) -> int | None:
    """Return the level after which a list's first level restarts its numbering."""
    level = f'<w:abstractNum w:abstractNumId="9"><w:lvl w:ilvl="0">{inside}</w:lvl></w:abstractNum>'
    one = '<w:num w:numId="1"><w:abstractNumId w:val="9"/></w:num>'
    made = etree.fromstring(f'<w:numbering xmlns:w="{W.strip("{}")}">{level}{one}</w:numbering>')
    return read_numbering(made, None).lists["1"][1][0].restart


def test_a_level_that_says_restart_and_no_number_never_restarts():
    assert restart("<w:lvlRestart/>") == 0 and restart('<w:lvlRestart w:val="2"/>') == 2 and restart("") is None


def test_a_paragraph_without_a_depth_takes_its_style_s():
    names = f'xmlns:w="{W.strip("{}")}"'
    levels = "".join(
        f'<w:lvl w:ilvl="{depth}"><w:numFmt w:val="decimal"/><w:lvlText w:val="{mark}%{depth + 1}"/></w:lvl>'
        for depth, mark in enumerate("ab")
    )
    numbering = etree.fromstring(
        f'<w:numbering {names}><w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="7"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    )
    styles = etree.fromstring(
        f'<w:styles {names}><w:style w:type="paragraph" w:styleId="Sub"><w:pPr><w:numPr><w:ilvl w:val="1"/>'
        '<w:numId w:val="7"/></w:numPr></w:pPr></w:style></w:styles>'
    )
    rules = read_numbering(numbering, styles)

    def label(number: str) -> str:
        own = f'<w:pPr><w:pStyle w:val="Sub"/><w:numPr>{number}</w:numPr></w:pPr>'
        return rules.label(etree.fromstring(f"<w:p {names}>{own}</w:p>"))

    assert label("<w:ilvl/>") == "b1", "a depth that is not said is the style's"
    assert label('<w:numId w:val="7"/>') == "a2", "a number of its own begins at the top"


@pytest.mark.parametrize(
    "text", ["\u0301\u0300\u0323x", "x\u0301\u0300\u0323", "\u0323\u0301\u0300\u0316y\u0301\u0323"]
)
def test_marks_in_any_order_fold_alike(text):
    assert fold(text) == fold(unicodedata.normalize("NFD", text))


def test_only_a_folder_of_texts_counts_as_one(tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    assert KIND.is_one(tmp_path)
    (tmp_path / "b.txt").mkdir()
    assert not KIND.is_one(tmp_path)
    (tmp_path / "b.txt").rmdir()
    (tmp_path / "notes.md").write_text("x", encoding="utf-8")
    assert not KIND.is_one(tmp_path)


@pytest.mark.parametrize("content", [None, "<x/>"])
def test_an_opendocument_without_a_text_is_named(tmp_path, content):
    parts = {"mimetype": "application/vnd.oasis.opendocument.text"}
    (tmp_path / "a.odt").write_bytes(pack(parts if content is None else {**parts, "content.xml": content}))
    with pytest.raises(DocumentError, match=r"a\.odt: no text in it \(content\.xml\)"):
        opendocument.page(tmp_path / "a.odt")


def test_an_office_program_that_fails_is_told_in_its_own_words(tmp_path):
    program = tmp_path / "soffice"
    program.write_text("#!/bin/sh\necho 'no filter for this' >&2\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "a.doc").write_bytes(b"x" * 600)
    with pytest.raises(DocumentError, match=r"a\.doc: LibreOffice cannot convert this file \(no filter for this\)"):
        libreoffice.convert_file(tmp_path / "a.doc", "docx", tmp_path, str(program))


def test_the_letters_of_utf16_are_looked_for_where_the_zeros_are_not():
    assert decode_bytes(("A" * 7 + "\u2080" * 3).encode("utf-16-le")) is None, "seven of ten are letters"
    for encoding in ("utf-16-le", "utf-16-be"):
        assert decode_bytes(("A" * 9 + "\u2080").encode(encoding)) == ("A" * 9 + "\u2080", encoding)
