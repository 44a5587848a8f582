"""Documents as text with coordinates (pages and boxes), and the search for quotes in them."""

from exhibit.evidence.document import Box, Document, Page, Span, subtract_spans
from exhibit.evidence.fold import fold
from exhibit.evidence.locate import Match, locate
from exhibit.evidence.read import is_readable, read_document

__all__ = [
    "Box", "Document", "Match", "Page", "Span", "fold", "is_readable", "locate", "read_document", "subtract_spans",
]  # fmt: skip
