"""Recursive character splitting with exact offsets: the chunks' spans cover the text. Sections are ignored."""

from exhibit.rag.splitters import Splitter, open_variant


def open(argument: str | None) -> Splitter:
    return open_variant("rcts", argument, within_sections=False)
