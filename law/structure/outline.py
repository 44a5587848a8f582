"""What is known of a document's headings before its lines are read: its contents, its bookmarks, its type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from exhibit.evidence import Document
from exhibit.evidence.readers.pdf import LineType, line_types
from exhibit.storage.locations import fetched


class Outline(NamedTuple):
    """What is known of a document's headings before its lines are read: by contents, bookmarks or type."""

    titles: Mapping[str, float] = {}
    """By the letters of each title: how high it stands, 0 where its number or its place tells."""
    skipped: Collection[int] = ()
    """Where lines begin that are none of the text: running heads."""
    heights: Mapping[int, LineType] = {}
    """By where lines begin that are set larger than the text, or bolder: their type."""

    least: float = 0.0
    """How high the type of a heading without a number must be."""

    @property
    def known(self) -> bool:
        """Whether it says anything of the headings."""
        return bool(self.titles or self.heights)


NO_OUTLINE = Outline()
_LARGER = 1.15  # times the height of the text's type, tried on four court guides by bench.headings
_FEWEST_LARGE = 3  # lines: a title page alone tells nothing of the rest


def typed_outline(document: Document) -> Outline:
    """Return which lines of a PDF are set larger or bolder than its text, as headings are; empty where none are."""
    if document.path is None or not document.path.name.lower().endswith(".pdf"):
        return NO_OUTLINE
    with fetched(document.path) as here:
        types = line_types(replace(document, path=here)) if here.is_file() else {}
    ends = {at: document.text.find("\n", at) for at in types}
    heights: Counter[LineType] = Counter()
    for at, kind in types.items():
        heights[kind] += max(ends[at] - at, 0)
    if not heights:
        return NO_OUTLINE
    body = heights.most_common(1)[0][0]
    least = _LARGER * body.height
    large = {at: one for at, one in types.items() if one.height >= least or one.bold > body.bold}
    if len(large) < _FEWEST_LARGE:
        return NO_OUTLINE
    # where headings are larger, what is only bold is a heading with a number, or a word of weight
    larger = sum(one.height >= least for one in large.values()) >= _FEWEST_LARGE
    return Outline(heights=large, least=least if larger else 0.0)
