"""Recursive character splitting with exact offsets that never crosses the boundary of a section."""

from exhibit.rag.splitters import Splitter, open_variant


def open(argument: str | None) -> Splitter:
    return open_variant("sections", argument)
