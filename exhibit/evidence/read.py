"""Reads any supported file as a Document; the suffix selects the reader."""

import atexit
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from exhibit.engine import Limits, run_in_worker
from exhibit.engine.limits import PLAIN, limit_reading
from exhibit.evidence import readers
from exhibit.evidence.document import Box, Document, Span
from exhibit.evidence.files import convert_parser_errors, decode_bytes, head_of
from exhibit.evidence.readers.html import Attachment, Printable, extract_text
from exhibit.evidence.readers.pdf import find_boxes, render
from exhibit.runtime.plugins import import_plugins
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.layout import fit_name
from exhibit.storage.atomic import list_files, make_scratch_folder
from exhibit.storage.locations import Location, fetch_file

_MAX_DEPTH = 4  # most levels of mails inside mails whose attachments are read; the text of a mail lists their names
_MAX_ATTACHMENTS = 1000  # most attachments of one mail that are read


def read_document(path: Location | str) -> Document:
    """Read a file as a Document; the same file always gives the same text, so that offsets in it stay valid."""
    path = Path(path) if isinstance(path, str) else path
    with fetch_file(path) as file, _open_reader(file) as reader:
        if hasattr(reader, "read"):
            document: Document = reader.read(file)
            return replace(document, path=path)
        page: Printable = reader.page(file)
        return Document(file.name, extract_text(page.html), (), path, page.notes)


def read_printable(path: Path) -> Printable | None:
    """Return the HTML page from which a file is printed; None for files without one, such as PDF or plain text."""
    with _open_reader(path) as reader:
        page: Printable | None = reader.page(path) if hasattr(reader, "page") else None
        return page


def read_attachments(path: Path) -> list[Attachment]:
    with _open_reader(path) as reader:
        attachments: list[Attachment] = reader.attachments(path) if hasattr(reader, "attachments") else []
        return attachments


@contextmanager
def _open_reader(path: Path) -> Iterator[ModuleType]:
    """Yield a file's reader; limit time and memory by the file's size, and convert the errors of its parser."""
    reader = _import_readers().get(ending_of(path))
    if reader is None:
        head_of(path)  # raises its own error for a missing file
        known = ", ".join(sorted(_import_readers()))
        raise DocumentError(f"{path}: no reader for {path.suffix or 'a file without an extension'}; supported: {known}")
    with convert_parser_errors(path, getattr(reader, "KIND", "file")), ExitStack() as stack:
        if not getattr(reader, "STARTS_A_PROGRAM", False):
            memory = getattr(reader, "MEMORY", PLAIN)
            stack.enter_context(limit_reading(str(path), path.stat().st_size, memory))
        yield reader


def is_readable(path: Location) -> bool:
    return ending_of(path) in _import_readers()


def has_page(path: Location) -> bool:
    return hasattr(_import_readers().get(ending_of(path)), "page")


def ending_of(path: Location) -> str:
    """Return a file's suffix or, for a PDF, web page or text without a suffix, as in many URLs, the fitting suffix."""
    ending = path.suffix.lower()
    if ending in _import_readers() or not isinstance(path, Path) or not path.is_file():
        return ending
    head = head_of(path, 4096)
    if head.startswith(b"%PDF-"):
        return ".pdf"
    if re.fullmatch(r"\.[a-z0-9]{1,5}", ending):
        return ending  # an unknown suffix, or the end of a name such as "No. 4"
    if re.match(rb"\s*<(?:!doctype html|html)", head, re.IGNORECASE):
        return ".html"
    return ".txt" if head.strip() and b"\0" not in head and decode_bytes(head.rpartition(b" ")[0] or head) else ending


@cache
def _import_readers() -> dict[str, ModuleType]:
    by_suffix: dict[str, ModuleType] = {}
    for reader in import_plugins(readers.__name__).values():
        by_suffix |= dict.fromkeys(reader.SUFFIXES, reader)
    return by_suffix


def read_within(path: Location, limits: Limits | None = None) -> Document:
    """Read a file as `read_document` does; raise LimitError if it takes too long or too much memory."""
    with fetch_file(path) as local_path:
        return replace(run_in_worker(read_document, local_path, limits=limits), path=path)


def read_boxes(document: Document, spans: list[Span]) -> list[list[Box]]:
    """Return the rectangles of each span, line by line; a worker computes them with `pdf.find_boxes`."""
    if document.path is None or not spans:
        return [[] for _ in spans]
    with fetch_file(document.path) as local_path:
        # do not send the text to the worker, which needs only the pages
        return run_in_worker(partial(find_boxes, spans=spans), replace(document, text="", path=local_path))


def read_words(document: Document, number: int) -> list[tuple[Span, list[Box]]]:
    """Return the words of a page, each with its rectangles: two for a word that is broken at a line's end."""
    page = document.pages[number - 1].span
    spans = [Span(*match.span()) for match in re.compile(r"\S+").finditer(document.text, page.start, page.end)]
    return list(zip(spans, read_boxes(document, spans), strict=True))


def render_within(path: Location, page: int, *, scale: float) -> Any:
    with fetch_file(path) as local_path:
        return run_in_worker(partial(render, page=page, scale=scale), local_path)


class NamedFile(NamedTuple):
    path: Path
    name: str  # Its path in the folder; for an attachment, the mail's path followed by the attachment's name
    aliases: tuple[str, ...] = ()  # other names that a test set may use for the file


def list_folder(folder: Path) -> list[NamedFile]:
    return list(with_attachments(NamedFile(path, path.relative_to(folder).as_posix()) for path in list_files(folder)))


def with_attachments(files: Iterable[NamedFile], depth: int = 0) -> Iterator[NamedFile]:
    """Yield files; each mail is followed by its attachments, which are written to a temporary folder."""
    for file in files:
        yield file
        if depth > _MAX_DEPTH or not hasattr(_import_readers().get(ending_of(file.path)), "attachments"):
            continue
        try:
            inside = run_in_worker(read_attachments, file.path)
        except DocumentError:
            continue  # the mail is unreadable, and its reader reports this later
        key = hashlib.sha256(os.fsencode(f"{depth} {file.path.resolve()}")).hexdigest()[:16]
        room = _make_temporary() / key
        room.mkdir(exist_ok=True)
        taken: set[str] = set()
        for number, (name, data) in enumerate(inside[:_MAX_ATTACHMENTS], 1):
            plain = make_safe_name(name)
            while plain.casefold() in taken:
                plain = f"{number} {plain}"
            taken.add(plain.casefold())
            ending = Path(plain).suffix
            # leave room for a final `.pdf`
            joined = fit_name(f"{file.path.name} - {plain.removesuffix(ending)}", f"{ending}.pdf").removesuffix(".pdf")
            inner = NamedFile(room / joined, f"{file.name}/{plain}", (plain, name))
            inner.path.write_bytes(data)
            yield from with_attachments([inner], depth + 1)


def make_safe_name(name: str) -> str:
    plain = re.sub(r'[<>:"/\\|?*\x00-\x1f\x7f\ud800-\udfff]', "_", name).strip(" .") or "attachment"
    ending = Path(plain).suffix
    return plain.removesuffix(ending) + ending[:20]


@cache
def _make_temporary() -> Path:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(make_scratch_folder())
