"""Pictures of pages (.png, .jpg, .tiff): scans, which have no words until OCR reads them."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from PIL import Image, ImageSequence

from evidence.archives import reading
from evidence.document import Document, Page, Span
from evidence.printable import Printable
from schemas.errors import DocumentError

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")
KIND = "picture"

_MOST_FRAMES = 2000
_MOST_PIXELS = 80_000_000
"""A page of A3 at 600 dpi has 70 million."""


def read(path: Path) -> Document:
    """Return a document with pages and no words."""
    count = len(_frames(path))
    return Document(path.name, "\n" * (count - 1), tuple(Page(n + 1, Span(n, n), 595, 842) for n in range(count)), path)


def page(path: Path) -> Printable:
    """Return the pictures, each on a page of its own."""
    images = (f'<img class="scan" src="data:image/png;base64,{base64.b64encode(one).decode()}">' for one in _frames(path))
    return Printable("".join(images))


def _frames(path: Path) -> list[bytes]:
    with reading(path, KIND), Image.open(path) as image:
        frames = []
        for frame in ImageSequence.Iterator(image):
            if frame.width * frame.height > _MOST_PIXELS or len(frames) == _MOST_FRAMES:
                limits = f"{_MOST_PIXELS:,} pixels a page and {_MOST_FRAMES} pages"
                raise DocumentError(f"{path}: too large a picture; the limits are {limits}")
            data = io.BytesIO()
            frame.convert("RGB").save(data, "PNG", compress_level=1)
            frames.append(data.getvalue())
        return frames
