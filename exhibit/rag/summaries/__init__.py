"""Summarisers of documents and sections: each file has a summariser, which `--summaries` selects."""

from typing import NamedTuple, Protocol

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section

DOCUMENT_CHARS, SECTION_CHARS = 150, 75  # characters of the summary of a document, and of a section
TOLERANCE = 20  # the characters by which a summary may exceed its length


class Summary(NamedTuple):
    """The summaries of a document: one line on the document and, with `layers = all`, one line on each section."""

    document: str
    sections: tuple[str, ...] = ()


class Summariser(Protocol):
    """A summariser of documents. A module in `rag/summaries/` has `open(argument, *, config, llm)`."""

    # whether the summariser needs only the document, so that the worker that reads the document also summarises it
    alone: bool

    def summarise(self, document: Document, root: Section, profile: Profile) -> Summary:
        """Return the summary of a document and, with `layers = all`, of each section without subsections."""
