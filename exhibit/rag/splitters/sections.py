"""Recursive character splitting with exact offsets that never crosses the boundary of a section."""

from exhibit.rag.splitters import Splitter, choose_variant, split


def open(argument: str | None) -> Splitter:
    return choose_variant("sections", argument, split)
