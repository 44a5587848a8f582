"""The lexicon of an index: the words of chunks, of headings, and of the names of documents."""

from collections.abc import Iterable
from typing import NamedTuple

from exhibit.law.language import language_of
from exhibit.law.profile import Profile
from exhibit.rag.database import Database
from exhibit.rag.lexicon.bm25 import Counted, Words, count_terms
from exhibit.rag.lexicon.documents import DocumentNames
from exhibit.rag.lexicon.name_words import NameWords, read_names
from exhibit.rag.protocols import Keys

__all__ = ["DocumentWords", "Lexicon", "read_words"]


_NEAR = 20_000
"""The number of characters at a document's start that determine its language."""


class DocumentWords(NamedTuple):
    """The counted words of one document, as a worker returns them and a lexicon stores them."""

    names: NameWords
    chunks: Counted
    headings: Counted


def read_words(
    filename: str, profile: Profile, text: str, *, chunks: Iterable[str], headings: Iterable[str]
) -> DocumentWords:
    """Return three word counts of a document: of the words that can name it, of its chunks, and of its headings.

    The words that can name a document come, for example, from its title and its parties.
    """
    foreign = language_of(text[:_NEAR]) != "en"
    counted = (count_terms(chunks, parts=foreign), count_terms(headings, parts=foreign))
    return DocumentWords(read_names(filename, profile, text), *counted)


class Lexicon:
    """The words that an index stores in its database: those of its chunks, its headings and its documents' names."""

    def __init__(self, database: Database) -> None:
        self.chunks = Words(database, "words")
        """The words of chunks, under their keys."""
        self.headings = Words(database, "headings")
        """The words of the headings above each section, under the section's key."""
        self.documents = DocumentNames(database)
        """The names, parties and proper nouns of documents, under their numbers."""

    def add(self, number: int, words: DocumentWords, *, chunks: Keys, sections: Keys) -> None:
        """Add the words of a document, its chunks and its sections; each key must be greater than all earlier keys."""
        self.documents.add_named(number, words.names)
        self.chunks.add_counted(chunks, words.chunks)
        self.headings.add_counted(sections, words.headings)

    def remove(self, number: int, *, chunks: Keys, sections: Keys) -> None:
        """Remove a document from the lexicon: its own words, and the words of its chunks and section headings."""
        self.documents.remove(number)
        self.chunks.remove(chunks)
        self.headings.remove(sections)

    def save(self) -> None:
        """Write all additions to the database."""
        self.chunks.save()
        self.headings.save()
        self.documents.save()
