"""Plain text."""

from pathlib import Path

from exhibit.evidence.document import Document
from exhibit.evidence.files import Decoded, decode_bytes
from exhibit.schemas.errors import DocumentError

SUFFIXES = (".txt", ".text", ".log")


def read(path: Path) -> Document:
    """Read a text file without changing a character, so that offsets published with a benchmark stay valid."""
    decoded = decode_file(path)
    return Document(path.name, decoded.text, (), path, decoded.notes)


def decode_file(path: Path) -> Decoded:
    """Return a file's characters and their encoding; raise if it is not text."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}; check this file") from error
    text = decode_bytes(data)
    if text is None:
        raise DocumentError(f"{path}: not a text file; is the file name's extension right?")
    return text
