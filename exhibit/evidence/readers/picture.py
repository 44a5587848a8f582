"""Images of pages (.png, .jpg, .tiff): scans, which have no text until OCR reads them."""

import base64
import io
from pathlib import Path

from PIL import Image, ImageSequence

from exhibit.evidence.document import Document, Page, Span
from exhibit.evidence.readers.html import Printable
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")
KIND = "picture"

_MOST_FRAMES = 2000  # most frames: a fax or scan has fewer pages, an animation may have more frames
_MOST_PIXELS = 80_000_000  # most pixels of a page: A3 at 600 dpi has 70 million


def _open_image(path: Path) -> Image.Image:
    image = Image.open(path)
    if image.width * image.height > _MOST_PIXELS or getattr(image, "n_frames", 1) > _MOST_FRAMES:
        limits = f"{_MOST_PIXELS:,} pixels a page and {_MOST_FRAMES} pages"
        raise DocumentError(f"{path}: the image is too large; the limits are {limits}")
    return image


def read(path: Path) -> Document:
    with _open_image(path) as image:
        image.load()
        count = getattr(image, "n_frames", 1)
    return Document(path.name, "\n" * (count - 1), tuple(Page(n + 1, Span(n, n), 595, 842) for n in range(count)), path)


def page(path: Path) -> Printable:
    pictures = []
    with _open_image(path) as image:
        for frame in ImageSequence.Iterator(image):
            data = io.BytesIO()
            frame.convert("RGB").save(data, "PNG", compress_level=1)
            words = base64.b64encode(data.getvalue()).decode("ascii")
            pictures.append(f'<img class="scan" src="data:image/png;base64,{words}">')
    return Printable("".join(pictures))
