"""Recursive character splitting with exact offsets that never crosses the boundary of a section."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise

from exhibit.evidence import Span
from exhibit.rag.splitters import Keep, Splitter, check, find_cuts, reach_back, tile
from exhibit.schemas.errors import ToolkitError

SEPARATORS = ("\n\n", "\n", "!", "?", ".", ":", ";", ",", " ", "")
"""The separators of LegalBench-RAG; each stays at the start of a piece. They split its sample into 34,180 chunks of 254
characters on average.
"""
SENTENCES = ("\n\n", "\n", ". ", "; ", ", ", " ", "")
"""Separators with punctuation only before a space, so that `3.4(2)` and `10,000` stay whole."""


def open(argument: str | None) -> Splitter:
    """Return the splitter; with the argument `sentences` it cuts at punctuation only before a space.

    So a number such as `10,000` stays whole, and a full stop stays with its sentence.
    """
    return choose_variant("sections", argument, split)


def choose_variant(name: str, argument: str | None, usual: Splitter) -> Splitter:
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
    """Return spans of at most `size` characters, each within one section, cut at the coarsest separator present.

    With `keep` = `start`, a separator stays at the start of the span after it; with `end`, at the end of the
    span before it. A separator must be one character, one character repeated, or a string that contains its
    first character only once. With `overlap`, a span begins up to that many characters before the end of the
    previous span. Nested sections are cut at every boundary.
    """
    check(size=size, overlap=overlap)
    length = len(text)
    edges = sorted({0, length, *(min(max(edge, 0), length) for edge in chain.from_iterable(sections))})
    ranges = [Span(*ends) for ends in pairwise(edges)]
    cuts = find_cuts(text, ranges, size=size - overlap, separators=separators, keep=keep)
    return reach_back(text, tile(0, cuts), overlap, floors=edges)
