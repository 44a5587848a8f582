"""Splitters of texts into spans: each file is one splitter, selected by `--splitter`."""

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise, repeat
from typing import Literal

from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError

Splitter = Callable[..., list[Span]]
"""A function called as `split(text, size=500, overlap=0, sections=())`; returns spans in order that cover the text."""
SEPARATORS = ("\n\n", "\n", "!", "?", ".", ":", ";", ",", " ", "")
"""The separators of LegalBench-RAG; each stays at the start of a piece. They split its sample into 34,180 chunks of 254
characters on average.
"""
SENTENCES = ("\n\n", "\n", ". ", "; ", ", ", " ", "")
"""Separators with punctuation only before a space, so that `3.4(2)` and `10,000` stay whole."""


def choose_variant(name: str, argument: str | None, usual: Splitter) -> Splitter:
    """Return a splitter in its usual form, or with `sentences` one that cuts at punctuation only before a space."""
    if argument not in (None, "sentences"):
        raise ToolkitError(f"no splitter '{name}:{argument}'; there are {name} and {name}:sentences")
    return partial(usual, separators=SENTENCES, keep="end") if argument else usual


def check_size(*, size: int, overlap: int) -> None:
    """Raise an error unless the size is at least 1 and the overlap is smaller than the size."""
    if size < 1:
        raise ToolkitError(f"chunk size {size}: a chunk has at least 1 character; choose a size of 1 or more")
    if not 0 <= overlap < size:
        raise ToolkitError(
            f"overlap {overlap}: it must be smaller than the chunk size of {size} characters; choose 0 to {size - 1}"
        )


def split(
    text: str,
    *,
    size: int = 500,
    overlap: int = 0,
    sections: Sequence[Span] = (),
    separators: Sequence[str] = SEPARATORS,
    keep: Literal["start", "end"] = "start",
) -> list[Span]:
    """Return spans of at most `size` characters, each within one section, cut at the coarsest separator present.

    A separator stays at the start of the span after it, or at the end of the span before it (`keep`). It must be one
    character, one character repeated, or a string that contains its first character only once.
    """
    check_size(size=size, overlap=overlap)
    edges = sorted({0, len(text), *(min(max(edge, 0), len(text)) for edge in chain.from_iterable(sections))})
    ranges = [(start, end) for start, end in pairwise(edges)]
    cuts = _find_cuts(text, ranges, size=size - overlap, separators=separators, after=keep == "end")
    # this form is a third faster than Span(start, end), and there are many spans
    tiles: list[Span] = list(map(tuple.__new__, repeat(Span), pairwise([0, *cuts])))
    if not overlap:
        return tiles
    spans = []
    for start, end in tiles:
        floor = edges[bisect_right(edges, start) - 1]  # no span is extended back across the start of its section
        spans.append(Span(_find_word_break(text, max(start - overlap, floor), start), end))
    return spans


def _find_word_break(text: str, start: int, end: int) -> int:
    if start == 0 or text[start - 1].isspace():
        return start
    space = text.find(" ", start, end)
    return start if space < 0 else space + 1


def _find_cuts(
    text: str, ranges: Sequence[tuple[int, int]], *, size: int, separators: Sequence[str], after: bool
) -> list[int]:
    """Return the ends of all chunks of these ranges, in order.

    From the start of a chunk, the text is cut at the last separator within `size` characters; if there is none, the
    next separator of the list is tried. This equals splitting at every separator and joining neighbours while they fit,
    in linear time.
    """
    cuts = [end for start, end in ranges if start < end]
    long = [(start, end) for start, end in ranges if end - start > size]
    for separator in separators:
        if separator and long:
            long = _cut_at(text, separator, long, cuts, size=size, after=after)
    for start, end in long:
        cuts.extend(range(start + size, end, size))
    cuts.sort()
    return cuts


def _cut_at(
    text: str, separator: str, ranges: list[tuple[int, int]], cuts: list[int], *, size: int, after: bool
) -> list[tuple[int, int]]:
    """Append the cuts of ranges before or after a separator to `cuts`; return the parts that are still too long."""
    width = len(separator)
    find, rfind, cut = text.find, text.rfind, cuts.append
    shift = width if after else 0
    first, last = (0, size) if after else (1, size + width)
    beyond = max(size + 1 - shift, 0)
    repeats = width > 1 and separator == separator[0] * width
    ahead = -1  # the position of the next separator, if it is known to be out of reach
    long = []
    for start, end in ranges:
        if ahead >= end:
            long.append((start, end))
            continue
        limit = end - size
        while start < limit:
            at = rfind(separator, start + first, start + last)
            if repeats and at > 0 and text[at - 1] == separator[0]:
                at = _align_to_run(text, separator, at, start, start + first)
            if at >= 0:
                start = at + shift
                cut(start)
                continue
            if ahead <= start:
                ahead = find(separator, start + beyond) + shift
                if ahead < shift:
                    ahead = sys.maxsize
            if ahead >= end:
                long.append((start, end))
                break
            long.append((start, ahead))
            start = ahead
            cut(start)
    return long


def _align_to_run(text: str, separator: str, at: int, floor: int, start: int) -> int:
    """Return the last separator at or before `at`, counted from the start of its run of one repeated character.

    As with `re.split`, three newlines contain one separator, the first two. Return -1 if it begins before `start`.
    """
    run = floor + len(text[floor:at].rstrip(separator[0]))
    at -= (at - run) % len(separator)
    return at if at >= start else -1
