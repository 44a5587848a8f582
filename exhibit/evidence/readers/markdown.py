"""Markdown, rendered: the words without the markup."""

from pathlib import Path

from exhibit.evidence.markup import Printable, cut_fragment
from exhibit.evidence.readers.text import decode_file

SUFFIXES = (".md", ".markdown")
KIND = "Markdown"


def page(path: Path) -> Printable:
    from markdown_it import MarkdownIt

    decoded = decode_file(path)
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return Printable(cut_fragment(markdown.render(decoded.text.removeprefix("\ufeff"))), decoded.notes)
