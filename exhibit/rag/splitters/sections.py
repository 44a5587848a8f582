"""Recursive character splitting with exact offsets that never crosses the boundary of a section."""

from exhibit.rag.splitters import Splitter, choose_variant, split


def open(argument: str | None) -> Splitter:
    """Return the splitter; with `sentences` it cuts at punctuation only before a space."""
    return choose_variant("sections", argument, split)
