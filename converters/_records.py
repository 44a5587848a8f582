"""Tables as records: JSONL, JSON, CSV, TSV and Parquet read alike, with the place of each record for the report."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from converters._benchmark import Tally
from schemas.errors import SourceError

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

_DELIMITERS = ",;\t|"
_WRAPPED = re.compile(r'"(?:[^"]|"")*"')
_LONGEST_CELL = 1 << 30


@dataclass(frozen=True)
class Record:
    """A row of a table: its index among all rows, its place in words, its cells by column."""

    index: int
    place: str
    cells: dict[str, Any]


def read_records(path: Path, data: bytes, tally: Tally) -> list[Record]:
    """Return the rows of a table; a row that cannot be read is counted, a table that cannot is an error."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return list(_numbered(_parquet(path, data)))
    text = decode_table(path, data)
    if suffix in (".jsonl", ".ndjson"):
        return list(_lines(path, text, tally))
    if suffix == ".json":
        return list(_numbered(_json(path, text)))
    return list(_rows(path, text, tally))


def columns_of(records: list[Record]) -> list[str]:
    """Return the names of all columns, in order of first appearance."""
    return list(dict.fromkeys(name for record in records for name in record.cells))


def decode_table(path: Path, data: bytes) -> str:
    """Return a table's text without its BOM; anything but UTF-8 is an error that names the place."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8 and try again") from error


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
    header = [name.strip() for name in header]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: two columns named {twice!r}; rename one")
    for index, record in enumerate(record for record in records if record):
        place = f"row {index + 1}"
        if len(record) > len(header):
            tally.fault("row with more cells than the header", f"{path.name}: {place}")
            continue
        cells = dict.fromkeys(header, "") | dict(zip(header, record, strict=False))
        yield Record(index, place, {name: cell for name, cell in cells.items() if name})


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
            tally.fault("line is not JSON", f"{path.name}: {place}: {error}")
        else:
            if isinstance(cells, dict):
                yield Record(index, place, cells)
            else:
                tally.fault("line is not a JSON object", f"{path.name}: {place}")
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
            found = ", ".join(lists) or "none"
            raise SourceError(f"{path}: expected a list of objects, or an object with one such list; lists: {found}")
        (data,) = lists.values()
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise SourceError(f"{path}: expected a list of objects, one per question")
    return data


def _parquet(path: Path, data: bytes) -> list[Any]:
    import pyarrow  # it takes a third of a second, and tables are seldom Parquet
    from pyarrow import parquet

    try:
        rows: list[Any] = parquet.read_table(pyarrow.BufferReader(data)).to_pylist()
    except pyarrow.ArrowException as error:
        raise SourceError(f"{path}: not a Parquet file, or damaged: {error}") from error
    return rows


def _numbered(rows: list[Any]) -> Iterator[Record]:
    for index, cells in enumerate(rows):
        yield Record(index, f"row {index + 1}", cells)
