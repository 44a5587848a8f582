"""Positions on a page: the boxes of a quote and of each word, and images of pages."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from exhibit.evidence import Span, read_document
from exhibit.evidence.document import Page
from exhibit.evidence.read import has_page, is_readable, read_boxes, read_words
from exhibit.evidence.readers import pdf
from exhibit.evidence.readers.pdf import find_boxes, render
from exhibit.evidence.show import draw_page_uri
from exhibit.schemas.errors import DocumentError
from exhibit.storage.locations import parse_location
from tests.evidence.files import stream, write_pdf


def make_pdf(*contents: str) -> bytes:
    """Return a hand-written PDF with pages of 400 by 200 points and text in 12-point Helvetica."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, content in enumerate(contents):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents %d 0 R "
            b"/Resources << /Font << /F 3 0 R >> >> >>" % (5 + 2 * number)
        )
        objects.append(stream(content.encode("ascii")))
    return write_pdf(objects)


def words(x: float, y: float, text: str) -> str:
    return f"BT /F 12 Tf {x} {y} Td ({text}) Tj ET"


@pytest.fixture
def page(tmp_path) -> Path:
    lines = [words(50, 150, "First line here"), words(50, 120, "Second one"), words(300, 120, "apart")]
    (tmp_path / "a.pdf").write_bytes(make_pdf("\n".join(lines), words(50, 150, "Next page")))
    return tmp_path / "a.pdf"


def test_read_document_returns_text_and_pages_of_a_pdf(page):
    document = read_document(page)
    assert document.text == "First line here\nSecond one apart\nNext page"
    pages = [(p.number, p.span, p.width, p.height) for p in document.pages]
    assert pages == [(1, (0, 32), 400, 200), (2, (33, 42), 400, 200)]
    assert document.notes == ()


def find_quote_boxes(page: Path, quote: str) -> list[tuple[int, float, float, float, float]]:
    document = read_document(page)
    start = document.text.index(quote)
    return [tuple(round(value) for value in box) for box in find_boxes(document, [Span(start, start + len(quote))])[0]]  # type: ignore[misc]


def test_find_boxes_returns_separate_boxes_for_distant_words(page):
    [first] = find_quote_boxes(page, "First line here")
    assert first[0] == 1 and 49 <= first[1] <= 52 and 110 <= first[3] <= 140 and 38 <= first[2] < first[4] <= 54
    [word] = find_quote_boxes(page, "line")
    assert first[1] < word[1] < word[3] < first[3] and abs(word[4] - first[4]) <= 3
    assert [box[0] for box in find_quote_boxes(page, "Second one apart\nNext page")] == [1, 1, 2]
    [whole], [begin], [end] = (find_quote_boxes(page, quote) for quote in ("Second one", "Second", "one"))
    assert (begin[1], end[3]) == (whole[1], whole[3]) and begin[3] < end[1] and 49 <= whole[1] <= 52
    second, apart = find_quote_boxes(page, "Second one apart")
    assert second[3] < 130 and 299 <= apart[1] <= 302


def test_find_boxes_ignores_white_space_at_the_end_of_a_span(page):
    assert find_quote_boxes(page, "here\n") == find_quote_boxes(page, "here")
    document = read_document(page)
    assert find_boxes(document, [Span(15, 16), Span(3, 3)]) == [[], []]
    longer, shorter = find_boxes(document, [Span(30, 33), Span(30, 32)])
    assert longer == shorter


def test_render_refuses_a_page_above_the_pixel_limit(page, monkeypatch):
    assert render(page, 1, scale=0.5).size == (200, 100)
    monkeypatch.setattr(pdf, "_MOST_PIXELS", 400 * 200)
    assert render(page, 2, scale=1.0).size == (400, 200)
    with pytest.raises(DocumentError, match="page 2 is 400 by 200 points, which is too large to draw"):
        render(page, 2, scale=1.01)


def test_read_document_refuses_a_pdf_above_the_page_limit(page, monkeypatch):
    monkeypatch.setattr(pdf, "_MOST_PAGES", 2)
    assert len(read_document(page).pages) == 2
    monkeypatch.setattr(pdf, "_MOST_PAGES", 1)
    with pytest.raises(DocumentError, match="has 2 pages, but the limit is 1"):
        read_document(page)


@pytest.fixture(scope="module")
def contract(samples):
    return read_document(next((samples / "cuad").rglob("*.[pP][dD][fF]")))


def test_read_words_returns_the_words_of_the_page_text_with_their_boxes(contract):
    words = read_words(contract, 2)
    page = contract.pages[1]
    assert [contract.text[span.start : span.end] for span, _ in words] == contract.text[
        page.span.start : page.span.end
    ].split()
    few = words[:3]
    assert [boxes for _, boxes in few] == read_boxes(contract, [span for span, _ in few])
    for _, boxes in words:
        assert boxes and all(0 <= box.left < box.right <= page.width and box.page == 2 for box in boxes)


def test_draw_page_uri_uses_png_for_grey_pages_and_webp_for_colour(contract, tmp_path):
    kind, picture = open_data_uri(draw_page_uri(contract.path, contract.pages[0], width=400))
    assert (kind, picture.width) == ("png", 400)
    path = tmp_path / "red.pdf"
    Image.new("RGB", (300, 300), (200, 20, 20)).save(path)
    kind, picture = open_data_uri(draw_page_uri(path, Page(1, Span(0, 0), 300, 300), width=300))
    red, green, _ = picture.convert("RGB").getpixel((150, 150))
    assert kind == "webp" and red > 150 > green


def open_data_uri(uri):
    head, _, data = uri.partition(";base64,")
    return head.removeprefix("data:image/"), Image.open(io.BytesIO(base64.b64decode(data)))


def test_is_readable_and_has_page_depend_on_the_file_suffix(tmp_path):
    assert is_readable(parse_location("a.PDF")) and not is_readable(parse_location("a.mp4"))
    assert has_page(parse_location("a.docx")) and not has_page(parse_location("a.pdf"))
    assert not has_page(parse_location("a"))
    (tmp_path / "No. 4").write_bytes(make_pdf(words(50, 150, "Words")))
    assert read_document(tmp_path / "No. 4").text == "Words"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("well\ufffeknown", "well-known"),
        ("a\u00a0b\u2003c\x07d\u2028e", "a b c d e"),
        ("é“", "é“"),
    ],
)
def test_clean_text_replaces_special_spaces_and_hyphens_of_a_pdf(raw, clean):
    assert pdf.clean_text(raw) == clean
