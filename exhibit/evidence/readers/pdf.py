"""PDF, read with PDFium.

Here a line ends with LF, not with CR LF, and pages are joined by one LF. PDFium reports a hyphen at a line's end as
U+FFFE; here it is "-". Every kind of space becomes a plain space, because in a PDF spaces are only layout. Except for
line ends, each character is replaced by exactly one character, so that boxes stay correct.
"""

import ctypes
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from exhibit.engine.limits import PAGES
from exhibit.evidence.document import Box, Document, Page, Span
from exhibit.evidence.files import head_of
from exhibit.schemas.errors import DocumentError
from exhibit.storage.locations import Location, fetch_file

SUFFIXES = (".pdf",)
KIND = "PDF"
MEMORY = PAGES  # pages are read one at a time, so only a hostile file takes much memory

_MOST_PIXELS = 50_000_000  # of an image: the largest standard paper, A0, has 18 million at the report's scale
_FINE = 100  # PDFium converts coordinates to whole device units: hundredths of a point
_MOST_PAGES = 50_000  # the longest law books have some thousands; a hostile file may claim millions
_CHARACTER = re.compile(r"\r\n|.", re.DOTALL)
_LAST = re.compile(r"^.*[^\W\d_]", re.MULTILINE)  # the last letter of a line


def read(path: Path) -> Document:
    """Read a PDF's text page by page; a scan without a text layer is a document without text."""
    texts: list[str] = []
    pages: list[Page] = []
    notes: list[str] = []
    start = 0
    with open_pdf(path) as pdf:
        for index in range(len(pdf)):
            try:
                with closing(pdf[index]) as page, closing(page.get_textpage()) as textpage:
                    text = clean_text(_read_raw_text(textpage))
                    width, height = (round(side, 2) for side in page.get_size())
            except pdfium.PdfiumError:
                text, width, height = "", 0.0, 0.0
                notes.append(f"page {index + 1} is damaged and was read as empty")
            pages.append(Page(index + 1, Span(start, start + len(text)), width, height))
            texts.append(text)
            start += len(text) + 1
    return Document(path.name, "\n".join(texts), tuple(pages), path, tuple(notes))


def read_title(path: Location) -> str:
    with open_pdf(path) as pdf:
        return str(pdf.get_metadata_value("Title"))


class LineType(NamedTuple):
    height: float  # of the font, in points
    bold: bool


def find_line_types(document: Document) -> dict[int, LineType]:
    """Return the font of each line by the offset of its first word; empty if the document has no pages."""
    types: dict[int, LineType] = {}
    for page, _, textpage in _open_pages(document, document.pages):
        text, units = read_counted_text(textpage)
        for match in _LAST.finditer(text):
            index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, units[match.end() - 1])
            box = pdfium_c.FS_RECTF()
            if index >= 0 and pdfium_c.FPDFText_GetLooseCharBox(textpage, index, box):
                weight = pdfium_c.FPDFText_GetFontWeight(textpage, index)
                name = ctypes.create_string_buffer(200)
                pdfium_c.FPDFText_GetFontInfo(textpage, index, name, len(name), None)
                bold = weight >= 600 or b"bold" in name.value.lower()  # 600 is semibold, regular is 400
                start = page.span.start + match.end() - len(match[0].lstrip())
                types[start] = LineType(round(abs(box.top - box.bottom), 1), bold)
    return types


def _open_pages(document: Document, pages: Sequence[Page]) -> Iterator[tuple[Page, Any, Any]]:
    if document.path is None or not pages:
        return
    with open_pdf(document.path) as pdf:
        for page in pages:
            try:
                drawn = pdf[page.number - 1]
                textpage = drawn.get_textpage()
            except pdfium.PdfiumError:
                continue
            with closing(drawn), closing(textpage):
                yield page, drawn, textpage


def find_boxes(document: Document, spans: Sequence[Span], pages: Sequence[int] | None = None) -> list[list[Box]]:
    """Return the rectangles of each span, line by line, on the given pages, or on all pages that the spans touch."""
    boxes: list[list[Box]] = [[] for _ in spans]
    numbers = document.pages_of(*spans) if pages is None else pages
    for page, drawn, textpage in _open_pages(document, [document.pages[number - 1] for number in numbers]):
        text, units = read_counted_text(textpage)
        for span, lines in zip(spans, boxes, strict=True):
            start, end = (min(max(at, page.span.start), page.span.end) - page.span.start for at in span)
            # words from OCR have no characters in the PDF, and white space at the end would add an empty rectangle
            if words := text[start:end].rstrip() if start < end <= len(text) else "":
                ends = units[start], units[start + len(words) - 1]
                first, last = (pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, unit) for unit in ends)
                lines += _find_part_boxes(drawn, textpage, page.number, first, last)
    return boxes


def render(path: Location, page: int, *, scale: float = 1.5) -> Any:
    with open_pdf(path) as pdf:
        try:
            drawn = pdf[page - 1]
            width, height = drawn.get_size()
            if width * height * scale**2 > _MOST_PIXELS:
                size = f"{width:g} by {height:g} points"
                raise DocumentError(f"{path}: page {page} is {size}, which is too large to draw")
            return drawn.render(scale=scale).to_pil()
        except (pdfium.PdfiumError, ValueError) as error:
            raise DocumentError(f"{path}: page {page} is damaged and cannot be drawn ({error})") from error


@contextmanager
def open_pdf(file: Location) -> Iterator[Any]:
    with fetch_file(file) as path:
        if b"%PDF-" not in (head := head_of(path, 1024)):
            raise DocumentError(f"{path}: not a PDF, it starts with {head[:12]!r}; is the file name's extension right?")
        try:
            pdf = pdfium.PdfDocument(path)
        except pdfium.PdfiumError as error:
            if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
                raise DocumentError(f"{path}: encrypted; remove the password (qpdf --decrypt) first") from error
            raise DocumentError(f"{path}: damaged or incomplete ({error}); download or copy it again") from error
        with closing(pdf):
            if len(pdf) > _MOST_PAGES:
                raise DocumentError(f"{path}: has {len(pdf)} pages, but the limit is {_MOST_PAGES}; split the file")
            yield pdf


def _read_raw_text(textpage: Any) -> str:
    return str(textpage.get_text_range(errors="replace")) if textpage.count_chars() else ""


def clean_text(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blanks = (sign for sign in set(text) - {"\n"} if unicodedata.category(sign) in {"Zs", "Zl", "Zp", "Cc"})
    return text.translate({**dict.fromkeys(map(ord, blanks), " "), 0xFFFE: "-"})


def _find_part_boxes(page: Any, textpage: Any, number: int, first: int, last: int) -> list[Box]:
    count = pdfium_c.FPDFText_CountRects(textpage, first, last + 1 - first) if 0 <= first <= last else 0
    lines: list[Box] = []  # in PDF coordinates, whose origin is at the bottom left
    for left, bottom, right, top in (textpage.get_rect(index) for index in range(count)):
        old = lines[-1] if lines else Box(number, 0, 0, 0, 0)
        overlap, height = min(old.top, top) - max(old.bottom, bottom), min(old.top - old.bottom, top - bottom)
        # PDFium returns a rectangle for each change of font, and sometimes for each letter
        if lines and overlap > height / 2 and -height < left - old.right < 1.5 * max(height, 6):
            lines.pop()
            left, top = min(old.left, left), max(old.top, top)
            right, bottom = max(old.right, right), min(old.bottom, bottom)
        lines.append(Box(number, left, top, right, bottom))
    boxes = []
    for line in lines:
        xs, ys = zip(to_page(page, line.left, line.top), to_page(page, line.right, line.bottom), strict=True)
        boxes.append(Box(number, min(xs), min(ys), max(xs), max(ys)))
    return boxes


def read_counted_text(textpage: Any) -> tuple[str, list[int]]:
    """Return a page's cleaned text, and the index of each of its characters in PDFium's text, in UTF-16 units."""
    raw = _read_raw_text(textpage)
    # each CR LF became one LF
    widths = [len(match[0].encode("utf-16-le")) // 2 for match in _CHARACTER.finditer(raw)]
    return clean_text(raw), list(accumulate(widths, initial=0))


def to_page(page: Any, x: float, y: float) -> tuple[float, float]:
    """Convert a point from PDF coordinates to distances from the left and the top of the displayed page."""
    width, height = page.get_size()
    column, row = pdfium.PdfPosConv(page, (0, 0, round(width * _FINE), round(height * _FINE), 0)).to_bitmap(x, y)
    return column / _FINE, row / _FINE
