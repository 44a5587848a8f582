"""Documents in a worker: the pages asked for as pictures, each made once, and where spans stand on them.

A picture has nothing drawn on it. The page lays boxes over it, so one picture serves every case.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.document import Box, Page
from exhibit.evidence.readers.pdf import page_boxes, render
from exhibit.evidence.show import in_few_bytes
from exhibit.schemas.errors import DocumentError
from exhibit.storage.locations import Location
from exhibit.viewer.spans import windows

Record = dict[str, Any]
"""What the scripts of a page read."""

WIDTH = 830
"""Pixels across: what a page has when two stand side by side on a wide screen."""


@dataclass(frozen=True)
class Sheets:
    """A document, the pages of it to draw (none where it has no pages), and the spans to find on them."""

    number: int
    filename: str
    path: Location
    pages: tuple[int, ...]
    spans: tuple[Span, ...]
    folder: Path
    """Where the pictures go."""

    def __str__(self) -> str:
        """Return what an error calls it."""
        return self.filename


def draw_sheets(sheets: Sheets) -> Record:
    """Write the pictures of a document's pages and return what lies on them; its text where it has no pages."""
    document = read_document(sheets.path)
    wanted = [document.pages[number - 1] for number in sheets.pages if 0 < number <= len(document.pages)]
    drawn = {}
    for page in wanted:
        name = _picture(sheets, page)
        if name is not None:
            drawn[page.number] = [name, round(page.width, 1), round(page.height, 1), _boxes(document, page, sheets)]
    if drawn or document.pages:
        return {"pages": drawn}
    return {"text": windows(document.text, [span for span in sheets.spans if span.end <= len(document.text)])}


def _picture(sheets: Sheets, page: Page) -> str | None:
    """Write a page's picture and return its name; None where it cannot be drawn: its words are there all the same."""
    if not page.width:
        return None
    try:
        data, kind = in_few_bytes(render(sheets.path, page.number, scale=WIDTH / page.width))
    except DocumentError:
        return None
    name = f"{sheets.number}-{page.number}.{kind}"
    sheets.folder.mkdir(parents=True, exist_ok=True)
    (sheets.folder / name).write_bytes(data)
    return name


def _boxes(document: Document, page: Page, sheets: Sheets) -> dict[str, list[list[float]]]:
    """Return the rectangles of each span that touches a page as `[x, y, width, height]`, from the top left."""
    spans = [span for span in sheets.spans if max(span.start, page.span.start) < min(span.end, page.span.end)]
    boxes = zip(spans, page_boxes(document, page.number, spans), strict=True)
    return {f"{span.start}-{span.end}": [_size(box) for box in lines] for span, lines in boxes if lines}


def _size(box: Box) -> list[float]:
    return [round(value, 1) for value in (box.left, box.top, box.right - box.left, box.bottom - box.top)]
