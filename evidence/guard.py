"""Documents read and drawn in a worker, within limits: for whoever reads one at a time, outside of any map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engine import Limits, guarded
from evidence.document import Box, Document, Span
from evidence.read import read_document
from evidence.readers.pdf import boxes, render, word_boxes
from storage.locations import Location, fetched

_USUAL = Limits()


def read_within(path: Location, limits: Limits = _USUAL) -> Document:
    """Read a file as `read_document` does; raise LimitError where it takes too long or too much memory."""
    with fetched(path) as here:
        return replace(guarded(read_document, here, limits=limits), path=path)


def boxes_within(document: Document, spans: list[Span], limits: Limits = _USUAL) -> list[list[Box]]:
    """Return for each span the rectangles that it covers, line by line, as `boxes` does."""
    if document.path is None or not spans:
        return [[] for _ in spans]
    with fetched(document.path) as here:
        # the text stays here: boxes are found by the pages alone
        return guarded(_Boxes(tuple(spans)), replace(document, text="", path=here), limits=limits)


def words_within(document: Document, number: int, limits: Limits = _USUAL) -> list[tuple[Span, list[Box]]]:
    """Return the words of a page with their rectangles, as `word_boxes` does."""
    if document.path is None:
        return []
    page = document.pages[number - 1]
    # of the text only this page is needed; the others are blank, so that offsets stay as they are
    text = " " * page.span.start + document.text[page.span.start : page.span.end]
    with fetched(document.path) as here:
        return guarded(_Words(number), replace(document, text=text, path=here), limits=limits)


def render_within(path: Location, page: int, *, scale: float, limits: Limits = _USUAL) -> Any:
    """Return a page's picture, as `render` does."""
    with fetched(path) as here:
        return guarded(_Picture(page, scale), here, limits=limits)


@dataclass(frozen=True)
class _Boxes:
    spans: tuple[Span, ...]

    def __call__(self, document: Document) -> list[list[Box]]:
        return [boxes(document, span) for span in self.spans]


@dataclass(frozen=True)
class _Words:
    number: int

    def __call__(self, document: Document) -> list[tuple[Span, list[Box]]]:
        return word_boxes(document, self.number)


@dataclass(frozen=True)
class _Picture:
    page: int
    scale: float

    def __call__(self, path: Location) -> Any:
        return render(path, self.page, scale=self.scale)
