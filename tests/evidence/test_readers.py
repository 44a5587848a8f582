"""Readers return text with coordinates or raise a clear error; they never crash or hang."""

import io

import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter

from exhibit.evidence import Span, locate, read_document
from exhibit.evidence.readers.pdf import find_boxes, read_title
from exhibit.evidence.show import draw_spans
from exhibit.schemas.errors import DocumentError
from tests.evidence.test_geometry import make_pdf, words


@pytest.fixture(scope="module")
def contract(samples):
    return next((samples / "cuad").rglob("TESSALINE*.pdf"))


def test_read_title_returns_the_title_in_the_metadata(tmp_path):
    writer = PdfWriter()
    writer.add_blank_page(600, 800)
    writer.add_metadata({"/Title": "Guide to the Höfe"})
    writer.write(tmp_path / "guide.pdf")
    assert read_title(tmp_path / "guide.pdf") == "Guide to the Höfe"


def test_pages_of_a_span_are_all_pages_that_the_span_overlaps(contract):
    document = read_document(contract)
    second = document.pages[1].span
    assert document.pages_of(Span(second.start, second.start + 5)) == [2]
    assert document.pages_of(Span(second.start - 5, second.start + 5)) == [1, 2]
    assert document.pages_of(Span(0, len(document.text))) == [page.number for page in document.pages]


def test_draw_spans_marks_the_words_in_yellow(contract):
    document = read_document(contract)
    [match, *_] = locate("SOFTWARE LICENSE AND HOSTING AGREEMENT", document)
    picture = draw_spans(document, [match.span], scale=1.0)[1]
    [[box, *_]] = find_boxes(document, [match.span])
    marked = picture.crop((int(box.left), int(box.top), int(box.right), int(box.bottom)))
    yellow = [red > blue + 40 for red, _, blue in marked.get_flattened_data()]
    assert sum(yellow) > len(yellow) / 2
    assert picture.getpixel((5, 5)) == (255, 255, 255)


def test_find_boxes_returns_boxes_on_a_rotated_page(contract, tmp_path):
    writer = PdfWriter()
    writer.add_page(PdfReader(contract).pages[0]).rotate(90)
    writer.write(tmp_path / "turned.pdf")
    document = read_document(tmp_path / "turned.pdf")
    assert document.pages[0].width > document.pages[0].height
    [match, *_] = locate("SOFTWARE LICENSE AND HOSTING AGREEMENT", document)
    [[box, *_]] = find_boxes(document, [match.span])
    # turned clockwise, the title's line runs downward near the right edge
    assert box.bottom - box.top > box.right - box.left and box.left > document.pages[0].width / 2


def pdf_bytes(writer: PdfWriter) -> bytes:
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_read_document_reports_an_encrypted_pdf(contract, write):
    writer = PdfWriter(clone_from=contract)
    writer.encrypt("secret", algorithm="RC4-128")
    with pytest.raises(DocumentError, match="encrypted; remove the password"):
        read_document(write("locked.pdf", pdf_bytes(writer)))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.pdf", b"", "not a PDF, it starts with b''"),
        ("text.pdf", b"This Agreement is made", "not a PDF, it starts with b'This Agreeme'"),
        ("broken.pdf", b"%PDF-1.7\ngarbage", "damaged or incomplete"),
        ("bytes.txt", b"\x00\x01\xfe" * 9, "not a text file"),
        ("image.tiff", b"II*", "cannot be read: damaged, or not a valid picture"),
        ("film.mp4", b"ftyp", "no reader for .mp4; supported:"),
    ],
)
def test_read_document_reports_an_invalid_file(write, name, data, message):
    with pytest.raises(DocumentError, match=message):
        read_document(write(name, data))


def test_read_document_reports_a_missing_file(tmp_path):
    for name in ("no.pdf", "no.txt", "no"):
        with pytest.raises(DocumentError, match="missing|cannot be read"):
            read_document(tmp_path / name)


def test_read_document_finds_no_text_in_a_scan(tmp_path):
    Image.new("RGB", (200, 300), "white").save(tmp_path / "scan.pdf")
    document = read_document(tmp_path / "scan.pdf")
    assert not document.has_text and len(document.pages) == 1
    assert locate("anything", document) == []


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_read_document_reads_a_pdf_with_thousands_of_pages(write, count):
    pages = (words(50, 150, f"Clause {number} binds the parties.") for number in range(1, count + 1))
    document = read_document(write("long.pdf", make_pdf(*pages)))
    assert len(document.pages) == count
    [match] = locate(f"Clause {count - 13} binds the parties.", document)
    assert document.pages_of(match.span) == [count - 13]
    assert find_boxes(document, [match.span])[0][0].page == count - 13


def test_read_document_returns_every_character_of_a_text_file(write):
    text = "\ufeffARTICLE I\r\nDefinitions\x0c\n\ttab  and 𝒳"
    document = read_document(write("a.txt", text))
    assert document.text == text and document.pages == ()
