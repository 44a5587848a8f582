"""Any supported file to a Document, chosen by its ending."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

from evidence import readers
from evidence.document import Document
from schemas.errors import DocumentError, ToolkitError
from storage.locations import Location, Remote, fetched

Reader = Callable[[Path], Document]


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


def _read(path: Path) -> Document:
    reader = _readers().get(path.suffix.lower())
    if reader is None:
        # names made from URLs may have no ending, or one that is part of a title ("No. 4")
        reader = _readers()[".pdf"] if _looks_like_pdf(path) else None
    if reader is None:
        known = ", ".join(sorted(_readers()))
        raise DocumentError(f"{path}: no reader for {path.suffix or 'a file without ending'}; known are {known}")
    return reader(path)


def readable(path: Location) -> bool:
    """Return whether there is a reader for the file's ending."""
    return path.suffix.lower() in _readers()


@cache
def _readers() -> dict[str, Reader]:
    found: dict[str, Reader] = {}
    for module in pkgutil.iter_modules(readers.__path__):
        reader = import_module(f"{readers.__name__}.{module.name}")
        found |= dict.fromkeys(reader.SUFFIXES, reader.read)
    return found


def _looks_like_pdf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(5) == b"%PDF-"
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error
