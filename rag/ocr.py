"""Scans in the pipeline: pages without text are read by OCR, their words written into a copy of the PDF and kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from PIL import Image, ImageSequence

from exhibit.evidence import Document, read_document
from exhibit.evidence.readers import picture
from exhibit.evidence.scan import Ocr, read_scan
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import cache_folder
from exhibit.storage.locations import Location, fetched
from exhibit.storage.place import write_whole

_DPI = 200.0
"""What a picture without a size is taken for, when it becomes a page."""


def read_with_ocr(path: Location | str, how: Ocr) -> Document:
    """Read a file as `read_document` does, and its pages without text by OCR; the notes say which.

    The PDF with the words in it stays in the cache: what was read once is not read again.
    """
    document = read_document(path)
    texts = (document.text[page.span.start : page.span.end] for page in document.pages)
    if document.path is None or all(text.strip() for text in texts):
        return document
    place = cache_folder() / "ocr" / f"{sha256_of(document.path)[:32]}-{how.engine}-{how.language}.pdf"
    notes = place.with_suffix(".json")
    if notes.is_file():  # written last: without it the copy may not be whole
        kept = replace(read_document(place), filename=document.filename)
        return replace(kept, notes=tuple(json.loads(notes.read_text(encoding="utf-8"))))
    place.parent.mkdir(parents=True, exist_ok=True)
    with fetched(document.path) as here:
        source = _as_pdf(here, place) if here.suffix.lower() in picture.SUFFIXES else here
        scanned = read_scan(replace(read_document(source), filename=document.filename), place, how)
    if scanned is None:
        return document
    write_whole(notes, json.dumps(scanned.document.notes))
    return scanned.document


def _as_pdf(path: Path, place: Path) -> Path:
    """Return a PDF whose pages are the frames of a picture."""
    target = place.with_suffix(".pages.pdf")
    with Image.open(path) as image:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
        resolution = float(image.info.get("dpi", (_DPI, _DPI))[0]) or _DPI
    frames[0].save(target, save_all=True, append_images=frames[1:], resolution=resolution)
    return target
