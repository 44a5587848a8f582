"""Splitters of texts into spans: each file is one splitter, selected by `--splitter`."""

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import Literal

from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError

__all__ = ["Splitter", "tile"]


Splitter = Callable[..., list[Span]]
"""A function called as `split(text, size=500, overlap=0, sections=())`; returns spans in order that cover the text."""


def check(*, size: int, overlap: int) -> None:
    """Raise an error unless the size is at least 1 and the overlap is at least 0 and smaller than the size."""
    if size < 1:
        raise ToolkitError(f"chunk size {size}: a chunk has at least 1 character; choose a size of 1 or more")
    if not 0 <= overlap < size:
        raise ToolkitError(
            f"overlap {overlap}: it must be smaller than the chunk size of {size} characters; choose 0 to {size - 1}"
        )


def tile(start: int, cuts: list[int]) -> list[Span]:
    """Return the spans from `start` to the first cut, and from each cut to the next."""
    # this form is a third faster than Span(start, end), and there are many spans
    return list(map(tuple.__new__, repeat(Span), pairwise([start, *cuts])))


def reach_back(text: str, tiles: list[Span], overlap: int, *, floors: Sequence[int] = (0,)) -> list[Span]:
    """Return the spans, each extended back by up to `overlap` characters, so that it begins with a whole word.

    `floors` are offsets that no span is extended across, such as the starts of sections.
    """
    if not overlap:
        return tiles
    spans = []
    for start, end in tiles:
        floor = floors[bisect_right(floors, start) - 1]
        spans.append(Span(_find_word_break(text, max(start - overlap, floor), start), end))
    return spans


def _find_word_break(text: str, start: int, end: int) -> int:
    if start == 0 or text[start - 1].isspace():
        return start
    space = text.find(" ", start, end)
    return start if space < 0 else space + 1


Keep = Literal["start", "end"]
_TRIES = 8  # tries by the first character, before a search for the whole separator


def find_cuts(text: str, ranges: Sequence[Span], *, size: int, separators: Sequence[str], keep: Keep) -> list[int]:
    """Return the offsets at which to cut these ranges into chunks: the ends of all chunks, in order.

    From the start of a chunk, the text is cut at the last separator within `size` characters. If there is none,
    the next separator of the list is tried. The result is the same as splitting at every separator and joining
    neighbours while they fit. The time is linear, because each window of `size` characters is searched once for
    each separator.
    """
    cuts = [end for start, end in ranges if start < end]
    long: list[tuple[int, int]] = [(start, end) for start, end in ranges if end - start > size]
    for separator in separators:
        if separator and long:
            long = _cut_at(text, separator, long, cuts, size=size, after=keep == "end")
    for start, end in long:
        cuts.extend(range(start + size, end, size))
    cuts.sort()
    return cuts


def _cut_at(
    text: str, separator: str, ranges: list[tuple[int, int]], cuts: list[int], *, size: int, after: bool
) -> list[tuple[int, int]]:
    """Cut ranges at the last separator within `size` characters; return the parts that are still too long.

    Each cut is appended to `cuts`. The cut is before the separator, or after it if `after` is true.
    """
    width = len(separator)
    find = text.find if width == 1 else partial(find_separator, text)
    rfind, cut = text.rfind, cuts.append
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
                at = _find_separator(text, separator, at, start, start + first)
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


def find_separator(text: str, separator: str, start: int) -> int:
    """Return the position of the next separator at or after `start`; -1 if there is none.

    First search for the separator's first character alone, which is much faster if that character is rare.
    """
    at = start - 1
    for _ in range(_TRIES):
        at = text.find(separator[0], at + 1)
        if at < 0 or text.startswith(separator, at):
            return at
    return text.find(separator, at + 1)


def _find_separator(text: str, separator: str, at: int, floor: int, start: int) -> int:
    """Return the position of the last separator that begins at or before `at`; -1 if it begins before `start`.

    The separator is one repeated character, such as two newlines. The text may have a longer run of this
    character, so separators are counted from the start of the run, as `re.split` does: three newlines contain
    one separator, the first two newlines. The run is not followed back beyond `floor`.
    """
    run = floor + len(text[floor:at].rstrip(separator[0]))
    at -= (at - run) % len(separator)
    return at if at >= start else -1
