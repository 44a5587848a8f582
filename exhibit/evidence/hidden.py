"""Finds words of a PDF that are invisible on the page: without ink, tiny, cut off, or under a box.

Programs read hidden words like other words, so users who score a system or prompt a model should know about them.
Text objects are suspect by their mode, colour, size, clipping path, position, or by something drawn over them. A page
with suspects is drawn twice, with and without them: a letter is hidden if its pixels are the same in both pictures.
An ordinary page has no suspects and takes about a millisecond.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from exhibit.evidence.document import Document, Span
from exhibit.evidence.readers.pdf import open_pdf, read_counted_text, to_page

NO_INK = "drawn without visible ink"
TINY = "smaller than anybody reads"
CUT_OFF = "outside the page or a clipping path"
COVERED = "under a box or a picture"

MIN_HEIGHT = 1.5  # points: the smallest readable print has 4, and a superscript in it about 2.5
MIN_CONTRAST = 16  # of 255: colours with a smaller difference look the same on paper and screens
MIN_ALPHA = 13  # of 255, 5%: fainter ink is invisible
SMALL_FONT = 3.0  # points: twice `MIN_HEIGHT`; for a flat text object, which may be a dash, the font size decides
MAX_FORM_DEPTH = 4  # levels of nested forms that are searched
MAX_SHAPES = 20_000  # most shapes of a page that are compared with text
MAX_PIXELS = 2400  # longest side of the compared pictures
SCAN_SHARE = 0.5  # share of the page: a larger image is a scan, and the words below it come from OCR
_TURNED = 0.7  # sine of 45 degrees: if a letter is turned further, its height is the width of its box
_EDGE = 0.2  # share of a letter's width at each side that may have pixels of its neighbour
_DESCENT = 0.25  # share of a letter's height below the line: this part of a `p` does not show the letter
_FILLED = {pdfium_c.FPDF_TEXTRENDERMODE_FILL, pdfium_c.FPDF_TEXTRENDERMODE_FILL_CLIP}
_UNSEEN = {pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP}
_WHITE = (255, 255, 255)


class HiddenSpan(NamedTuple):
    """Invisible characters of a document's text, and the reason."""

    span: Span
    why: str


def find_hidden_spans(document: Document, spans: Sequence[Span] | None = None) -> list[HiddenSpan]:
    """Return the runs of hidden letters in the given spans, or in the whole document; [] if it has no pages."""
    if document.path is None or not document.pages:
        return []
    within = [Span(0, len(document.text))] if spans is None else spans
    hidden: list[HiddenSpan] = []
    with open_pdf(document.path) as pdf:
        for page in document.pages:
            start, end = page.span
            parts = [range(max(s.start, start) - start, min(s.end, end) - start) for s in within]
            if any(parts):
                hidden += _find_on_page(pdf, page.number, start, [part for part in parts if part])
    return hidden


def blank_hidden(document: Document) -> Document:
    """Return a document with spaces in place of hidden words, and a note for each page with hidden words."""
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


def _find_on_page(pdf: Any, number: int, start: int, parts: Sequence[range]) -> Iterator[HiddenSpan]:
    try:
        page = pdf[number - 1]
        drawn = _Drawn(page)
        textpage = page.get_textpage() if drawn.suspects else None
    except pdfium.PdfiumError:
        return  # the page has no text
    if textpage is not None:
        counted = read_counted_text(textpage)
        visible = _Visibility(page, drawn)
        for part in parts:
            text = counted.text[part.start : part.stop]
            reasons = [
                None if sign.isspace() else _explain_hidden(visible, textpage, counted.units[part.start + at], sign)
                for at, sign in enumerate(text)
            ]
            yield from _find_runs(text, reasons, start + part.start)
        textpage.close()
    page.close()


def _find_runs(text: str, reasons: Sequence[str | None], start: int) -> Iterator[HiddenSpan]:
    """Yield the spans of consecutive letters with the same reason; white space between letters does not end a span."""
    letters = [(at, reason) for at, reason in enumerate(reasons, start) if not text[at - start].isspace()]
    for why, run in groupby(letters, key=lambda letter: letter[1]):
        if why is not None:
            offsets = [at for at, _ in run]
            yield HiddenSpan(Span(offsets[0], offsets[-1] + 1), why)


# ---------------------------------------------------------------- what is drawn on a page


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
    def thickness(self) -> float:
        return min(self.right - self.left, self.top - self.bottom)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)


class _Text(NamedTuple):
    order: int
    thing: Any
    bounds: _Bounds | None
    scale: float
    window: _Bounds  # The part of the page to which its edges and the clipping paths limit the text


class _Shape(NamedTuple):
    order: int
    bounds: _Bounds
    colour: tuple[int, ...] | None
    is_picture: bool


class _Drawn:
    """The texts and shapes of a page in drawing order; `suspects` has the possibly hidden texts by address."""

    def __init__(self, page: Any) -> None:
        self.page = _Bounds(*page.get_bbox())
        self._texts: list[_Text] = []
        self._shapes: list[_Shape] = []
        count = pdfium_c.FPDFPage_CountObjects(page)
        self._add((pdfium_c.FPDFPage_GetObject(page, at) for at in range(count)), ())
        self._edges = np.array([shape.bounds for shape in self._shapes], dtype=float).reshape(-1, 4)
        self.suspects = {_address_of(text.thing): text for text in self._texts if self._is_suspect(text)}

    def _add(self, things: Iterator[Any], matrices: "tuple[pdfium.PdfMatrix, ...]") -> None:
        for thing in things:
            kind = pdfium_c.FPDFPageObj_GetType(thing)
            bounds = _convert(_bounds_of(thing), matrices)
            order = len(self._texts) + len(self._shapes)
            if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
                scale = math.prod(map(_scale_of, matrices))
                window = _convert(_clip_of(thing), matrices) or self.page
                edges = [pick(a, b) for pick, a, b in zip((max, max, min, min), window, self.page, strict=True)]
                self._texts.append(_Text(order, thing, bounds, scale, _Bounds(*edges)))
            elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and len(matrices) < MAX_FORM_DEPTH:
                count = pdfium_c.FPDFFormObj_CountObjects(thing)
                inner = (pdfium_c.FPDFFormObj_GetObject(thing, at) for at in range(count))
                self._add(inner, (_matrix_of(thing), *matrices))
            elif bounds is not None and len(self._shapes) < MAX_SHAPES:
                if kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
                    self._shapes.append(_Shape(order, bounds, None, True))
                # a thin shape is an underline or the edge of a table
                elif kind == pdfium_c.FPDF_PAGEOBJ_PATH and bounds.thickness >= MIN_HEIGHT and _is_filled(thing):
                    self._shapes.append(_Shape(order, bounds, _fill_of(thing), False))

    def _is_suspect(self, text: _Text) -> bool:
        bounds, thing = text.bounds, text.thing
        if bounds is None or not text.window.holds(bounds):
            return True
        if bounds.thickness < SMALL_FONT and _is_small(thing, text.scale):
            return True
        mode = pdfium_c.FPDFTextObj_GetTextRenderMode(thing)
        shapes = self.find_overlapping(bounds)
        if mode in _UNSEEN and not any(shape.is_picture and shape.bounds.holds(bounds) for shape in shapes):
            return True
        colour = _fill_of(thing) if mode in _FILLED else (0, 0, 0, 255)
        if colour is None or colour[3] < MIN_ALPHA or _is_alike(colour, _WHITE):
            return True
        return any(shape.order > text.order or _is_alike(colour, shape.colour) for shape in shapes)

    def find_overlapping(self, bounds: _Bounds) -> list[_Shape]:
        edges = self._edges
        across = (edges[:, 0] < bounds.right) & (bounds.left < edges[:, 2])
        along = (edges[:, 1] < bounds.top) & (bounds.bottom < edges[:, 3])
        return [self._shapes[at] for at in np.flatnonzero(across & along)]


class _Visibility:
    """The areas in which a page looks different without its suspect texts."""

    def __init__(self, page: Any, drawn: _Drawn) -> None:
        self.page, self.drawn = page, drawn
        self.scale = min(2.0, MAX_PIXELS / max(*page.get_size(), 1.0))
        before = self._render()
        for text in drawn.suspects.values():
            pdfium_c.FPDFPageObj_SetIsActive(text.thing, False)
        self.changed = (np.abs(before - self._render()) >= MIN_CONTRAST).any(axis=2)

    def _render(self) -> Any:
        bitmap = self.page.render(scale=self.scale)
        picture = bitmap.to_numpy()[:, :, :3].astype(np.int16)
        bitmap.close()
        return picture

    def shows(self, bounds: _Bounds) -> bool:
        corners = [to_page(self.page, bounds.left, bounds.top), to_page(self.page, bounds.right, bounds.bottom)]
        (left, right), (top, bottom) = (sorted(values) for values in zip(*corners, strict=True))
        edge = _EDGE * (right - left)
        rows = slice(max(int(top * self.scale), 0), max(math.ceil(bottom * self.scale), 0))
        columns = slice(max(int((left + edge) * self.scale), 0), max(math.ceil((right - edge) * self.scale), 0))
        return bool(self.changed[rows, columns].any())


def _explain_hidden(visible: _Visibility, textpage: Any, unit: int, sign: str) -> str | None:
    """Return the reason why a character is invisible; None if it is visible or if this cannot be determined."""
    index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage, unit)
    thing = pdfium_c.FPDFText_GetTextObject(textpage, index) if index >= 0 else None
    text = visible.drawn.suspects.get(_address_of(thing)) if thing else None
    box = pdfium_c.FS_RECTF()
    if text is None or pdfium_c.FPDFText_IsGenerated(textpage, index) == 1:
        return None
    if not pdfium_c.FPDFText_GetLooseCharBox(textpage, index, box):
        return None
    (left, right), (bottom, top) = sorted((box.left, box.right)), sorted((box.bottom, box.top))
    bounds = _Bounds(left, bottom, right, top)
    if not visible.drawn.page.has_middle_of(bounds):
        return CUT_OFF
    is_turned = abs(math.sin(pdfium_c.FPDFText_GetCharAngle(textpage, index))) > _TURNED
    if (right - left if is_turned else top - bottom) < MIN_HEIGHT:
        return TINY
    base = bottom + _DESCENT * (top - bottom) if sign.isalnum() and not is_turned else bottom
    return None if visible.shows(bounds._replace(bottom=base)) else _find_reason(text, bounds, visible.drawn)


def _find_reason(text: _Text, bounds: _Bounds, drawn: _Drawn) -> str | None:
    """Return the reason why a letter without visible pixels is hidden; None if it belongs to the scan of a page."""
    shapes = drawn.find_overlapping(bounds)
    if pdfium_c.FPDFTextObj_GetTextRenderMode(text.thing) in _UNSEEN:
        # invisible text over an image comes from OCR
        return None if any(shape.is_picture for shape in shapes) else NO_INK
    if not text.window.has_middle_of(bounds):
        return CUT_OFF
    later = max((shape for shape in shapes if shape.order > text.order), default=None)
    if later is None:
        return NO_INK
    return None if later.is_picture and later.bounds.area > SCAN_SHARE * drawn.page.area else COVERED


# ---------------------------------------------------------------- PDFium's objects


def _address_of(thing: Any) -> int:
    return ctypes.addressof(thing.contents)


def _matrix_of(thing: Any) -> "pdfium.PdfMatrix":
    raw = pdfium_c.FS_MATRIX()
    return pdfium.PdfMatrix.from_raw(raw) if pdfium_c.FPDFPageObj_GetMatrix(thing, raw) else pdfium.PdfMatrix()


def _scale_of(matrix: "pdfium.PdfMatrix") -> float:
    return float(max(map(abs, (matrix.a, matrix.b, matrix.c, matrix.d))))


def _convert(bounds: _Bounds | None, matrices: "Sequence[pdfium.PdfMatrix]") -> _Bounds | None:
    for matrix in matrices:
        bounds = bounds and _Bounds(*matrix.on_rect(*bounds))
    return bounds


def _bounds_of(thing: Any) -> _Bounds | None:
    edges = [ctypes.c_float() for _ in range(4)]
    known = pdfium_c.FPDFPageObj_GetBounds(thing, *map(ctypes.byref, edges))
    return _Bounds(*(edge.value for edge in edges)) if known else None


def _clip_of(thing: Any) -> _Bounds | None:
    """Return the rectangle to which clipping paths limit a text; None if there are no such paths."""
    clip = pdfium_c.FPDFPageObj_GetClipPath(thing)
    areas = []
    for path in range(max(pdfium_c.FPDFClipPath_CountPaths(clip), 0) if clip else 0):
        points = []
        for at in range(max(pdfium_c.FPDFClipPath_CountPathSegments(clip, path), 0)):
            x, y = ctypes.c_float(), ctypes.c_float()
            segment = pdfium_c.FPDFClipPath_GetPathSegment(clip, path, at)
            if pdfium_c.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y)):
                points.append((x.value, y.value))
        if points:
            areas.append([*np.min(points, axis=0), *np.max(points, axis=0)])
    return _Bounds(*np.max(areas, axis=0)[:2], *np.min(areas, axis=0)[2:]) if areas else None


def _is_filled(path: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    return bool(pdfium_c.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke)) and fill.value)


def _fill_of(thing: Any) -> tuple[int, ...] | None:
    parts = [ctypes.c_uint() for _ in range(4)]
    known = pdfium_c.FPDFPageObj_GetFillColor(thing, *map(ctypes.byref, parts))
    return tuple(part.value for part in parts) if known else None


def _is_small(text: Any, scale: float) -> bool:
    size = ctypes.c_float()
    known = pdfium_c.FPDFTextObj_GetFontSize(text, ctypes.byref(size))
    return not known or size.value * scale * _scale_of(_matrix_of(text)) < SMALL_FONT


def _is_alike(colour: Sequence[int], other: Sequence[int] | None) -> bool:
    return other is not None and all(abs(a - b) < MIN_CONTRAST for a, b in zip(colour[:3], other[:3], strict=True))
