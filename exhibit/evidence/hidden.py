"""Finds words of a PDF that are invisible on the page: white on white, tiny, off the page, or under a box.

A program reads hidden words like any others, so users who score a system or prompt a model should know about them.
A page is first checked by its text objects: mode, colour, size, position, and shapes drawn over them. Single letters
are checked only in suspect objects, so that an ordinary page takes about a millisecond.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from exhibit.evidence.document import Document, Span
from exhibit.evidence.page_objects import (
    Colour,
    PageBounds,
    address_of,
    bounds_of,
    convert_bounds,
    fill_of,
    is_filled,
    is_opaque,
    is_rectangle,
    matrix_of,
    opaque_fill_of,
    scale_of,
)
from exhibit.evidence.readers.pdf import open_pdf, read_counted_text

INVISIBLE = "drawn invisibly"
TRANSPARENT = "drawn transparently"
SAME_COLOUR = "in the colour of what is behind them"
TINY = "smaller than anybody reads"
OUTSIDE = "outside the page"
COVERED = "under a box"
UNDER_PICTURE = "under a picture"

_LEAST_HEIGHT = 1.5  # points: the smallest readable print has 4, and a superscript in it about 2.5
_TURNED = 0.7  # sine of 45 degrees: the height of a letter that is turned further is the width of its box
_LEAST_CONTRAST = 16  # of 255: colours with a smaller difference look the same on paper and on a screen
_LEAST_ALPHA = 13  # of 255, 5%: fainter ink is invisible
_SMALL = 3.0  # points: twice `_LEAST_HEIGHT`; a flat text object may be a dash, so its font size decides
_DEEPEST = 4  # levels of nested forms that are searched for text
_MOST_SHAPES = 20_000  # shapes of one page; letters are not compared with further shapes
_SCAN = 0.5  # share of the page: a larger image is a scan, and the words below it come from OCR
_MODES = {
    pdfium_c.FPDF_TEXTRENDERMODE_FILL,
    pdfium_c.FPDF_TEXTRENDERMODE_FILL_CLIP,
}
"""Text rendering modes in which only the fill colour is visible."""
_UNSEEN = {pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP}


class HiddenSpan(NamedTuple):
    """Invisible characters of a document's text, and the reason."""

    span: Span
    why: str


def find_hidden_spans(document: Document, spans: Sequence[Span] | None = None) -> list[HiddenSpan]:
    """Return the runs of hidden letters in the given spans, or in the whole document; [] if it has no pages."""
    if document.path is None or not document.pages:
        return []
    within = [Span(0, len(document.text))] if spans is None else spans
    found: list[HiddenSpan] = []
    with open_pdf(document.path) as pdf:
        for page in document.pages:
            parts = [_clip_to_page(span, page.span) for span in within]
            wanted = [part for part in parts if part is not None]
            if wanted:
                found += _on_page(pdf, page.number, page.span.start, wanted)
    return found


def blank_hidden(document: Document) -> Document:
    """Return a document with spaces in place of hidden words, and a note for each page that has hidden words.

    The offsets of all other words are unchanged. A document without hidden words is returned unchanged.
    """
    hidden = find_hidden_spans(document)
    if not hidden:
        return document
    text = list(document.text)
    for span, _ in hidden:
        text[slice(*span)] = [letter if letter.isspace() else " " for letter in text[slice(*span)]]
    notes = (f"{note}; left out" for note in describe_hidden(hidden, document))
    return replace(document, text="".join(text), notes=(*document.notes, *notes))


def describe_hidden(hidden: Sequence[HiddenSpan], document: Document) -> list[str]:
    """Return one note for each page and reason, such as `page 3 has 12 hidden words, under a box`."""
    counts: Counter[tuple[int, str]] = Counter()
    for span, why in hidden:
        counts[document.pages_of(span)[0], why] += len(document.text[slice(*span)].split())
    return [f"page {number} has {count} hidden words, {why}" for (number, why), count in counts.items()]


def _clip_to_page(span: Span, page: Span) -> range | None:
    """Return the part of a span that is on a page, as offsets in the page's text; None if there is no such part."""
    start, end = max(span.start, page.start), min(span.end, page.end)
    return range(start - page.start, end - page.start) if start < end else None


def _on_page(pdf: Any, number: int, start: int, parts: Sequence[range]) -> list[HiddenSpan]:
    try:
        page = pdf[number - 1]
        drawn = _Drawn(page)
        if not drawn.suspects:
            page.close()
            return []
        textpage = page.get_textpage()
    except pdfium.PdfiumError:
        return []  # the page has no text
    try:
        counted = read_counted_text(textpage)
        found: list[HiddenSpan] = []
        for part in parts:
            text = counted.text[part.start : part.stop]
            reasons = [
                None if character.isspace() else _explain_hidden(drawn, textpage, counted.units[part.start + at])
                for at, character in enumerate(text)
            ]
            found += _find_runs(text, reasons, start + part.start)
        return found
    finally:
        textpage.close()
        page.close()


def _find_runs(text: str, reasons: Sequence[str | None], start: int) -> Iterator[HiddenSpan]:
    """Yield the spans of consecutive letters that are invisible for the same reason.

    `reasons` has one entry per character: why the character is invisible, or None if it is visible. White
    space between letters does not end a span. `start` is the offset of `text` in the document.
    """
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


def _explain_hidden(drawn: "_Drawn", textpage: Any, unit: int) -> str | None:
    """Return the reason why a character is invisible; None if it is visible or if this cannot be determined.

    Args:
        unit: the index of the character in PDFium's text of the page.
    """
    index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, unit)
    thing = pdfium_c.FPDFText_GetTextObject(textpage, index) if index >= 0 else None
    if not thing or address_of(thing) not in drawn.suspects or pdfium_c.FPDFText_IsGenerated(textpage, index) == 1:
        return None
    box = pdfium_c.FS_RECTF()
    if not pdfium_c.FPDFText_GetLooseCharBox(textpage, index, box):
        return None
    bounds = PageBounds(*sorted((box.left, box.right)), *sorted((box.bottom, box.top)))
    if not bounds.touches(drawn.page):
        return OUTSIDE
    turned = abs(math.sin(pdfium_c.FPDFText_GetCharAngle(textpage, index))) > _TURNED
    height = bounds.right - bounds.left if turned else bounds.top - bounds.bottom
    if height < _LEAST_HEIGHT:
        return TINY
    order = drawn.order(thing)
    mode = pdfium_c.FPDFTextObj_GetTextRenderMode(thing)
    if mode in _UNSEEN:
        return None if drawn.has_picture(bounds) else INVISIBLE  # invisible text over an image comes from OCR
    colour = _fill_of_letter(textpage, index)
    if mode in _MODES and colour is not None:
        if colour[3] < _LEAST_ALPHA:
            return TRANSPARENT
        behind = drawn.find_colour_behind(bounds, order)
        if behind is not None and _is_alike(colour, behind):
            return SAME_COLOUR
    return drawn.cover(bounds, order)


def _fill_of_letter(textpage: Any, index: int) -> tuple[int, int, int, int] | None:
    parts = [ctypes.c_uint() for _ in range(4)]
    if not pdfium_c.FPDFText_GetFillColor(textpage, index, *map(ctypes.byref, parts)):
        return None
    red, green, blue, alpha = (part.value for part in parts)
    return red, green, blue, alpha


class _Filled(NamedTuple):
    """A rectangle of one colour, and its position in the drawing order."""

    order: int
    bounds: PageBounds
    colour: Colour


class _Picture(NamedTuple):
    """An image on the page.

    `thing` is PDFium's object of the image, from which its pixels are read. It is None for an image inside a form
    XObject: the pixels of such an image are not examined.
    """

    order: int
    bounds: PageBounds
    thing: Any


class _Drawn:
    """The objects of a page in drawing order.

    `suspects` has the addresses in memory of the text objects that may have hidden letters.
    """

    def __init__(self, page: Any) -> None:
        left, bottom, right, top = page.get_bbox()
        self.page = PageBounds(left, right, bottom, top)
        self._handle = page
        self._orders: dict[int, int] = {}
        self._texts: list[tuple[Any, PageBounds | None, float]] = []
        """Text objects, their bounds on the page, and the scale of the forms that contain them."""
        self._filled: list[_Filled] = []
        self._unknown: list[tuple[int, PageBounds]] = []
        """Images, shadings and shapes, whose colour at a point is unknown."""
        self._pictures: list[_Picture] = []
        self._opaque: dict[int, bool] = {}
        for order in range(pdfium_c.FPDFPage_CountObjects(page)):
            self._add(pdfium_c.FPDFPage_GetObject(page, order), order)
        covers = [one for one in self._filled if one.bounds.least >= _LEAST_HEIGHT]  # a thin rectangle is an underline
        self.suspects = {address_of(text[0]) for text in self._texts if self._may_hide_letters(*text, covers)}
        self._texts.clear()

    def _add(self, thing: Any, order: int) -> None:
        kind = pdfium_c.FPDFPageObj_GetType(thing)
        bounds = bounds_of(thing)
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            self._orders[address_of(thing)] = order
            self._texts.append((thing, bounds, 1.0))
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM:
            self._enter(thing, order, 1, (matrix_of(thing),))
            if bounds:
                self._unknown.append((order, bounds))
        elif bounds is None or len(self._filled) + len(self._unknown) >= _MOST_SHAPES:
            return
        elif kind == pdfium_c.FPDF_PAGEOBJ_PATH and is_filled(thing):
            colour = opaque_fill_of(thing)
            if colour is not None and is_rectangle(thing):
                self._filled.append(_Filled(order, bounds, colour))
            else:
                self._unknown.append((order, bounds))
        elif kind in (pdfium_c.FPDF_PAGEOBJ_IMAGE, pdfium_c.FPDF_PAGEOBJ_SHADING):
            self._unknown.append((order, bounds))
            if kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
                self._pictures.append(_Picture(order, bounds, thing))

    def _enter(self, form: Any, order: int, depth: int, matrices: "tuple[pdfium.PdfMatrix, ...]") -> None:
        """Add the text objects and images of a form XObject; all get the form's position in the drawing order."""
        for at in range(pdfium_c.FPDFFormObj_CountObjects(form)):
            thing = pdfium_c.FPDFFormObj_GetObject(form, at)
            kind = pdfium_c.FPDFPageObj_GetType(thing)
            if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
                self._orders[address_of(thing)] = order
                self._texts.append(
                    (thing, convert_bounds(bounds_of(thing), matrices), math.prod(map(scale_of, matrices)))
                )
            elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                self._enter(thing, order, depth + 1, (matrix_of(thing), *matrices))
            elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE and (bounds := convert_bounds(bounds_of(thing), matrices)):
                self._pictures.append(_Picture(order, bounds, None))

    def _may_hide_letters(self, thing: Any, bounds: PageBounds | None, scale: float, covers: Sequence[_Filled]) -> bool:
        """Return whether a text object may have hidden letters, so that each of its letters must be checked."""
        if bounds is None:
            return True
        mode = pdfium_c.FPDFTextObj_GetTextRenderMode(thing)
        if mode in _UNSEEN and not any(picture.bounds.holds(bounds) for picture in self._pictures):
            return True
        if not self.page.holds(bounds) or (bounds.least < _SMALL and _is_small(thing, scale)):
            return True
        if mode in _MODES:
            colour = fill_of(thing)
            if colour is None or colour[3] < _LEAST_ALPHA or _is_alike(colour, (255, 255, 255)):
                return True
            if any(one.bounds.overlaps(bounds) and _is_alike(colour, one.colour) for one in covers):
                return True
        order = self._orders[address_of(thing)]
        later = (one.bounds for some in (covers, self._pictures) for one in some if one.order > order)
        return any(one.overlaps(bounds) for one in later)

    def order(self, thing: Any) -> int | None:
        """Return the position of a text object in the drawing order; None if it is unknown."""
        return self._orders.get(address_of(thing)) if thing else None

    def has_picture(self, bounds: PageBounds) -> bool:
        """Return whether an image is behind or over a letter."""
        return any(bounds.touches(picture.bounds) for picture in self._pictures)

    def find_colour_behind(self, bounds: PageBounds, order: int | None) -> Colour | None:
        """Return the background colour of a letter, white for the bare page; None if it is unknown.

        It is unknown if an image, or a shape that is not an opaque rectangle, is behind the letter.
        """
        if order is None:
            return None
        last = max((one for one in self._filled if one.order < order and bounds.touches(one.bounds)), default=None)
        since = -1 if last is None else last.order
        if any(since < at <= order and bounds.touches(other) for at, other in self._unknown):
            return None
        return (255, 255, 255) if last is None else last.colour

    def cover(self, bounds: PageBounds, order: int | None) -> str | None:
        """Return the reason why a letter is covered; None if it is not covered.

        A letter is covered if a filled rectangle or an opaque image is drawn over it later. An image as large as
        a scan of the page does not count.
        """
        if order is None:
            return None
        if any(one.order > order and one.bounds.holds(bounds) for one in self._filled):
            return COVERED
        over = (one for one in self._pictures if one.order > order and one.bounds.holds(bounds))
        return UNDER_PICTURE if any(map(self._hides, over)) else None

    def _hides(self, picture: _Picture) -> bool:
        """Return whether an image hides the text below it: it is opaque, and covers at most half of the page.

        A larger image is a scan of the page, and the text below it comes from OCR.
        """
        if picture.thing is None or picture.bounds.area > _SCAN * self.page.area:
            return False
        address = address_of(picture.thing)
        if address not in self._opaque:
            self._opaque[address] = is_opaque(self._handle, picture.thing)
        return self._opaque[address]


def _is_small(text: Any, scale: float) -> bool:
    """Return whether a text object has a small or unknown font size.

    The object's height does not show the font size: a dash in a large font is also flat.
    """
    size = ctypes.c_float()
    known = pdfium_c.FPDFTextObj_GetFontSize(text, ctypes.byref(size))
    return not known or size.value * scale * scale_of(matrix_of(text)) < _SMALL


def _is_alike(colour: Sequence[int], other: Sequence[int]) -> bool:
    red, green, blue = (abs(one - two) < _LEAST_CONTRAST for one, two in zip(colour[:3], other, strict=True))
    return red and green and blue
