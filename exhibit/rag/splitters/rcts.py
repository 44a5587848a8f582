"""Recursive character splitting with exact offsets: the chunks' spans cover the text. Sections are ignored."""

from collections.abc import Sequence
from typing import Any

from exhibit.evidence import Span
from exhibit.rag.splitters import Splitter
from exhibit.rag.splitters.sections import choose_variant
from exhibit.rag.splitters.sections import split as split_sections


def open(argument: str | None) -> Splitter:
    """Return the splitter; with the argument `sentences` it cuts at punctuation only before a space.

    So a number such as `10,000` stays whole, and a full stop stays with its sentence.
    """
    return choose_variant("rcts", argument, split)


def split(text: str, *, sections: Sequence[Span] = (), **how: Any) -> list[Span]:  # noqa: ARG001 - called like others
    """Split a text into spans of at most `size` characters; `sections` is ignored.

    Spans are cut at the coarsest separator that occurs: paragraph breaks come before line breaks, and line
    breaks before punctuation.
    """
    return split_sections(text, **how)
