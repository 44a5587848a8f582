"""Recursive character splitting with exact offsets that never crosses the boundary of a section."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise

from exhibit.evidence import Span
from exhibit.rag.splitters import Keep, Splitter, check, find_cuts, reach_back, tile
from exhibit.schemas.errors import ToolkitError

SEPARATORS = ("\n\n", "\n", "!", "?", ".", ":", ";", ",", " ", "")
"""LegalBench-RAG's own, each kept at the start of a piece: its sample becomes 34,180 chunks of 254 characters."""
SENTENCES = ("\n\n", "\n", ". ", "; ", ", ", " ", "")
"""Punctuation only where a space follows, so that `3.4(2)` and `10,000` stay whole."""


def open(argument: str | None) -> Splitter:
    """Return the splitter; `sections:sentences` cuts no number, and leaves a full stop with its sentence."""
    return variant("sections", argument, split)


def variant(name: str, argument: str | None, usual: Splitter) -> Splitter:
    """Return a splitter in its usual form, or in the variant that its argument names."""
    if argument is None:
        return usual
    if argument == "sentences":
        return partial(usual, separators=SENTENCES, keep="end")
    raise ToolkitError(f"no splitter '{name}:{argument}'; there are {name} and {name}:sentences")


def split(
    text: str,
    *,
    size: int = 500,
    overlap: int = 0,
    sections: Sequence[Span] = (),
    separators: Sequence[str] = SEPARATORS,
    keep: Keep = "start",
) -> list[Span]:
    """Return spans of at most `size` characters, each within one section, cut where the coarsest separator allows.

    A separator stays at the `start` of the piece that it opens, or at the `end` of the one that it closes. It is
    one character, several alike, or several of which the first does not come again. With `overlap`, a span
    reaches back into the one before it by up to that many characters. Nested sections are cut at every edge.
    """
    check(size=size, overlap=overlap)
    length = len(text)
    edges = sorted({0, length, *(min(max(edge, 0), length) for edge in chain.from_iterable(sections))})
    ranges = [Span(*ends) for ends in pairwise(edges)]
    cuts = find_cuts(text, ranges, size=size - overlap, separators=separators, keep=keep)
    return reach_back(text, tile(0, cuts), overlap, floors=edges)
