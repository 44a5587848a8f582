"""Recursive character splitting with exact offsets: the chunks' spans tile the text, whatever its sections are."""

from collections.abc import Sequence
from typing import Any

from exhibit.evidence import Span
from exhibit.rag.splitters import Splitter
from exhibit.rag.splitters.sections import choose_variant
from exhibit.rag.splitters.sections import split as split_sections


def open(argument: str | None) -> Splitter:
    """Return the splitter; `rcts:sentences` never cuts inside a number, and keeps a full stop with its sentence."""
    return choose_variant("rcts", argument, split)


def split(text: str, *, sections: Sequence[Span] = (), **how: Any) -> list[Span]:  # noqa: ARG001 - called like others
    """Return spans of at most `size` characters, cut at the coarsest separator that occurs."""
    return split_sections(text, **how)
