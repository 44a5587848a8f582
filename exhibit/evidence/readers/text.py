"""Plain text, and JSON exports of a search index or a crawler."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.evidence.document import Document
from exhibit.evidence.files import Decoded, decode_bytes
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.parsing import parse_json

SUFFIXES = (".txt", ".text", ".log", ".json")
_TEXT_FIELDS = ("content", "text", "body", "page_content", "chunk")


def read(path: Path) -> Document:
    """Read a text file without changing a character, so that offsets published with a benchmark stay valid.

    The text fields of a JSON file are joined by blank lines, record by record.
    """
    decoded = decode_file(path)
    text = decoded.text
    if path.suffix.lower() == ".json":
        texts = list(_find_texts(parse_json(text.removeprefix("\ufeff"), where=path, error=DocumentError)))
        if not texts:
            raise DocumentError(f"{path}: no text in it; it has none of the fields {', '.join(_TEXT_FIELDS)}")
        text = "\n\n".join(texts)
    return Document(path.name, text, (), path, decoded.notes)


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


def _find_texts(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        # in an export of chunks, this list has all chunks, and the text field has only the first
        pieces = list(_find_texts(data["chunks"])) if isinstance(data.get("chunks"), list) else []
        texts = [data[name] for name in _TEXT_FIELDS if isinstance(data.get(name), str)][:1]
        if pieces or texts:
            yield from pieces or texts
            return
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from _find_texts(item)
