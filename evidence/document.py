"""A document as text with coordinates: characters, pages, and boxes on a page."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from exhibit.evidence.fold import Fold
from exhibit.evidence.furniture import furniture_lines
from exhibit.storage.locations import Location


class Span(NamedTuple):
    """A half-open range of characters of `Document.text`."""

    start: int
    end: int


class Box(NamedTuple):
    """A rectangle on a page, in points (1/72 inch) from the page's top left corner as it is seen."""

    page: int
    left: float
    top: float
    right: float
    bottom: float


class Page(NamedTuple):
    """One page: its number from 1, its characters, its width and height in points."""

    number: int
    span: Span
    width: float
    height: float


@dataclass(frozen=True)
class Document:
    """A file as it was read; `text` is what every offset of this project counts in."""

    filename: str
    text: str
    pages: tuple[Page, ...] = ()
    path: Location | None = None
    notes: tuple[str, ...] = ()

    @property
    def has_text(self) -> bool:
        """Return whether there is anything to read: false for scans without a text layer."""
        return bool(self.text.strip())

    def pages_of(self, span: Span) -> list[int]:
        """Return the numbers of the pages that a span touches."""
        starts = self._page_starts
        first = max(bisect_right(starts, span.start) - 1, 0)
        last = bisect_right(starts, max(span.end - 1, span.start))
        return [page.number for page in self.pages[first:last]]

    @cached_property
    def _page_starts(self) -> list[int]:
        return [page.span.start for page in self.pages]

    @cached_property
    def furniture(self) -> tuple[Span, ...]:
        """The lines that belong to the page and not to the text: running heads, feet, page numbers."""
        return tuple(Span(*line) for line in furniture_lines(self.text, [p.span for p in self.pages]))

    @cached_property
    def folded(self) -> Fold:
        """The text folded for search, computed once."""
        return Fold.of(self.text)

    @cached_property
    def loose(self) -> Fold:
        """The text folded without case and hyphens."""
        return Fold.of(self.text, loose=True)

    @cached_property
    def body(self) -> Fold:
        """Like `loose`, without the page furniture: sentences run on from page to page."""
        return Fold.of(self.text, loose=True, without=self.furniture) if self.furniture else self.loose
