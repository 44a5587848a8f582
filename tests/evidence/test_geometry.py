"""Boxes on a page: which rectangles form a line, its position, and the largest allowed image."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pypdf import PdfReader, PdfWriter

from exhibit.evidence import Span, read_document
from exhibit.evidence.readers import pdf
from exhibit.evidence.readers.pdf import find_boxes, render, to_user_space
from exhibit.schemas.errors import DocumentError


def made(*contents: str, box: str = "0 0 400 200") -> bytes:
    """Return a hand-written PDF with pages of 400 by 200 points and text in 12-point Helvetica."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(contents)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, content in enumerate(contents):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1"))
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer << /Root 1 0 R /Size {len(objects) + 1} >>\n"
    )
    out.write(f"{head}startxref\n{out.tell()}\n%%EOF\n".encode("latin-1"))
    return out.getvalue()


def words(x: float, y: float, text: str) -> str:
    return f"BT /F 12 Tf {x} {y} Td ({text}) Tj ET"


@pytest.fixture
def page(tmp_path) -> Path:
    (tmp_path / "a.pdf").write_bytes(
        made(
            "\n".join([words(50, 150, "First line here"), words(50, 120, "Second one"), words(300, 120, "apart")]),
            words(50, 150, "Next page"),
        )
    )
    return tmp_path / "a.pdf"


def test_read_document_returns_text_and_pages_of_a_pdf(page):
    document = read_document(page)
    assert document.text == "First line here\nSecond one apart\nNext page"
    assert [(p.number, p.span, p.width, p.height) for p in document.pages] == [
        (1, (0, 32), 400, 200),
        (2, (33, 42), 400, 200),
    ]
    assert document.notes == ()


def marked(page: Path, quote: str) -> list[tuple[int, float, float, float, float]]:
    document = read_document(page)
    start = document.text.index(quote)
    return [tuple(round(value) for value in box) for box in find_boxes(document, Span(start, start + len(quote)))]  # type: ignore[misc]


def test_find_boxes_returns_separate_boxes_for_distant_words(page):
    [first] = marked(page, "First line here")
    assert first[0] == 1 and 49 <= first[1] <= 52 and 110 <= first[3] <= 140 and 38 <= first[2] < first[4] <= 54
    [word] = marked(page, "line")
    assert first[1] < word[1] < word[3] < first[3] and abs(word[4] - first[4]) <= 3
    assert [box[0] for box in marked(page, "Second one apart\nNext page")] == [1, 1, 2]
    [whole], [begin], [end] = (marked(page, quote) for quote in ("Second one", "Second", "one"))
    assert (begin[1], end[3]) == (whole[1], whole[3]) and begin[3] < end[1] and 49 <= whole[1] <= 52
    second, apart = marked(page, "Second one apart")
    assert second[3] < 130 and 299 <= apart[1] <= 302


def test_find_boxes_ignores_white_space_at_the_end(page):
    assert marked(page, "here\n") == marked(page, "here")
    document = read_document(page)
    assert find_boxes(document, Span(15, 16)) == [] and find_boxes(document, Span(3, 3)) == []
    assert find_boxes(document, Span(30, 33)) == find_boxes(document, Span(30, 32))


# top and bottom are in PDF's own coordinates: up is more


@pytest.mark.parametrize(
    ("turned", "expected"),
    [
        (0, [(0, 200), (400, 200), (0, 0), (10, 180)]),
        (90, [(0, 0), (0, 200), (400, 0), (20, 10)]),
        (180, [(400, 0), (0, 0), (400, 200), (390, 20)]),
    ],
)
def test_to_user_space_converts_points_of_a_rotated_page(page, tmp_path, turned, expected):
    writer = PdfWriter()
    writer.add_page(PdfReader(page).pages[0]).rotate(turned)
    writer.write(tmp_path / "turned.pdf")
    wide, high = (200, 400) if turned == 90 else (400, 200)
    points = to_user_space(tmp_path / "turned.pdf", 1, [(0, 0), (wide, 0), (0, high), (10, 20)])
    assert [(round(x, 1), round(y, 1)) for x, y in points] == expected


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
