"""Plain text and Markdown, character for character: no newline is changed, a BOM is character 0."""

from __future__ import annotations

from pathlib import Path

from evidence.document import Document
from schemas.errors import DocumentError

SUFFIXES = (".txt", ".md", ".text")


def read(path: Path) -> Document:
    """Read a UTF-8 text file exactly, so that offsets published for it hold."""
    return Document(path.name, decode(path), (), path)


def decode(path: Path) -> str:
    """Return a file's characters; anything but UTF-8 is an error that names the place."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path}: not UTF-8 (byte {error.start}); convert it with iconv first") from error
