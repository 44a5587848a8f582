"""Documents as text with coordinates, and quotes found in them."""

from evidence.document import Box, Document, Page, Span
from evidence.fold import fold
from evidence.locate import Match, locate
from evidence.read import read_document, readable

__all__ = ["Box", "Document", "Match", "Page", "Span", "fold", "locate", "read_document", "readable"]
