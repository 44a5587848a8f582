"""Text files that are printed as HTML: CSV and TSV as a table, and Markdown without its markup."""

import csv
import io
from pathlib import Path

from exhibit.evidence.readers.html import Printable, cut_fragment, format_grid
from exhibit.evidence.readers.text import decode_file

_TABLES = (".csv", ".tsv")
SUFFIXES = (*_TABLES, ".md", ".markdown")

_DELIMITERS = ",;\t|"


def page(path: Path) -> Printable:
    decoded = decode_file(path)
    text, ending = decoded.text.removeprefix("\ufeff"), path.suffix.lower()
    if ending in _TABLES:
        first = text.partition("\n")[0]
        delimiter = "\t" if ending == ".tsv" else max(_DELIMITERS, key=first.count)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return Printable(format_grid(rows), decoded.notes)
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return Printable(cut_fragment(markdown.render(text)), decoded.notes)
