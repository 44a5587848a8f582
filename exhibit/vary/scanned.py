"""Replaces pages by simulated scans: pictures that are rotated a little, blurred and compressed; OCR reads them.

Gold is located in the text that OCR read; a question whose passage cannot be located there is left out and counted.
"""

import hashlib
import io
import random
from dataclasses import replace
from pathlib import Path

from PIL import Image, ImageFilter

from exhibit.converters import Block, RawDocument
from exhibit.converters.pages.text_pdf import pdf_of
from exhibit.evidence.read import read_document
from exhibit.evidence.readers.pdf import render

_DPI = 150  # the usual resolution of office scanners
_MAX_TURN_DEGREES = 1.2  # degrees to either side: a scanner's feeder rotates a sheet by less
_BLUR_PIXELS = (0.4, 0.9)  # radius in pixels: print stays legible to a person
_JPEG_QUALITY = (35, 60)  # JPEG quality: scanners use such values to keep files small


def write_scan(raw: RawDocument, folder: Path, *, seed: int) -> RawDocument:
    """Print a document and write a simulated scan of its pages; return the document as a file without text."""
    digest = hashlib.sha256(f"{seed}{raw.filename}".encode()).hexdigest()[:8]
    printed, scan = folder / f"{raw.filename}.printed.pdf", folder / raw.filename
    printed.write_bytes(pdf_of([Block("p", raw.text or "")], title=raw.title, subject=raw.subject))
    scan.write_bytes(scan_pages(printed, seed=int(digest, 16), title=raw.title))
    printed.unlink()
    return replace(raw, path=scan)


def scan_pages(path: Path, *, seed: int, title: str) -> bytes:
    """Return a PDF with pictures of another PDF's pages; the same seed gives the same bytes."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    file = io.BytesIO()
    canvas = Canvas(file, pageCompression=0, invariant=1)
    canvas.setTitle(title)
    canvas.setCreator("exhibit-rag")
    for number in range(1, len(read_document(path).pages) + 1):
        chance = random.Random(f"{seed}\0{path.name}\0{number}")
        picture = render(path, number, scale=_DPI / 72).convert("L")
        degrees = chance.uniform(-_MAX_TURN_DEGREES, _MAX_TURN_DEGREES)
        turned = picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255)
        blurred = turned.filter(ImageFilter.GaussianBlur(chance.uniform(*_BLUR_PIXELS)))
        content = io.BytesIO()
        blurred.save(content, "JPEG", quality=chance.randint(*_JPEG_QUALITY))
        width, height = (side * 72 / _DPI for side in picture.size)
        canvas.setPageSize((width, height))
        canvas.drawImage(ImageReader(content), 0, 0, width, height)
        canvas.showPage()
    canvas.save()
    return file.getvalue()
