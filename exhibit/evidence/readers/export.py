"""JSON exports of a search index or a crawler: the text of one record, or of all records in order."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.evidence.document import Document
from exhibit.evidence.readers.text import decode_file
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.parsing import parse_json

SUFFIXES = (".json",)

_TEXT_FIELDS = ("content", "text", "body", "page_content", "chunk")


def read(path: Path) -> Document:
    """Return the text fields of a JSON file as one document, joined by blank lines."""
    data = parse_json(decode_file(path).text.removeprefix("\ufeff"), where=path, error=DocumentError)
    texts = list(_find_texts(data))
    if not texts:
        raise DocumentError(f"{path}: no text in it; it has none of the fields {', '.join(_TEXT_FIELDS)}")
    return Document(path.name, "\n\n".join(texts), (), path)


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
