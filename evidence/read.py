"""Any supported file to a Document, chosen by its ending."""

import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from exhibit.engine import Limits, guarded
from exhibit.engine.limits import PLAIN, reading
from exhibit.evidence import readers
from exhibit.evidence.document import Box, Document, Span
from exhibit.evidence.files import decode_bytes, head_of
from exhibit.evidence.markup import Attachment, Printable
from exhibit.evidence.readers.html import html_text
from exhibit.evidence.readers.pdf import boxes, page_boxes, render
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.plugins import plugin_modules
from exhibit.storage.locations import Location, Remote, fetched

_SNIFFED = 4096  # bytes: the names of the first parts of a package are there, too
_ENDING = re.compile(r"\.[a-z0-9]{1,5}")
_PACKED = {b"word/": ".docx", b"xl/": ".xlsx", b"ppt/": ".pptx", b"opendocument.text": ".odt", b"epub+zip": ".epub"}


def read_document(path: Location | str) -> Document:
    """Read a file; the same file always gives the same text, which every offset counts in."""
    if isinstance(path, Remote):
        with fetched(path) as here:
            return replace(_read_safely(here), path=path)
    return _read_safely(Path(path))


def _read_safely(path: Path) -> Document:
    """Read a file; whatever a parser raises over a file is that file's fault, and carries the parser's traceback."""
    try:
        return _read(path)
    except (ToolkitError, OSError, MemoryError, RecursionError):
        raise
    except Exception as error:
        raise DocumentError(f"{path}: its reader failed ({type(error).__name__}: {error}); is it damaged?") from error


def printable(path: Path) -> Printable | None:
    """Return the page that a file is printed from; None where its reader makes none (a PDF, a plain text)."""
    page: Printable | None = _by_reader(path, "page")
    return page


def attachments(path: Path) -> list[Attachment]:
    """Return the files inside a file: a mail's attachments."""
    return _by_reader(path, "attachments") or []


def _by_reader(path: Path, name: str) -> Any:
    reader = _reader(path)
    with _limited(reader, path):
        return getattr(reader, name)(path) if hasattr(reader, name) else None


def has_attachments(path: Location) -> bool:
    """Return whether files of this kind can have other files in them."""
    return hasattr(_readers().get(_ending(path)), "attachments")


def readable(path: Location) -> bool:
    """Return whether there is a reader for the file's ending; where it has none, for what it holds."""
    return _ending(path) in _readers()


def has_page(path: Location) -> bool:
    """Return whether a file's reader makes a page to print of it."""
    return hasattr(_readers().get(_ending(path)), "page")


def suffix_of(media_type: str) -> str:
    """Return the ending of files of a media type, empty where no reader knows it."""
    types: dict[str, str] = {}
    for module in dict.fromkeys(_readers().values()):
        types |= getattr(module, "TYPES", {})
    return types.get(media_type, "")


def kinds() -> dict[str, tuple[str, ...]]:
    """Return what can be read: the endings by the name of the kind."""
    return {module.KIND: module.SUFFIXES for module in dict.fromkeys(_readers().values())}


def _read(path: Path) -> Document:
    reader = _reader(path)
    with _limited(reader, path):
        if hasattr(reader, "read"):
            document: Document = reader.read(path)
            return document
        page: Printable = reader.page(path)
        return Document(path.name, html_text(page.html), (), path, page.notes)


def _limited(reader: ModuleType, path: Path) -> AbstractContextManager[None]:
    """Return the limits on reading a file of this size, where this process is a worker."""
    if getattr(reader, "STARTS_A_PROGRAM", False):
        return nullcontext()
    try:
        return reading(str(path), path.stat().st_size, getattr(reader, "MEMORY", PLAIN))
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error


def _reader(path: Path) -> ModuleType:
    reader = _readers().get(_ending(path))
    if reader is None:
        head_of(path)  # a file that is not there says so
        known = ", ".join(sorted(_readers()))
        raise DocumentError(f"{path}: no reader for {path.suffix or 'a file without ending'}; known are {known}")
    return reader


def _ending(path: Location) -> str:
    """Return a file's ending, or the one that its content should have: names made from URLs may have none."""
    ending = path.suffix.lower()
    if ending in _readers() or not isinstance(path, Path) or not path.is_file():
        return ending
    head = head_of(path, _SNIFFED)
    if head.startswith(b"%PDF-"):
        return ".pdf"
    if _ENDING.fullmatch(ending):
        return ending  # of a kind that nobody here reads; "No. 4" has none
    if head.startswith(b"PK"):
        return next((kind for mark, kind in _PACKED.items() if mark in head), ending)
    if re.match(rb"\s*<(?:!doctype html|html)", head, re.IGNORECASE):
        return ".html"
    return ".txt" if head.strip() and b"\0" not in head and decode_bytes(head.rpartition(b" ")[0] or head) else ending


@cache
def _readers() -> dict[str, ModuleType]:
    by_suffix: dict[str, ModuleType] = {}
    for reader in plugin_modules(readers.__name__).values():
        by_suffix |= dict.fromkeys(reader.SUFFIXES, reader)
    return by_suffix


_WORD = re.compile(r"\S+")


def read_within(path: Location, limits: Limits | None = None) -> Document:
    """Read a file as `read_document` does; raise LimitError where it takes too long or too much memory."""
    with fetched(path) as here:
        return replace(guarded(read_document, here, limits=limits), path=path)


def boxes_within(document: Document, spans: list[Span]) -> list[list[Box]]:
    """Return for each span the rectangles that it covers, line by line, as `boxes` does."""
    if document.path is None or not spans:
        return [[] for _ in spans]
    with fetched(document.path) as here:
        # the text stays here: boxes are found by the pages alone
        return guarded(partial(_all_boxes, spans=spans), replace(document, text="", path=here))


def words_within(document: Document, number: int) -> list[tuple[Span, list[Box]]]:
    """Return the words of a page, each with its rectangles: two where it is broken at a line's end."""
    if document.path is None:
        return []
    page = document.pages[number - 1].span
    spans = [Span(*match.span()) for match in _WORD.finditer(document.text, page.start, page.end)]
    with fetched(document.path) as here:
        # the text stays here: boxes are found by the pages alone
        step = partial(page_boxes, number=number, spans=spans)
        return list(zip(spans, guarded(step, replace(document, text="", path=here)), strict=True))


def render_within(path: Location, page: int, *, scale: float) -> Any:
    """Return a page's picture, as `render` does."""
    with fetched(path) as here:
        return guarded(partial(render, page=page, scale=scale), here)


def _all_boxes(document: Document, spans: list[Span]) -> list[list[Box]]:
    return [boxes(document, span) for span in spans]
