"""Excel workbooks: each sheet as a table under its name; a formula is read as its last value."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from exhibit.engine.limits import PACKED
from exhibit.evidence.files import open_archive
from exhibit.evidence.readers.html import Printable, format_grid, format_paragraph

SUFFIXES = (".xlsx", ".xlsm")
KIND = "Excel workbook"
MEMORY = PACKED


def page(path: Path) -> Printable:
    with open_workbook(path) as book:
        sheets = [format_paragraph(sheet.title, "h2") + format_grid(_read_texts(sheet)) for sheet in book.worksheets]
        hidden = [sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"]
    return Printable("".join(sheets), tuple(f"the hidden sheet {title!r} is printed" for title in hidden))


@contextmanager
def open_workbook(path: Path, *, merged: bool = False) -> Iterator[Any]:
    import openpyxl

    with open_archive(path, KIND) as archive:
        yield openpyxl.load_workbook(archive.fp, read_only=not merged, data_only=True, keep_links=False)


def _read_texts(sheet: Any) -> Iterator[list[str]]:
    for row in sheet.iter_rows(values_only=True):
        cells = [format_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        yield cells


def format_cell(value: Any) -> str:
    """Return a cell's text: `4` for the number 4.0, and a date without the time of day if that is midnight."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)
