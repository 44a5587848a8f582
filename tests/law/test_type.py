"""Headings recognised by their font: larger than the text, or bold if nothing is larger."""

from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from exhibit.evidence import Document
from exhibit.evidence.read import read_document
from exhibit.law.structure import read_structure
from exhibit.law.structure.headings import find_headings
from exhibit.law.structure.lines import NO_OUTLINE, make_typed_outline

TEXT = "the harbour master may give a berth to any vessel that asks for one in good time and pays"
TITLES = ["Moorings", "Dues that fall due", "Lights and signals at night"]
BODY, LARGE, BOLD = ("Helvetica", 10), ("Helvetica", 16), ("Helvetica-Bold", 10)


def write(path: Path, lines: list[tuple[str, tuple[str, int]]]) -> Document:
    canvas = Canvas(str(path))
    for number, (words, (font, size)) in enumerate(lines):
        canvas.setFont(font, size)
        canvas.drawString(72, 800 - 24 * number, words)
    canvas.save()
    return read_document(path)


def guide(path: Path, heading: tuple[str, int]) -> Document:
    return write(path, [line for title in TITLES for line in ((title, heading), (TEXT, BODY), (TEXT, BODY))])


@pytest.mark.parametrize("heading", [LARGE, BOLD])
def test_pdf_headings_are_recognised_by_font(tmp_path, heading):
    document = guide(tmp_path / "guide.pdf", heading)
    assert [child.heading for child in read_structure(document).children] == TITLES
    assert not [h for h in find_headings(document, NO_OUTLINE) if h.title == "Dues that fall due"]


def test_numbered_sentence_in_body_font_has_no_title(tmp_path):
    lines = [("1. Moorings", LARGE), ("1.1 A Master of the Harbour", BODY), (TEXT, BODY)]
    more = [("2. Dues", LARGE), ("2.1 Dues are paid", BODY), (TEXT, BODY), ("3. Signals", LARGE), (TEXT, BODY)]
    document = write(tmp_path / "a.pdf", lines + more)
    titles = {heading.label: heading.title for heading in find_headings(document, make_typed_outline(document))}
    assert titles == {"1.": "Moorings", "1.1": "", "2.": "Dues", "2.1": "", "3.": "Signals"}


def test_make_typed_outline_finds_no_heading_in_text_of_a_single_font(tmp_path):
    document = write(tmp_path / "a.pdf", [(TEXT, BODY)] * 9)
    assert make_typed_outline(document) == NO_OUTLINE == make_typed_outline(Document("a.txt", TEXT))
