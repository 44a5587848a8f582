"""Scans: pages without a text layer, read by OCR. Needs the extra `ocr`; its models come inside the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from engine import track
from evidence import Document, Page, Span, read_document
from evidence.readers.pdf import render
from schemas.errors import ToolkitError
from storage.locations import Location

_DPI = 200
_LONGEST_SIDE = 4000
"""Pixels: a poster is drawn smaller than a letter, or it would not fit into memory."""
_MISSING = "OCR needs the extra 'ocr': pip install 'exhibit-rag[ocr]'"


def read_with_ocr(path: Location | str) -> Document:
    """Read a file as `read_document` does, and its pages without text by OCR; the notes say which."""
    document = read_document(path)
    scanned = [page for page in document.pages if not document.text[page.span.start : page.span.end].strip()]
    if not scanned or document.path is None:
        return document
    read = _reader()
    found = {
        page.number: read(_picture(document.path, page)) for page in track(scanned, total=len(scanned), label="OCR")
    }
    return _with_pages(document, {number: text for number, text in found.items() if text})


def _with_pages(document: Document, found: dict[int, str]) -> Document:
    """Return the document with the text of some pages put in: every page's span moves along."""
    texts, pages, notes, start = [], [], list(document.notes), 0
    for page in document.pages:
        text = found.get(page.number)
        if text is None:
            text = document.text[page.span.start : page.span.end]
        else:
            notes.append(f"page {page.number} read by OCR")
        pages.append(Page(page.number, Span(start, start + len(text)), page.width, page.height))
        texts.append(text)
        start += len(text) + 1
    return Document(document.filename, "\n".join(texts), tuple(pages), document.path, tuple(notes))


def _picture(path: Location, page: Page) -> Any:
    """Return a page as the engine wants it: rows of pixels, blue first."""
    longest = max(page.width, page.height, 1.0)
    image = render(path, page.number, scale=min(_DPI / 72, _LONGEST_SIDE / longest))
    return np.ascontiguousarray(np.asarray(image.convert("RGB"))[:, :, ::-1])


@cache
def _reader() -> Callable[[Any], str]:
    """Return a function from a picture to its text; the models are loaded once."""
    try:
        rapidocr = import_module("rapidocr")
        import_module("onnxruntime")
    except ImportError as error:
        raise ToolkitError(f"{_MISSING} ({error})") from error
    engine = rapidocr.RapidOCR(params={"Global.log_level": "critical"})

    def read(picture: Any) -> str:
        result = engine(picture)
        if result.boxes is None or result.txts is None:
            return ""
        return _in_order([_Word(*_edges(box), text) for box, text in zip(result.boxes, result.txts, strict=True)])

    return read


class _Word(NamedTuple):
    left: float
    top: float
    bottom: float
    text: str


def _edges(box: Any) -> tuple[float, float, float]:
    corners = np.asarray(box, dtype=float)
    return float(corners[:, 0].min()), float(corners[:, 1].min()), float(corners[:, 1].max())


def _in_order(words: Sequence[_Word]) -> str:
    """Return the words as lines, from top to bottom and each from left to right."""
    lines: list[list[_Word]] = []
    for word in sorted(words, key=lambda word: (word.top + word.bottom) / 2):
        middle = (word.top + word.bottom) / 2
        if lines and lines[-1][0].top <= middle <= lines[-1][0].bottom:
            lines[-1].append(word)
        else:
            lines.append([word])
    return "\n".join(" ".join(word.text.strip() for word in sorted(line)) for line in lines)
