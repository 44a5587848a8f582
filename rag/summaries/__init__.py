"""Summaries of documents and sections: one file per way to make them; its name is its name on the command line."""

from rag.summaries._cache import SummaryCache
from rag.summaries._choose import open_summariser
from rag.summaries._protocol import Summariser

__all__ = ["Summariser", "SummaryCache", "open_summariser"]
