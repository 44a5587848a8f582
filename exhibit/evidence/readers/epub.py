"""EPUB: the chapters in the order of the book's spine."""

import posixpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from exhibit.engine.limits import PACKED
from exhibit.evidence.files import decode_bytes, open_archive, parse, read_part
from exhibit.evidence.markup import Printable, cut_fragment
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".epub",)
KIND = "EPUB book"
MEMORY = PACKED
TYPES = {"application/epub+zip": ".epub"}

_CONTAINER = "META-INF/container.xml"


def page(path: Path) -> Printable:
    """Return the chapters of an EPUB file as HTML to print, with a note for each missing chapter."""
    pieces: list[str] = []
    notes: list[str] = []
    with open_archive(path, KIND) as archive:
        root = parse(read_part(archive, _CONTAINER) or b"").find(".//{*}rootfile")
        package = root.get("full-path", "") if root is not None else ""
        book = parse(read_part(archive, package) or b"")
        for chapter in _list_chapters(book, posixpath.dirname(package)):
            data = read_part(archive, chapter)
            decoded = decode_bytes(data) if data is not None else None
            if decoded is None:
                notes.append(f"its chapter {chapter!r} is missing or is no text")
                continue
            pieces.append(f'<article class="sheet">{cut_fragment(decoded.text)}</article>')
    if not pieces:
        raise DocumentError(f"{path}: no chapter in it; is the EPUB complete?")
    return Printable("".join(pieces), tuple(notes))


def _list_chapters(book: Any, folder: str) -> list[str]:
    items = {item.get("id"): item.get("href", "") for item in book.iterfind(".//{*}manifest/{*}item")}
    order = [items.get(entry.get("idref"), "") for entry in book.iterfind(".//{*}spine/{*}itemref")]
    return [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in order if name]
