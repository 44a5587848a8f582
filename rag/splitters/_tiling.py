"""What the splitters share: their shape, limits, cuts made spans, overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise, repeat

from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError

Splitter = Callable[..., list[Span]]
"""Called as `split(text, size=500, overlap=0, sections=())`: spans in order that leave nothing out."""


def check(*, size: int, overlap: int) -> None:
    """Refuse sizes that no chunk can have."""
    if size < 1:
        raise ToolkitError(f"no chunk has {size} characters; choose a size of 1 or more")
    if not 0 <= overlap < size:
        raise ToolkitError(f"an overlap of {overlap} does not fit into {size} characters; choose 0 to {size - 1}")


def tile(start: int, cuts: list[int]) -> list[Span]:
    """Return the spans from `start` to the first cut, and from each cut to the next."""
    # a third faster than Span(start, end), and there are many
    return list(map(tuple.__new__, repeat(Span), pairwise([start, *cuts])))


def reach_back(text: str, tiles: list[Span], overlap: int, *, floors: Sequence[int] = (0,)) -> list[Span]:
    """Let each span begin up to `overlap` characters earlier, at a word where there is one, but over no floor."""
    if not overlap:
        return tiles
    spans = []
    for start, end in tiles:
        floor = floors[bisect_right(floors, start) - 1]
        spans.append(Span(_word(text, max(start - overlap, floor), start), end))
    return spans


def _word(text: str, start: int, end: int) -> int:
    if start == 0 or text[start - 1].isspace():
        return start
    space = text.find(" ", start, end)
    return start if space < 0 else space + 1
