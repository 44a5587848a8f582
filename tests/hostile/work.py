"""Functions that these tests send to workers, in a module that imports neither tests nor pytest."""

from __future__ import annotations

from PIL import Image

from exhibit.evidence import Document
from exhibit.evidence.ocr import tesseract
from exhibit.law.structure import read_structure


def needs(size: int) -> int:
    """Allocate this number of bytes."""
    return len(bytearray(size))


def take_all(_: str) -> int:
    """Allocate 4 GiB, which is more than a worker may use."""
    return len([bytearray(1 << 20) for _ in range(4096)])


def sections_of(text: str) -> int:
    """Return how many sections a text has."""
    return len(list(read_structure(Document("a.txt", text)).walk()))


def read_page(size: int) -> int:
    """Return the number of lines that Tesseract recognises on an empty page."""
    return len(tesseract.open("en")(Image.new("L", (size, size), "white")))
