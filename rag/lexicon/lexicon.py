"""The three tables of words of an index, kept in step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rag.lexicon.documents import FILE, Documents
from rag.lexicon.words import open_words
from rag.seams import Keys, Profile

FILES = ("words.npz", "headings.npz", FILE)


class Lexicon:
    """Words beside the vectors of an index; changes are in memory until `save`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chunks = open_words(folder / FILES[0])
        """The words of chunks, under their keys."""
        self.headings = open_words(folder / FILES[1])
        """The words of the headings above each section, under the section's key."""
        self.documents = Documents.open(folder) if (folder / FILE).is_file() else Documents()
        """The names, parties and proper nouns of documents, under their numbers."""

    def add_document(self, number: int, *, filename: str, profile: Profile, text: str) -> None:
        """Add a document by what names it."""
        self.documents.add(number, filename=filename, profile=profile, text=text)

    def add_chunks(self, keys: Sequence[int] | Keys, texts: Iterable[str]) -> None:
        """Add chunks; a key is above all that were added before."""
        self.chunks.add(keys, texts)

    def add_sections(self, keys: Sequence[int], paths: Iterable[str]) -> None:
        """Add sections by the headings above them."""
        self.headings.add(keys, paths)

    def remove(self, number: int, *, chunks: Keys, sections: Sequence[int]) -> None:
        """Remove a document with its chunks and sections."""
        self.documents.remove(number)
        self.chunks.remove(chunks)
        self.headings.remove(sections)

    def save(self) -> None:
        """Write everything."""
        self.chunks.save()
        self.headings.save()
        self.documents.save(self.folder)
