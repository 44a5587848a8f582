"""Splitters of texts into spans: each file is one splitter, selected by `--splitter`."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Literal

from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError

Splitter = Callable[..., list[Span]]  # split(text, size=500, overlap=0, sections=()): spans that cover the text
SEPARATORS = ("\n\n", "\n", "!", "?", ".", ":", ";", ",", " ", "")
"""The separators of LegalBench-RAG; each stays at the start of a piece. Its sample has 34,180 chunks."""
SENTENCES = ("\n\n", "\n", ". ", "; ", ", ", " ", "")  # with the space after the mark, `3.4(2)` and `10,000` stay whole


def open_variant(name: str, argument: str | None, *, within_sections: bool = True) -> Splitter:
    """Return `split`, or for the argument `sentences` a variant that cuts at punctuation only before a space."""
    if argument not in (None, "sentences"):
        raise ToolkitError(f"no splitter '{name}:{argument}'; choose {name} or {name}:sentences")
    usual = partial(split, within_sections=within_sections)
    return partial(usual, separators=SENTENCES, keep="end") if argument else usual


def split(
    text: str,
    *,
    size: int = 500,
    overlap: int = 0,
    sections: Sequence[Span] = (),
    within_sections: bool = True,
    separators: Sequence[str] = SEPARATORS,
    keep: Literal["start", "end"] = "start",
) -> list[Span]:
    """Return spans that cover the text, cut at the coarsest separator; a separator stays at a span's start or end."""
    if not 0 <= overlap < size:
        raise ToolkitError(f"chunk size {size}, overlap {overlap}: choose a size of at least 1, and a smaller overlap")
    cuts = chain.from_iterable(sections if within_sections else ())
    edges = sorted({0, len(text), *(min(max(edge, 0), len(text)) for edge in cuts)})
    ends = [0] if text else []
    for start, end in pairwise(edges):
        ends += _list_ends(text, start, end, size - overlap, separators, after=keep == "end")
    spans = []
    for start, end in pairwise(ends):
        if overlap:
            floor = edges[bisect_right(edges, start) - 1]  # no overlap extends beyond the start of a section
            whole, start = start, max(start - overlap, floor)
            if start and not text[start - 1].isspace():  # inside a word: begin at the next word
                start = text.find(" ", start, whole) + 1 or start
        spans.append(Span(start, end))
    return spans


def _list_ends(text: str, start: int, end: int, size: int, separators: Sequence[str], *, after: bool) -> Iterator[int]:
    """Yield the ends of chunks: pieces are joined while they fit, and cut at finer separators if too long."""
    if end - start <= size:
        yield end
        return
    separator, *finer = separators or ("",)
    if not separator:
        yield from range(start + size, end, size)
        yield end
        return
    shift = len(separator) if after else 0
    last = start
    for edge in chain(
        (match.start() + shift for match in re.compile(re.escape(separator)).finditer(text, start, end)), (end,)
    ):
        if edge - start > size:
            if last > start:
                yield last
                start = last
            if edge - start > size:
                yield from _list_ends(text, start, edge, size, finer, after=after)
                start = edge
        last = edge
    if last > start:
        yield last
