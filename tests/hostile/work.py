"""What these tests let workers do; apart from the tests, so that no worker must import these and pytest."""

from __future__ import annotations

from PIL import Image

from exhibit.evidence import Document
from exhibit.evidence.ocr import tesseract
from exhibit.law.structure import read_structure


def needs(size: int) -> int:
    """Need so many bytes."""
    return len(bytearray(size))


def take_all(_: str) -> int:
    """Need more than any worker has."""
    return len([bytearray(1 << 20) for _ in range(4096)])


def sections_of(text: str) -> int:
    """Return how many sections a text has."""
    return len(list(read_structure(Document("a.txt", text)).walk()))


def read_page(size: int) -> int:
    """Return how many lines an empty page has."""
    return len(tesseract.open("en")(Image.new("L", (size, size), "white")))
