"""Recursive character splitting that never crosses the boundary of a section; all offsets are exact."""

from exhibit.rag.splitters import Splitter, open_variant


def open(argument: str | None) -> Splitter:
    return open_variant("sections", argument)
