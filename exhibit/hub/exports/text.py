"""The extracted text of every document: exactly the characters to which gold offsets refer."""

from pathlib import Path

from exhibit.hub.exports import Export
from exhibit.schemas.layout import fit_name


def write(export: Export, folder: Path) -> None:
    """Write one file for each document, under the document's name plus `.txt`."""
    for filename, text in export.documents():
        (folder / fit_name(filename, ".txt")).write_bytes(text.encode("utf-8"))
