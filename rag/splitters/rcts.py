"""Recursive character splitting with exact offsets: the chunks' spans tile the text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from exhibit.evidence import Span
from exhibit.rag.splitters import Keep, Splitter, check, find_cuts, reach_back, tile
from exhibit.schemas.errors import ToolkitError

SEPARATORS = ("\n\n", "\n", "!", "?", ".", ":", ";", ",", " ", "")
"""LegalBench-RAG's own, each kept at the start of a piece: its sample becomes 34,180 chunks of 254 characters."""
SENTENCES = ("\n\n", "\n", ". ", "; ", ", ", " ", "")
"""Punctuation only where a space follows, so that `3.4(2)` and `10,000` stay whole."""


def open(argument: str | None) -> Splitter:
    """Return the splitter; `rcts:sentences` cuts no number, and leaves a full stop with its sentence."""
    if argument is None:
        return split
    if argument == "sentences":
        return partial(split, separators=SENTENCES, keep="end")
    raise ToolkitError(f"no splitter 'rcts:{argument}'; there are rcts and rcts:sentences")


def split(
    text: str,
    *,
    size: int = 500,
    overlap: int = 0,
    sections: Sequence[Span] = (),  # noqa: ARG001 - all splitters are called alike
    separators: Sequence[str] = SEPARATORS,
    keep: Keep = "start",
) -> list[Span]:
    """Return spans of at most `size` characters, cut where the coarsest separator allows.

    A separator stays at the `start` of the piece that it opens, or at the `end` of the one that it closes. It is
    one character, several alike, or several of which the first does not come again. With `overlap`, a span
    reaches back into the one before it by up to that many characters.
    """
    check(size=size, overlap=overlap)
    cuts = find_cuts(text, [Span(0, len(text))], size=size - overlap, separators=separators, keep=keep)
    return reach_back(text, tile(0, cuts), overlap)
