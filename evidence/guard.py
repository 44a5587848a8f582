"""Documents read and drawn in a worker, within limits: for whoever reads one at a time, outside of any map.

Without limits of their own these calls have those of the command that runs (`engine.limits_in_force`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

from exhibit.engine import Limits, guarded
from exhibit.evidence.document import Box, Document, Span
from exhibit.evidence.read import read_document
from exhibit.evidence.readers.pdf import boxes, page_boxes, render
from exhibit.storage.locations import Location, fetched

_WORD = re.compile(r"\S+")


def read_within(path: Location, limits: Limits | None = None) -> Document:
    """Read a file as `read_document` does; raise LimitError where it takes too long or too much memory."""
    with fetched(path) as here:
        return replace(guarded(read_document, here, limits=limits), path=path)


def boxes_within(document: Document, spans: list[Span]) -> list[list[Box]]:
    """Return for each span the rectangles that it covers, line by line, as `boxes` does."""
    if document.path is None or not spans:
        return [[] for _ in spans]
    with fetched(document.path) as here:
        # the text stays here: boxes are found by the pages alone
        return guarded(partial(_all_boxes, spans=spans), replace(document, text="", path=here))


def words_within(document: Document, number: int) -> list[tuple[Span, list[Box]]]:
    """Return the words of a page, each with its rectangles: two where it is broken at a line's end."""
    if document.path is None:
        return []
    page = document.pages[number - 1].span
    spans = [Span(*match.span()) for match in _WORD.finditer(document.text, page.start, page.end)]
    with fetched(document.path) as here:
        # the text stays here: boxes are found by the pages alone
        step = partial(page_boxes, number=number, spans=spans)
        return list(zip(spans, guarded(step, replace(document, text="", path=here)), strict=True))


def render_within(path: Location, page: int, *, scale: float) -> Any:
    """Return a page's picture, as `render` does."""
    with fetched(path) as here:
        return guarded(partial(render, page=page, scale=scale), here)


def _all_boxes(document: Document, spans: list[Span]) -> list[list[Box]]:
    return [boxes(document, span) for span in spans]
