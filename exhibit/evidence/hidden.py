"""Finds words of a PDF that are invisible on the page: without ink, tiny, cut off, or under a box.

Text objects are suspect by their mode, colour, size, clipping path, position, or by something drawn over them. A page
with suspects is drawn twice, with and without them: a letter is hidden if its pixels are the same in both pictures.
An ordinary page has no suspects and takes about a millisecond.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from exhibit.evidence.document import Document, Page, Span
from exhibit.evidence.readers.pdf import open_pdf, read_counted_text, to_page

NO_INK = "drawn without visible ink"
TINY = "too small to read"
CUT_OFF = "outside the page or a clipping path"
COVERED = "under a box or a picture"

MIN_HEIGHT = 1.5  # points: the smallest readable print has 4, and its superscripts about 2.5
MIN_CONTRAST = 16  # of 255: colours with a smaller difference look the same on paper and screens
SMALL_FONT = 3.0  # points, twice `MIN_HEIGHT`: the font size decides for a flat text object, which may be a dash
SCAN_SHARE = 0.5  # share of the page: a larger image is a scan, and invisible words on it come from OCR
_FILLED = {pdfium_c.FPDF_TEXTRENDERMODE_FILL, pdfium_c.FPDF_TEXTRENDERMODE_FILL_CLIP}
_UNSEEN = {pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP}


class HiddenSpan(NamedTuple):
    span: Span
    why: str


def find_hidden_spans(document: Document, pages: Collection[int] | None = None) -> list[HiddenSpan]:
    """Return the runs of hidden letters on the given pages, or on all pages; [] if the document has no pages."""
    if document.path is None or not document.pages:
        return []
    with open_pdf(document.path) as pdf:
        read = [page for page in document.pages if pages is None or page.number in pages]
        return [hidden for page in read for hidden in _find_on_page(pdf, page)]


def blank_hidden(document: Document) -> Document:
    """Return a document with spaces in place of hidden words, and a note for each page with hidden words."""
    hidden = find_hidden_spans(document)
    if not hidden:
        return document
    text = list(document.text)
    for span, _ in hidden:
        text[slice(*span)] = [letter if letter.isspace() else " " for letter in text[slice(*span)]]
    notes = (f"{note}; these were left out" for note in describe_hidden(hidden, document))
    return replace(document, text="".join(text), notes=(*document.notes, *notes))


def describe_hidden(hidden: Sequence[HiddenSpan], document: Document) -> list[str]:
    """Return one note for each page and reason, such as `page 3 has 12 hidden words, under a box`."""
    counts: Counter[tuple[int, str]] = Counter()
    for span, why in hidden:
        counts[document.pages_of(span)[0], why] += len(document.text[slice(*span)].split())
    return [f"page {number} has {count} hidden words, {why}" for (number, why), count in counts.items()]


def _find_on_page(pdf: Any, page: Page) -> Iterator[HiddenSpan]:
    """Yield the spans of consecutive letters that are hidden for the same reason; white space does not end a span."""
    with suppress(pdfium.PdfiumError):  # the page has no text
        drawn = _Drawn(pdf[page.number - 1])
        if not drawn.suspects:
            return
        with closing(drawn.page.get_textpage()) as textpage:
            text, units = read_counted_text(textpage)
            changed = drawn.find_changed_pixels()
            reasons = [
                (at, drawn.explain_hidden(changed, textpage, unit, letter))
                for at, (letter, unit) in enumerate(zip(text, units, strict=False), page.span.start)
                if not letter.isspace()
            ]
        for why, run in groupby(reasons, key=itemgetter(1)):
            offsets = [at for at, _ in run]
            if why is not None:
                yield HiddenSpan(Span(offsets[0], offsets[-1] + 1), why)


class _Bounds(NamedTuple):
    """A rectangle in the coordinates of a PDF page, whose origin is at the bottom left."""

    left: float
    bottom: float
    right: float
    top: float

    def has_middle_of(self, other: "_Bounds") -> bool:
        x, y = (other.left + other.right) / 2, (other.bottom + other.top) / 2
        return self.left <= x <= self.right and self.bottom <= y <= self.top

    def holds(self, other: "_Bounds") -> bool:
        within = self.left - 1 <= other.left and other.right <= self.right + 1  # a point of tolerance at each side
        return within and self.bottom - 1 <= other.bottom and other.top <= self.top + 1

    @property
    def size(self) -> tuple[float, float]:
        return self.right - self.left, self.top - self.bottom


class _Object(NamedTuple):
    order: int  # its number in drawing order
    thing: Any  # a text, picture or filled path of a page
    bounds: _Bounds

    @property
    def is_picture(self) -> bool:
        return bool(self.thing.type == pdfium_c.FPDF_PAGEOBJ_IMAGE)


class _Drawn:
    """The shapes of a page in drawing order, and its texts that may be hidden (`suspects`), by their memory address."""

    def __init__(self, page: Any) -> None:
        self.page, self.bounds = page, _Bounds(*page.get_bbox())
        self.scale = min(2.0, 2400 / max(*page.get_size(), 1.0))  # most pixels of a side of the compared pictures
        self._shapes: list[_Object] = []
        texts: list[_Object] = []
        for order, thing in enumerate(page.get_objects(max_depth=5)):
            try:
                drawn = _Object(order, thing, _convert(thing.get_bounds(), thing))
            except pdfium.PdfiumError:
                continue
            if thing.type == pdfium_c.FPDF_PAGEOBJ_TEXT:
                texts.append(drawn)
            elif len(self._shapes) < 20_000 and (drawn.is_picture or _is_filled(drawn)):
                self._shapes.append(drawn)
        self._edges = np.array([shape.bounds for shape in self._shapes], dtype=float).reshape(-1, 4)
        self.suspects = {ctypes.addressof(text.thing.raw.contents): text for text in texts if self._is_suspect(text)}

    def _is_suspect(self, text: _Object) -> bool:
        bounds, thing = text.bounds, text.thing
        if not self._find_window(thing).holds(bounds) or (min(bounds.size) < SMALL_FONT and _is_small(thing)):
            return True
        mode = pdfium_c.FPDFTextObj_GetTextRenderMode(thing)
        shapes = self._find_overlapping(bounds)
        if mode in _UNSEEN and not any(shape.is_picture and shape.bounds.holds(bounds) for shape in shapes):
            return True
        colour = _read_colour(thing) if mode in _FILLED else (0, 0, 0, 255)
        if colour is None or colour[3] < 13 or _is_alike(colour, (255, 255, 255)):
            return True  # white, or ink of less than 5%
        return any(
            shape.order > text.order or (not shape.is_picture and _is_alike(colour, _read_colour(shape.thing)))
            for shape in shapes
        )

    def _find_window(self, thing: Any) -> _Bounds:
        """Return the part of the page to which its edges and the clipping paths limit a text."""
        clip = pdfium_c.FPDFPageObj_GetClipPath(thing)
        window = self.bounds
        for path in range(max(pdfium_c.FPDFClipPath_CountPaths(clip), 0) if clip else 0):
            points = []
            for at in range(max(pdfium_c.FPDFClipPath_CountPathSegments(clip, path), 0)):
                x, y = ctypes.c_float(), ctypes.c_float()
                segment = pdfium_c.FPDFClipPath_GetPathSegment(clip, path, at)
                if pdfium_c.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y)):
                    points.append((x.value, y.value))
            if points:
                area = _convert((*np.min(points, axis=0), *np.max(points, axis=0)), thing)
                window = _Bounds(*np.maximum(window, area)[:2], *np.minimum(window, area)[2:])
        return window

    def _find_overlapping(self, bounds: _Bounds) -> list[_Object]:
        edges = self._edges
        across = (edges[:, 0] < bounds.right) & (bounds.left < edges[:, 2])
        along = (edges[:, 1] < bounds.top) & (bounds.bottom < edges[:, 3])
        return [self._shapes[at] for at in np.flatnonzero(across & along)]

    def find_changed_pixels(self) -> Any:
        """Return an array of booleans: whether each pixel of the page looks different without the suspect texts."""
        before = self._render()
        for text in self.suspects.values():
            pdfium_c.FPDFPageObj_SetIsActive(text.thing, False)
        return (np.abs(before - self._render()) >= MIN_CONTRAST).any(axis=2)

    def _render(self) -> Any:
        with closing(self.page.render(scale=self.scale)) as bitmap:
            return bitmap.to_numpy()[:, :, :3].astype(np.int16)

    def explain_hidden(self, changed: Any, textpage: Any, unit: int, sign: str) -> str | None:
        """Return the reason why a character is invisible; None if it is visible or if this cannot be determined."""
        index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, unit)
        thing = pdfium_c.FPDFText_GetTextObject(textpage, index) if index >= 0 else None
        text = self.suspects.get(ctypes.addressof(thing.contents)) if thing else None
        if text is None or pdfium_c.FPDFText_IsGenerated(textpage, index) == 1:
            return None
        box = pdfium_c.FS_RECTF()
        if not pdfium_c.FPDFText_GetLooseCharBox(textpage, index, box):
            return None
        (left, right), (bottom, top) = sorted((box.left, box.right)), sorted((box.bottom, box.top))
        bounds = _Bounds(left, bottom, right, top)
        if not self.bounds.has_middle_of(bounds):
            return CUT_OFF
        is_turned = abs(math.sin(pdfium_c.FPDFText_GetCharAngle(textpage, index))) > 0.7  # by more than 45 degrees
        if (right - left if is_turned else top - bottom) < MIN_HEIGHT:
            return TINY
        # pixels in the lowest quarter alone, as in a `p`, do not show a letter
        base = bottom + (top - bottom) / 4 if sign.isalnum() and not is_turned else bottom
        corners = to_page(self.page, left, top), to_page(self.page, right, base)
        (first, last), (upper, lower) = (sorted(ends) for ends in zip(*corners, strict=True))
        edge = (last - first) / 5  # at each side, there may be pixels of the letter's neighbour
        rows = slice(max(int(upper * self.scale), 0), max(math.ceil(lower * self.scale), 0))
        columns = slice(max(int((first + edge) * self.scale), 0), max(math.ceil((last - edge) * self.scale), 0))
        return None if changed[rows, columns].any() else self._find_reason(text, bounds)

    def _find_reason(self, text: _Object, bounds: _Bounds) -> str | None:
        """Return the reason why a letter without visible pixels is hidden; None if it belongs to the scan of a page."""
        shapes = self._find_overlapping(bounds)
        if pdfium_c.FPDFTextObj_GetTextRenderMode(text.thing) in _UNSEEN:
            # invisible text over an image comes from OCR
            return None if any(shape.is_picture for shape in shapes) else NO_INK
        if not self._find_window(text.thing).has_middle_of(bounds):
            return CUT_OFF
        later = [shape for shape in shapes if shape.order > text.order]
        if not later:
            return NO_INK
        is_scan = later[-1].is_picture and math.prod(later[-1].bounds.size) > SCAN_SHARE * math.prod(self.bounds.size)
        return None if is_scan else COVERED


def _convert(bounds: Sequence[float], thing: Any) -> _Bounds:
    while thing := thing.container:  # a form, which has its own coordinates
        bounds = thing.get_matrix().on_rect(*bounds)
    return _Bounds(*bounds)


def _is_filled(path: _Object) -> bool:
    """Return whether an object is a filled path; a thin path is an underline or the edge of a table."""
    if path.thing.type != pdfium_c.FPDF_PAGEOBJ_PATH or min(path.bounds.size) < MIN_HEIGHT:
        return False
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium_c.FPDFPath_GetDrawMode(path.thing, ctypes.byref(fill), ctypes.byref(stroke))
    return bool(fill.value)


def _read_colour(thing: Any) -> tuple[int, ...] | None:
    parts = [ctypes.c_uint() for _ in range(4)]
    known = pdfium_c.FPDFPageObj_GetFillColor(thing, *map(ctypes.byref, parts))
    return tuple(part.value for part in parts) if known else None


def _is_small(text: Any) -> bool:
    size = text.get_font_size()
    while text:
        matrix = text.get_matrix()
        size, text = size * max(map(abs, (matrix.a, matrix.b, matrix.c, matrix.d))), text.container
    return bool(size < SMALL_FONT)


def _is_alike(colour: Sequence[int], other: Sequence[int] | None) -> bool:
    return other is not None and all(abs(a - b) < MIN_CONTRAST for a, b in zip(colour[:3], other[:3], strict=True))
