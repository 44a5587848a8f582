"""Recursive splitting that never crosses the boundary of a section."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise

from exhibit.evidence import Span
from exhibit.rag.splitters import Keep, Splitter, check, find_cuts, reach_back, tile
from exhibit.rag.splitters.rcts import SENTENCES, SEPARATORS
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None) -> Splitter:
    """Return the splitter; `sections:sentences` cuts no number, and leaves a full stop with its sentence."""
    if argument is None:
        return split
    if argument == "sentences":
        return partial(split, separators=SENTENCES, keep="end")
    raise ToolkitError(f"no splitter 'sections:{argument}'; there are sections and sections:sentences")


def split(
    text: str,
    *,
    size: int = 500,
    overlap: int = 0,
    sections: Sequence[Span] = (),
    separators: Sequence[str] = SEPARATORS,
    keep: Keep = "start",
) -> list[Span]:
    """Return spans of at most `size` characters, each within one section; nested sections are cut at every edge."""
    check(size=size, overlap=overlap)
    length = len(text)
    edges = sorted({0, length, *(min(max(edge, 0), length) for edge in chain.from_iterable(sections))})
    ranges = [Span(*ends) for ends in pairwise(edges)]
    cuts = find_cuts(text, ranges, size=size - overlap, separators=separators, keep=keep)
    return reach_back(text, tile(0, cuts), overlap, floors=edges)
