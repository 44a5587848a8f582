"""Plain text."""

from pathlib import Path

from exhibit.evidence.document import Document
from exhibit.evidence.files import Decoded, decode_bytes
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.parsing import explain_read_errors

SUFFIXES = (".txt", ".text", ".log")


def read(path: Path) -> Document:
    """Read a text file without changing a character, so that offsets published with a benchmark stay valid."""
    decoded = decode_file(path)
    return Document(path.name, decoded.text, (), path, decoded.notes)


def decode_file(path: Path) -> Decoded:
    """Return a file's characters and their encoding; raise if it is not text."""
    with explain_read_errors(path, DocumentError):
        text = decode_bytes(path.read_bytes())
    if text is None:
        raise DocumentError(f"{path}: not a text file; is the file name's extension right?")
    return text
