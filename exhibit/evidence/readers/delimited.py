"""CSV and TSV files, read as a table."""

import csv
import io
from pathlib import Path

from exhibit.evidence.markup import Printable, format_grid
from exhibit.evidence.readers.text import decode_file

SUFFIXES = (".csv", ".tsv")
KIND = "table of text"

_DELIMITERS = ",;\t|"


def page(path: Path) -> Printable:
    decoded = decode_file(path)
    text = decoded.text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(_DELIMITERS, key=first.count)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return Printable(format_grid(rows), decoded.notes)
