"""Summaries of documents and sections: one file per way to make them; its name is its name on the command line."""

from exhibit.rag.summaries._cache import SummaryCache
from exhibit.rag.summaries._choose import open_summariser
from exhibit.rag.summaries._protocol import CHARACTERS, SECTION_CHARACTERS, TOLERANCE, Described, Summariser

__all__ = [
    "CHARACTERS",
    "SECTION_CHARACTERS",
    "TOLERANCE",
    "Described",
    "Summariser",
    "SummaryCache",
    "open_summariser",
]
