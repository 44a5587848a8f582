"""OCR: pages without text are read from their picture, the others are left as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from evidence import Document, Page, Span, read_document
from rag import ocr
from rag.ocr import read_with_ocr
from schemas.errors import ToolkitError

LINES = [
    "This Agreement is made between Alder Mills and Birch Foods.",
    "1. Term. The term is five years.",
    "2. Price. The price is 400 pounds a ton.",
]


def draw(path: Path, *pages: list[str]) -> Path:
    """A PDF whose pages are pictures of lines."""
    font = ImageFont.load_default(size=34)
    images = []
    for lines in pages:
        image = Image.new("RGB", (1240, 500), "white")
        pen = ImageDraw.Draw(image)
        for row, line in enumerate(lines):
            pen.text((90, 90 + 80 * row), line, font=font, fill="black")
        images.append(image)
    images[0].save(path, save_all=True, append_images=images[1:], resolution=150)
    return path


@pytest.fixture
def fresh():
    """No engine is kept from another test."""
    ocr._reader.cache_clear()
    yield
    ocr._reader.cache_clear()


@pytest.mark.extra
@pytest.mark.slow
def test_a_scan_is_read_and_the_notes_say_so(tmp_path: Path, fresh):
    path = draw(tmp_path / "scan.pdf", LINES, [], [LINES[1]])
    assert not read_document(path).has_text
    document = read_with_ocr(path)
    assert document.text.split("\n")[:3] == LINES
    assert document.notes == ("page 1 read by OCR", "page 3 read by OCR")
    assert_consistent(document)
    assert document.pages_of(Span(0, 4)) == [1]
    last = document.pages[2].span
    assert document.text[last.start : last.end] == LINES[1]


def assert_consistent(document: Document) -> None:
    """Pages follow each other with one newline between them."""
    assert "\n".join(document.text[page.span.start : page.span.end] for page in document.pages) == document.text
    assert [page.number for page in document.pages] == list(range(1, len(document.pages) + 1))


def test_only_pages_without_text_are_put_in():
    document = Document(
        "a.pdf",
        "one\n\nthree",
        (Page(1, Span(0, 3), 9, 9), Page(2, Span(4, 4), 9, 9), Page(3, Span(5, 10), 9, 9)),
        notes=("page 1 is odd",),
    )
    whole = ocr._with_pages(document, {2: "two\nlines"})
    assert whole.text == "one\ntwo\nlines\nthree"
    assert whole.notes == ("page 1 is odd", "page 2 read by OCR")
    assert_consistent(whole)


def test_words_side_by_side_are_one_line():
    words = [(300, 10, 30, "right"), (10, 12, 32, "left"), (10, 50, 70, "below")]
    assert ocr._in_order([ocr._Word(*word) for word in words]) == "left right\nbelow"


def test_a_document_with_text_needs_no_ocr(samples: Path, monkeypatch: pytest.MonkeyPatch, fresh):
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    path = next(path for path in sorted(samples.rglob("*.pdf")) if read_document(path).has_text)
    assert read_with_ocr(path) == read_document(path)


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh):
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(ToolkitError, match=r"pip install 'exhibit-rag\[ocr\]'"):
        read_with_ocr(draw(tmp_path / "scan.pdf", LINES))
