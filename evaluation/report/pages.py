"""Pages as small pictures, each kept once however many cases it serves, and the boxes to draw over them."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from evaluation.report.run import Record
from evaluation.report.spans import Mark, Placed, marks
from evidence import Document, Span
from evidence.document import Page
from evidence.guard import boxes_within, render_within
from storage.locations import Location

WIDTH = 830
"""Pixels across: what a page has when two stand side by side on a wide screen."""
BUDGET = 12_000_000
"""Characters that all pictures may take in the report, which stays below 30 MB."""
_GREYS = 8
_COLOURFUL = 40
"""How far a pixel's channels must be apart to be a colour rather than a grey of the scanner's."""


class Gallery:
    """Pictures of pages by key; none beyond the budget."""

    def __init__(self, *, budget: int = BUDGET) -> None:
        """Start empty."""
        self.pages: dict[str, Record] = {}
        self._keys: dict[tuple[Location, int], str] = {}
        self._left = budget

    def add(self, document: Document, page: Page) -> str | None:
        """Return the key of a page's picture, None where there is no room for it."""
        if document.path is None or not page.width:
            return None
        place = (document.path, page.number)
        if place not in self._keys:
            source = picture(document.path, page)
            if len(source) > self._left:
                return None
            self._left -= len(source)
            self._keys[place] = key = f"p{len(self.pages) + 1}"
            self.pages[key] = {
                "filename": document.filename,
                "number": page.number,
                "width": page.width,
                "height": page.height,
                "src": source,
            }
        return self._keys[place]


def picture(path: Location, page: Page) -> str:
    """Return a page as a data URI: eight greys as PNG, which suits print best, or JPEG where there is colour."""
    image = render_within(path, page.number, scale=WIDTH / page.width).convert("RGB")
    out = io.BytesIO()
    if _has_colour(image):
        image.save(out, "JPEG", quality=55, optimize=True)
        kind = "jpeg"
    else:
        _in_greys(image).save(out, "PNG", bits=4)
        kind = "png"
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode('ascii')}"


def page_marks(document: Document, page: Page, at: Placed) -> list[Any]:
    """Return the boxes on a page as `[x, y, width, height, kind, passages]`, in points from the top left."""
    found: list[Any] = []
    marked = marks(at, page.span)
    for mark, lines in zip(marked, boxes_within(document, [mark.span for mark in marked]), strict=True):
        for box in lines:
            if box.page == page.number:
                size = (box.left, box.top, box.right - box.left, box.bottom - box.top)
                found.append([*(round(value, 1) for value in size), kind_of(mark), list(mark.passages)])
    return found


def excerpts(document: Document, wanted: list[Span], at: Placed, *, around: int = 280) -> list[list[list[Any]]]:
    """Return the text around the spans wanted as runs of `[text, kind, passages]`: for documents without pages."""
    return [_runs(document.text, marks(at, window), window) for window in _windows(document, wanted, around)]


def kind_of(mark: Mark) -> str:
    """Return what a stretch is called: gold, hit, or both."""
    if not mark.gold:
        return "hit"
    return "both" if mark.passages else "gold"


def _windows(document: Document, wanted: list[Span], around: int) -> list[Span]:
    windows: list[Span] = []
    for start, end in sorted(wanted):
        # at a word's end, so that no word is cut in two
        first = document.text.rfind(" ", 0, max(0, start - around)) + 1
        stop = document.text.find(" ", min(len(document.text), end + around))
        last = len(document.text) if stop < 0 else stop
        if windows and first <= windows[-1].end:
            windows[-1] = Span(windows[-1].start, max(last, windows[-1].end))
        else:
            windows.append(Span(first, last))
    return windows


def _runs(text: str, marked: list[Mark], window: Span) -> list[list[Any]]:
    runs: list[list[Any]] = []
    at = window.start
    for mark in marked:
        if mark.span.start > at:
            runs.append([text[at : mark.span.start], "", []])
        runs.append([text[mark.span.start : mark.span.end], kind_of(mark), list(mark.passages)])
        at = mark.span.end
    if at < window.end:
        runs.append([text[at : window.end], "", []])
    return runs


def _in_greys(image: Image.Image) -> Image.Image:
    """Return a picture in few greys, evenly spaced: quicker than asking which greys it has."""
    last = _GREYS - 1
    small = image.convert("L").point([round(value * last / 255) for value in range(256)])
    small.putpalette([round(grey * 255 / last) for grey in range(_GREYS) for _ in range(3)])
    return small


def _has_colour(image: Image.Image) -> bool:
    """Return whether more than one pixel in five hundred is coloured, seen from far enough to be quick."""
    small = image.resize((96, 128), Image.Resampling.BOX)
    _, saturation, value = small.convert("HSV").split()
    pairs = zip(saturation.tobytes(), value.tobytes(), strict=True)
    return sum(s * v // 255 > _COLOURFUL for s, v in pairs) > small.width * small.height / 500
