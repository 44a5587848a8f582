"""Recursive character splitting with exact offsets: the chunks' spans cover the text. Sections are ignored."""

from collections.abc import Sequence
from typing import Any

from exhibit.evidence import Span
from exhibit.rag.splitters import Splitter, choose_variant
from exhibit.rag.splitters import split as split_sections


def open(argument: str | None) -> Splitter:
    return choose_variant("rcts", argument, split)


def split(text: str, *, sections: Sequence[Span] = (), **how: Any) -> list[Span]:  # noqa: ARG001 - called like others
    """Return spans of at most `size` characters, cut at the coarsest separator that occurs."""
    return split_sections(text, **how)
