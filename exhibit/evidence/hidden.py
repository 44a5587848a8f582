"""Finds words of a PDF that are invisible on the page: white on white, tiny, off the page, or under a box.

A program reads hidden words like any others, so a user who scores a system or feeds a model should know about them.
"""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from exhibit.evidence.document import Document, Span
from exhibit.evidence.readers.pdf import counted_text, open_pdf

INVISIBLE = "drawn invisibly"
TRANSPARENT = "drawn transparently"
SAME_COLOUR = "in the colour of what is behind them"
TINY = "smaller than anybody reads"
OUTSIDE = "outside the page"
COVERED = "under a box"

_LEAST_HEIGHT = 1.5  # points: the smallest print that people read has 4, and a superscript in it about 2.5
_LEAST_CONTRAST = 16  # of 255: colours nearer than this look the same on paper and on a screen
_LEAST_ALPHA = 13  # of 255, 5%: fainter ink is invisible
_DEEPEST = 4  # levels of nested forms that are searched for text
_MOST_OBJECTS = 20_000  # of one page; with more shapes, letters are not compared with each
_MODES = {
    pdfium_c.FPDF_TEXTRENDERMODE_FILL,
    pdfium_c.FPDF_TEXTRENDERMODE_FILL_CLIP,
}
"""Text rendering modes in which only the fill colour is visible."""
_UNSEEN = {pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP}

Colour = tuple[int, int, int]


class HiddenSpan(NamedTuple):
    """Invisible characters of a document's text, and the reason."""

    span: Span
    why: str


def find_hidden_spans(document: Document, spans: Sequence[Span] | None = None) -> list[HiddenSpan]:
    """Return the runs of hidden letters in some spans of a document, or in all; empty for a file that is no PDF."""
    if document.path is None or not document.pages:
        return []
    within = [Span(0, len(document.text))] if spans is None else spans
    found: list[HiddenSpan] = []
    with open_pdf(document.path) as pdf:
        for page in document.pages:
            parts = [_clipped(span, page.span) for span in within]
            wanted = [part for part in parts if part is not None]
            if wanted:
                found += _on_page(pdf, page.number, page.span.start, wanted)
    return found


def _clipped(span: Span, page: Span) -> range | None:
    """Return the part of a span on a page, in characters of the page."""
    start, end = max(span.start, page.start), min(span.end, page.end)
    return range(start - page.start, end - page.start) if start < end else None


def _on_page(pdf: Any, number: int, start: int, parts: Sequence[range]) -> list[HiddenSpan]:
    try:
        page = pdf[number - 1]
        textpage = page.get_textpage()
    except pdfium.PdfiumError:
        return []  # a page whose text was empty
    try:
        counted = counted_text(textpage)
        drawn = _Drawn(page)
        found: list[HiddenSpan] = []
        for part in parts:
            text = counted.text[part.start : part.stop]
            reasons = [
                None if character.isspace() else _why(drawn, textpage, counted.units[part.start + at])
                for at, character in enumerate(text)
            ]
            found += _runs(text, reasons, start + part.start)
        return found
    finally:
        textpage.close()
        page.close()


def _runs(text: str, reasons: Sequence[str | None], start: int) -> Iterator[HiddenSpan]:
    """Yield runs of letters with the same reason; a space between letters does not end a run."""
    first = last = -1
    why: str | None = None
    for at, reason in enumerate([*reasons, None]):
        if at < len(text) and text[at].isspace():
            continue
        if reason != why:
            if why is not None:
                yield HiddenSpan(Span(start + first, start + last + 1), why)
            first, why = at, reason
        last = at


def _why(drawn: "_Drawn", textpage: Any, unit: int) -> str | None:
    """Return the reason why a character is invisible; None if it is visible or unknown."""
    index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, unit)
    box = pdfium_c.FS_RECTF()
    if index < 0 or pdfium_c.FPDFText_IsGenerated(textpage, index) == 1:
        return None
    if not pdfium_c.FPDFText_GetLooseCharBox(textpage, index, box):
        return None
    bounds = _Bounds(*sorted((box.left, box.right)), *sorted((box.bottom, box.top)))
    if not bounds.touches(drawn.page):
        return OUTSIDE
    if min(bounds.top - bounds.bottom, _turned_height(bounds)) < _LEAST_HEIGHT:
        return TINY
    thing = pdfium_c.FPDFText_GetTextObject(textpage, index)
    order = drawn.order(thing)
    mode = pdfium_c.FPDFTextObj_GetTextRenderMode(thing) if thing else pdfium_c.FPDF_TEXTRENDERMODE_UNKNOWN
    if mode in _UNSEEN:
        return None if drawn.has_picture(bounds) else INVISIBLE  # over a picture: the words that OCR read in it
    colour = _fill_of_letter(textpage, index)
    if mode in _MODES and colour is not None:
        if colour[3] < _LEAST_ALPHA:
            return TRANSPARENT
        behind = drawn.colour_behind(bounds, order)
        if behind is not None and max(abs(a - b) for a, b in zip(behind, colour, strict=False)) < _LEAST_CONTRAST:
            return SAME_COLOUR
    return COVERED if drawn.is_covered(bounds, order) else None


def _turned_height(bounds: "_Bounds") -> float:
    """Return the width of a box that is taller than any letter: words set from bottom to top."""
    height, width = bounds.top - bounds.bottom, bounds.right - bounds.left
    return width if height > 4 * width > 0 and width > _LEAST_HEIGHT else height


def _fill_of_letter(textpage: Any, index: int) -> tuple[int, int, int, int] | None:
    parts = [ctypes.c_uint() for _ in range(4)]
    if not pdfium_c.FPDFText_GetFillColor(textpage, index, *map(ctypes.byref, parts)):
        return None
    red, green, blue, alpha = (part.value for part in parts)
    return red, green, blue, alpha


class _Bounds(NamedTuple):
    left: float
    right: float
    bottom: float
    top: float

    def touches(self, other: "_Bounds") -> bool:
        x, y = (self.left + self.right) / 2, (self.bottom + self.top) / 2
        return other.left <= x <= other.right and other.bottom <= y <= other.top

    def holds(self, other: "_Bounds") -> bool:
        slack = 1.0  # a loose box is a little larger than its letter
        return (
            self.left <= other.left + slack
            and self.right >= other.right - slack
            and self.bottom <= other.bottom + slack
            and self.top >= other.top - slack
        )


class _Filled(NamedTuple):
    """A rectangle of one colour, and its place in the drawing order."""

    order: int
    bounds: _Bounds
    colour: Colour


class _Drawn:
    """The objects of a page, in drawing order."""

    def __init__(self, page: Any) -> None:
        left, bottom, right, top = page.get_bbox()
        self.page = _Bounds(left, right, bottom, top)
        self._orders: dict[int, int] = {}
        self._filled: list[_Filled] = []
        self._unknown: list[tuple[int, _Bounds]] = []
        """Pictures, shadings and shapes, whose colour at a point is not known."""
        self._pictures: list[_Bounds] = []
        count = pdfium_c.FPDFPage_CountObjects(page)
        for order in range(min(count, _MOST_OBJECTS)):
            self._add(pdfium_c.FPDFPage_GetObject(page, order), order)

    def _add(self, thing: Any, order: int) -> None:
        kind = pdfium_c.FPDFPageObj_GetType(thing)
        bounds = _bounds_of(thing)
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            self._orders[_address(thing)] = order
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM:
            self._enter(thing, order, 1)
            if bounds:
                self._unknown.append((order, bounds))
        elif bounds and kind == pdfium_c.FPDF_PAGEOBJ_PATH and _is_filled(thing):
            colour = _fill_of(thing)
            if colour is not None and _is_rectangle(thing):
                self._filled.append(_Filled(order, bounds, colour))
            else:
                self._unknown.append((order, bounds))
        elif bounds and kind in (pdfium_c.FPDF_PAGEOBJ_IMAGE, pdfium_c.FPDF_PAGEOBJ_SHADING):
            self._unknown.append((order, bounds))
            if kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
                self._pictures.append(bounds)

    def _enter(self, form: Any, order: int, depth: int) -> None:
        """Add the text and the pictures of a form, which the page draws as one object."""
        for at in range(min(pdfium_c.FPDFFormObj_CountObjects(form), _MOST_OBJECTS)):
            thing = pdfium_c.FPDFFormObj_GetObject(form, at)
            kind = pdfium_c.FPDFPageObj_GetType(thing)
            if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
                self._orders[_address(thing)] = order
            elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                self._enter(thing, order, depth + 1)
            elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE and (bounds := _bounds_of(form)):
                self._pictures.append(bounds)

    def order(self, thing: Any) -> int | None:
        """Return the place of a text in the drawing order; None if it is unknown."""
        return self._orders.get(_address(thing)) if thing else None

    def has_picture(self, bounds: _Bounds) -> bool:
        """Return whether a picture is behind or over the letter."""
        return any(bounds.touches(picture) for picture in self._pictures)

    def colour_behind(self, bounds: _Bounds, order: int | None) -> Colour | None:
        """Return the background colour of a letter, white for the bare page; None if a picture or a shape is there."""
        if order is None:
            return None
        last = max((one for one in self._filled if one.order < order and bounds.touches(one.bounds)), default=None)
        since = -1 if last is None else last.order
        if any(since < at <= order and bounds.touches(other) for at, other in self._unknown):
            return None
        return (255, 255, 255) if last is None else last.colour

    def is_covered(self, bounds: _Bounds, order: int | None) -> bool:
        """Return whether a filled rectangle is later drawn over a letter."""
        return order is not None and any(one.order > order and one.bounds.holds(bounds) for one in self._filled)


def _address(thing: Any) -> int:
    return ctypes.addressof(thing.contents)


def _bounds_of(thing: Any) -> _Bounds | None:
    edges = [ctypes.c_float() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetBounds(thing, *map(ctypes.byref, edges)):
        return None
    left, bottom, right, top = (edge.value for edge in edges)
    return _Bounds(left, right, bottom, top)


def _is_filled(path: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    return bool(pdfium_c.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke)) and fill.value)


def _fill_of(path: Any) -> Colour | None:
    """Return a path's fill colour; None if it is translucent, like a yellow marker."""
    parts = [ctypes.c_uint() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetFillColor(path, *map(ctypes.byref, parts)):
        return None
    if parts[3].value < 255 or pdfium_c.FPDFPageObj_HasTransparency(path):
        return None
    return parts[0].value, parts[1].value, parts[2].value


def _is_rectangle(path: Any) -> bool:
    """Return whether a path is a rectangle along the page's axes: any other path is smaller than its bounds."""
    points = []
    for at in range(min(pdfium_c.FPDFPath_CountSegments(path), 7)):
        segment = pdfium_c.FPDFPath_GetPathSegment(path, at)
        if pdfium_c.FPDFPathSegment_GetType(segment) == pdfium_c.FPDF_SEGMENT_BEZIERTO:
            return False
        x, y = ctypes.c_float(), ctypes.c_float()
        pdfium_c.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        points.append((round(x.value, 2), round(y.value, 2)))
    straight = all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(points))
    return 4 <= len(points) <= 6 and straight and len(set(points)) == 4
