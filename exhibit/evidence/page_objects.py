"""The bounds, colours and transformation matrices of the objects on a PDF page, as PDFium reports them."""

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

Colour = tuple[int, int, int]
_OPAQUE = 0.95  # share of an image's pixels: the edges of a rotated image are transparent


class PageBounds(NamedTuple):
    """A rectangle in the coordinates of a PDF page, whose origin is at the bottom left."""

    left: float
    right: float
    bottom: float
    top: float

    def touches(self, other: "PageBounds") -> bool:
        """Return whether the other rectangle contains the centre of this one."""
        x, y = (self.left + self.right) / 2, (self.bottom + self.top) / 2
        return other.left <= x <= other.right and other.bottom <= y <= other.top

    def overlaps(self, other: "PageBounds") -> bool:
        """Return whether the two rectangles have an area in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top

    def holds(self, other: "PageBounds") -> bool:
        """Return whether the other rectangle is inside this one."""
        slack = 1.0  # points; a loose box is a little larger than its letter
        return (
            self.left <= other.left + slack
            and self.right >= other.right - slack
            and self.bottom <= other.bottom + slack
            and self.top >= other.top - slack
        )

    @property
    def least(self) -> float:
        """The length of the shorter side."""
        return min(self.right - self.left, self.top - self.bottom)

    @property
    def area(self) -> float:
        """The area in square points."""
        return (self.right - self.left) * (self.top - self.bottom)


def scale_of(matrix: "pdfium.PdfMatrix") -> float:
    """Return a matrix's scale factor: its largest coefficient, which is also right for a rotation of 90 degrees."""
    return float(max(map(abs, (matrix.a, matrix.b, matrix.c, matrix.d))))


def is_opaque(page: Any, image: Any) -> bool:
    """Return whether nearly all pixels of an image are opaque."""
    if pdfium_c.FPDFPageObj_HasTransparency(image):
        return False
    bitmap = pdfium_c.FPDFImageObj_GetRenderedBitmap(page.pdf, page, image)
    if not bitmap:
        return False
    try:
        if pdfium_c.FPDFBitmap_GetFormat(bitmap) != pdfium_c.FPDFBitmap_BGRA:
            return True
        height, stride = pdfium_c.FPDFBitmap_GetHeight(bitmap), pdfium_c.FPDFBitmap_GetStride(bitmap)
        pixels = ctypes.string_at(pdfium_c.FPDFBitmap_GetBuffer(bitmap), height * stride)
        return pixels[3::4].count(255) >= _OPAQUE * len(pixels) / 4
    finally:
        pdfium_c.FPDFBitmap_Destroy(bitmap)


def matrix_of(thing: Any) -> "pdfium.PdfMatrix":
    """Return the transformation matrix of an object on a PDF page: a text object or a form XObject."""
    raw = pdfium_c.FS_MATRIX()
    return pdfium.PdfMatrix.from_raw(raw) if pdfium_c.FPDFPageObj_GetMatrix(thing, raw) else pdfium.PdfMatrix()


def convert_bounds(bounds: PageBounds | None, matrices: "Sequence[pdfium.PdfMatrix]") -> PageBounds | None:
    """Return the bounds of an object inside a form XObject, converted to page coordinates.

    Args:
        bounds: the object's bounds in the form's coordinates.
        matrices: the matrices of the forms that contain the object, the innermost first.
    """
    if bounds is None:
        return None
    for matrix in matrices:
        left, bottom, right, top = matrix.on_rect(bounds.left, bounds.bottom, bounds.right, bounds.top)
        bounds = PageBounds(left, right, bottom, top)
    return bounds


def address_of(thing: Any) -> int:
    """Return the memory address of a PDFium object, which identifies it."""
    return ctypes.addressof(thing.contents)


def bounds_of(thing: Any) -> PageBounds | None:
    """Return an object's bounds; None if PDFium reports none.

    The bounds of an object inside a form XObject are in the form's coordinates, not in the page's.
    """
    edges = [ctypes.c_float() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetBounds(thing, *map(ctypes.byref, edges)):
        return None
    left, bottom, right, top = (edge.value for edge in edges)
    return PageBounds(left, right, bottom, top)


def is_filled(path: Any) -> bool:
    """Return whether a path is filled, not only stroked."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    return bool(pdfium_c.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke)) and fill.value)


def opaque_fill_of(path: Any) -> Colour | None:
    """Return a path's fill colour; None if it is translucent, like a yellow highlight."""
    colour = fill_of(path)
    return None if colour is None or colour[3] < 255 or pdfium_c.FPDFPageObj_HasTransparency(path) else colour[:3]


def fill_of(thing: Any) -> tuple[int, int, int, int] | None:
    """Return an object's fill colour as red, green, blue and opacity; None if the colour cannot be read."""
    parts = [ctypes.c_uint() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetFillColor(thing, *map(ctypes.byref, parts)):
        return None
    red, green, blue, alpha = (part.value for part in parts)
    return red, green, blue, alpha


def is_rectangle(path: Any) -> bool:
    """Return whether a path is a rectangle parallel to the page's axes, which fills its bounds completely."""
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
