"""Tables as records: JSONL, JSON, CSV, TSV, Excel and Parquet read alike, each record with its place."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from exhibit.converters._benchmark import Item, Tally
from exhibit.converters._parquet import read_parquet
from exhibit.engine import guarded
from exhibit.engine.limits import reading
from exhibit.evidence.encodings import Decoded, decode_bytes
from exhibit.evidence.readers.excel import SUFFIXES as EXCEL
from exhibit.evidence.readers.excel import workbook
from exhibit.schemas.errors import DocumentError, SourceError

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".xlsx", ".xlsm", ".parquet")

_DELIMITERS = ",;\t|"
_WRAPPED = re.compile(r'"(?:[^"]|"")*"')
_LONGEST_CELL = 1 << 30  # characters: a whole contract, and a limit that csv needs
_MOST_MISSING = 20_000_000
"""Cells that all rows together may lack: each is kept as an empty one, and a few bytes could ask for a great many."""

Out = TypeVar("Out")


@dataclass(frozen=True)
class Record:
    """A row of a table: its index among all rows, its place in words, its cells by column."""

    index: int
    place: str
    cells: dict[str, Any]

    @property
    def item(self) -> Item:
        """What the account calls it."""
        return Item("rows", self.place)


def read_records(
    path: Path,
    data: bytes,
    tally: Tally,
    *,
    sheet: str | None = None,
    encoding: str | None = None,
    accounted: bool = True,
) -> list[Record]:
    """Return the rows of a table; a row that cannot be read is counted, a table that cannot is an error.

    `accounted` rows must each end up kept or left out; those of a release with several tables are counted otherwise.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        records = list(_numbered(_unpacked(read_parquet, path)))
    elif suffix in EXCEL:
        records = list(_sheet(path, sheet, tally))
    else:
        text = decode_table(path, data, tally, encoding=encoding)
        if suffix in (".jsonl", ".ndjson"):
            records = list(_lines(path, text, tally))
        elif suffix == ".json":
            records = list(_numbered(_json(path, text)))
        else:
            records = list(_rows(path, text, tally))
    if accounted:
        tally.take(record.item for record in records)
    return records


def columns_of(records: list[Record]) -> list[str]:
    """Return the names of all columns, in order of first appearance."""
    return list(dict.fromkeys(name for record in records for name in record.cells))


def decode_table(path: Path, data: bytes, tally: Tally, *, encoding: str | None = None) -> str:
    """Return a table's text without its BOM; an encoding that is not UTF-8 is found, and noted."""
    try:
        decoded = Decoded(data.decode(encoding), encoding) if encoding else decode_bytes(data)
    except (UnicodeDecodeError, LookupError) as error:
        raise SourceError(f"{path}: cannot be read as {encoding} ({error}); try another --encoding, or none") from error
    if decoded is None:
        raise SourceError(f"{path}: no text in any known encoding; save it as UTF-8 and try again")
    if decoded.encoding != "utf-8":
        tally.note("table is not UTF-8", f"{path.name}: read as {decoded.encoding}")
    return decoded.text.removeprefix("\ufeff")


def separated(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of a delimited text; tab-separated ones may be quoted as CSV is, or not at all."""
    quoted = _cells(text, delimiter, csv.QUOTE_MINIMAL)
    if delimiter != "\t" or '"' not in text:
        return quoted
    plain = _cells(text, delimiter, csv.QUOTE_NONE)
    # a program that quotes cells wraps all that hold a quotation mark; one bare mark shows that none are wrapped
    if all(_WRAPPED.fullmatch(cell) for record in plain for cell in record if '"' in cell):
        return quoted
    return quoted if _even(quoted) and not _even(plain) else plain


def _cells(text: str, delimiter: str, quoting: Any) -> list[list[str]]:
    usual = csv.field_size_limit(_LONGEST_CELL)  # a cell may hold a whole contract
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting))
    finally:
        csv.field_size_limit(usual)


def _even(records: list[list[str]]) -> bool:
    return len({len(record) for record in records if record}) == 1


def _rows(path: Path, text: str, tally: Tally) -> Iterator[Record]:
    first = text.partition("\n")[0]
    # spreadsheets of many countries write semicolons, and files called .csv may well hold tabs
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(_DELIMITERS, key=lambda mark: _width(first, mark))
    try:
        header, *records = separated(text, delimiter) or [[]]
    except csv.Error as error:
        raise SourceError(f"{path}: not a delimited table: {error}") from error
    yield from _cut(path, header, [record for record in records if record], tally)


def _cut(path: Path, header: list[str], records: list[list[Any]], tally: Tally) -> Iterator[Record]:
    """Yield the rows under a header by the names of their columns."""
    header = [name.strip() for name in header]
    twice = next((name for name, times in Counter(header).items() if name and times > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: two columns named {twice!r}; rename one")
    missing = sum(max(0, len(header) - len(record)) for record in records)
    if missing > _MOST_MISSING:
        raise SourceError(
            f"{path}: {len(header)} columns, and rows that lack {missing} cells; is the first row a header?"
        )
    for index, record in enumerate(records):
        place = f"row {index + 1}"
        if len(record) > len(header):
            line = f"{path.name}: {place}"
            tally.fault("row with more cells than the header", line, item=Item("rows", place))
            continue
        cells = dict.fromkeys(header, "") | dict(zip(header, record, strict=False))
        yield Record(index, place, {name: cell for name, cell in cells.items() if name})


def _unpacked(read: Callable[[Path], Out], path: Path) -> Out:
    """Return a packed table, unpacked in a worker: a few bytes of it may stand for a great many."""
    try:
        return guarded(read, path)
    except DocumentError as error:
        raise SourceError(str(error)) from error


def _sheet(path: Path, name: str | None, tally: Tally) -> Iterator[Record]:
    """Yield the rows of a workbook's sheet: the one that is named, else the first that has any."""
    tables, others = _unpacked(_Sheets(name), path)
    if name is not None and name not in tables:
        raise SourceError(f"{path}: no sheet {name!r}; there are {', '.join(others)}")
    filled = [title for title, rows in tables.items() if rows]
    if not filled:
        raise SourceError(f"{path}: no rows in {'that sheet' if name else 'any of its sheets'}")
    for title in (*filled[1:], *others):
        tally.note("sheet of the workbook that was not read (--sheet)", f"{path.name}: {title}")
    header, *rows = tables[filled[0]]
    yield from _cut(path, ["" if cell is None else str(cell) for cell in header], rows, tally)


@dataclass(frozen=True)
class _Sheets:
    """Reads the sheet of a name, or all; called in a worker."""

    name: str | None

    def __call__(self, path: Path) -> tuple[dict[str, list[list[Any]]], list[str]]:
        """Return the rows of each sheet that is read, and the names of the others."""
        with reading(str(path), path.stat().st_size), workbook(path) as book:
            wanted = [title for title in book.sheetnames if self.name in (None, title)]
            tables = {title: _filled(book[title]) for title in wanted}
            return tables, [title for title in book.sheetnames if title not in tables]


def _filled(sheet: Any) -> list[list[Any]]:
    """Return the rows of a sheet that have a cell with something in it, without the empty cells at their ends."""
    rows = []
    for row in sheet.iter_rows(values_only=True):
        cells = list(row)
        while cells and (cells[-1] is None or cells[-1] == ""):
            cells.pop()
        if cells:
            rows.append(cells)
    return rows


def _width(line: str, delimiter: str) -> int:
    return len(next(iter(separated(line, delimiter)), []))


def _lines(path: Path, text: str, tally: Tally) -> Iterator[Record]:
    index = 0
    # not splitlines: JSON may hold U+2028, which is no end of a line here
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError) as error:
            tally.fault("line is not JSON", f"{path.name}: {place}: {error}", item=Item("rows", place))
        else:
            if isinstance(cells, dict):
                yield Record(index, place, cells)
            else:
                line_name = f"{path.name}: {place}"
                tally.fault("line is not a JSON object", line_name, item=Item("rows", place))
        index += 1


def _json(path: Path, text: str) -> list[Any]:
    """Return the list of objects that a JSON file is, or holds as the only list in it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: not JSON: {error}; name it .jsonl if it has one object a line") from error
    if isinstance(data, dict):
        lists = {key: value for key, value in data.items() if isinstance(value, list)}
        if len(lists) != 1:
            listed = ", ".join(lists) or "none"
            raise SourceError(f"{path}: expected a list of objects, or an object with one such list; lists: {listed}")
        (data,) = lists.values()
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise SourceError(f"{path}: expected a list of objects, one per question")
    return data


def _numbered(rows: list[Any]) -> Iterator[Record]:
    for index, cells in enumerate(rows):
        yield Record(index, f"row {index + 1}", cells)
