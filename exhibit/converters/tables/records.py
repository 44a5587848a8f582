"""Reads tables as records (JSONL, JSON, YAML, CSV, TSV, Excel, Parquet), and the cells of their rows."""

import ast
import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from exhibit.converters import Item, Tally
from exhibit.converters.core.source import parse_csv
from exhibit.engine import run_in_worker
from exhibit.engine.limits import limit_reading
from exhibit.evidence.fields import FIELDS, choose_name, flatten_object, name_key
from exhibit.evidence.files import decode_bytes
from exhibit.evidence.readers.excel import SUFFIXES as EXCEL
from exhibit.evidence.readers.excel import open_workbook
from exhibit.schemas.errors import DocumentError, SourceError


def list_cell_values(cell: Any) -> list[Any]:
    """Return the non-blank values of a cell, which may be a list, a list written as text, or a single value."""
    if isinstance(cell, str) and cell.strip()[:1] in "[{" and cell.strip()[-1:] in "]}":
        cell = _parse_text(cell.strip())
    if isinstance(cell, dict) and isinstance(cell.get("text"), list):
        cell = cell["text"]  # SQuAD's answers: {"text": […], "answer_start": […]}
    return [item for item in (cell if isinstance(cell, list | tuple) else [cell]) if read_cell_words(item)]


def _parse_text(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = parse(text)
            if isinstance(value, list | dict):
                return value
    return text


def read_cell_words(cell: Any) -> str:
    """Return a cell as text, without white space at its edges; missing values are empty."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # a column of integers with missing cells is read as floats
    return str(cell).strip()


def read_cell_field(value: Any, role: str) -> str:
    """Return an object's field for a role, such as `document`, under any of its common names; else the value itself."""
    if not isinstance(value, Mapping):
        return read_cell_words(value)
    fields = flatten_object(value)
    name = choose_name((name for name, held in fields.items() if read_cell_words(held)), role)
    return read_cell_words(fields[name]) if name is not None else ""


ENDINGS = (".jsonl", ".ndjson", ".json", ".yaml", ".yml", ".csv", ".tsv", ".xlsx", ".xlsm", ".parquet")
# most missing cells: each becomes an empty text, so that a small file could fill the memory
MAX_MISSING_CELLS = 10_000_000
MAX_HEADER_ROW = 20  # most rows above a header: a title, a date, a few notes

_ASSERTED = {
    name_key(kind): role
    for role in ("must-contain", "must-not-contain", "answer", "impossible")
    for kind in FIELDS[f"assert-{role}"]
}
_WRAPPED = re.compile(r'"(?:[^"]|"")*"')
# libyaml also reads `{question: How long is the notice?}`, which the loader in Python refuses
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Numbered = tuple[int, list[Any]]  # a row with its spreadsheet number, from 1, which counts header and empty rows


@dataclass(frozen=True)
class Record:
    """A row of a table: its index among all rows, its position for messages, such as `row 7`, and its cells."""

    index: int
    place: str
    cells: dict[str, Any]

    @property
    def item(self) -> Item:
        return Item("rows", self.place)


def read_records(path: Path, data: bytes, tally: Tally, *, accounted: bool = True) -> list[Record]:
    """Return the rows of a table; count unreadable rows, and with `accounted` the others, to be kept or left out."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        records = _number_rows(_read_unpacked(read_parquet, path))
    elif suffix in EXCEL:
        records = list(_read_workbook(path, tally))
    else:
        decoded = decode_bytes(data)
        if decoded is None:
            raise SourceError(f"{path}: no text in any known encoding; save it as UTF-8 and try again")
        if decoded.encoding != "utf-8":
            tally.note("table is not UTF-8", f"{path.name}: read as {decoded.encoding}")
        text = decoded.text.removeprefix("\ufeff")
        if suffix in (".jsonl", ".ndjson"):
            records = list(_read_lines(path, text, tally))
        elif suffix in (".json", ".yaml", ".yml"):
            records = _number_rows(_read_json(path, text))
        else:
            records = list(_read_delimited(path, text, tally))
    if accounted:
        tally.take(record.item for record in records)
    return records


def open_record(record: Record, tally: Tally) -> Record:
    """Return a row with nested objects (`vars`, `inputs`) and assertions (promptfoo's `assert`) turned into columns."""
    cells = flatten_object(record.cells, inside="wrapper")
    column = choose_name(cells, "assertions") or ""
    checks = list_cell_values(cells.get(column))
    if not checks or not all(isinstance(check, Mapping) and "type" in check for check in checks):
        return replace(record, cells=cells)
    del cells[column]
    asserted: dict[str, list[Any]] = defaultdict(list)
    for check in checks:
        kind, values = str(check["type"]), list_cell_values(check.get("value"))
        role = _ASSERTED.get(name_key(kind))
        if role is None:
            tally.note("assertion of a type that is not read", f"{record.place}: {kind}")
        elif role == "must-contain" and kind.endswith("any"):
            asserted[role].append(values)  # a nested list: one of these texts is enough
        else:
            asserted[role] += [True] if role == "impossible" else values
    for role, values in asserted.items():
        cells.setdefault(FIELDS[role][0], values if role.startswith("must") else values[0] if values else "")
    return replace(record, cells=cells)


def columns_of(records: Sequence[Record]) -> list[str]:
    """Return the names of all columns, in order of first appearance."""
    return list(dict.fromkeys(name for record in records for name in record.cells))


def _read_delimited(path: Path, text: str, tally: Tally) -> Iterator[Record]:
    def measure(mark: str) -> tuple[int, int]:
        # choose the delimiter that gives rows of equal length: semicolons inside answers do not
        widths = Counter(len(row) for row in split_cells(text, mark) if len(row) > 1)
        return max(((count, width) for width, count in widths.items()), default=(0, 0))

    try:
        # in many countries spreadsheets write semicolons, and a .csv file may contain tabs
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=measure)
        rows = split_cells(text, delimiter)
    except csv.Error as error:
        raise SourceError(f"{path}: not a valid CSV or TSV table: {error}; save it again as CSV") from error
    yield from _cut(path, _keep_filled_rows(rows), tally)


def split_cells(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of a delimited text; tab-separated cells may be quoted as in CSV, or not at all."""
    quoted = parse_csv(text, delimiter=delimiter)
    if delimiter != "\t" or '"' not in text:
        return quoted
    plain = parse_csv(text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    # a program that quotes cells quotes every cell with a quotation mark, so one bare mark shows that no cell is quoted
    wrapped = all(_WRAPPED.fullmatch(cell) for record in plain for cell in record if '"' in cell)
    widths, plain_widths = ({len(record) for record in records if record} for records in (quoted, plain))
    return quoted if wrapped or len(widths) == 1 < len(plain_widths) else plain


def _keep_filled_rows(rows: Iterable[Sequence[Any]]) -> list[Numbered]:
    filled = []
    for number, row in enumerate(rows, 1):
        cells = list(row)
        while cells and not read_cell_words(cells[-1]):
            cells.pop()
        if cells:
            filled.append((number, cells))
    return filled


def _find_header(rows: Sequence[Numbered]) -> int:
    """Return the index of the header: the first row with more than half the cells of a typical row."""
    widths = [len({str(cell) for cell in cells if read_cell_words(cell)}) for _, cells in rows]
    usual = sorted(widths)[len(widths) // 2] if widths else 0
    wide = (at for at, width in enumerate(widths[:MAX_HEADER_ROW]) if width >= min(2, usual) and 2 * width > usual)
    return next(wide, 0)


def _cut(path: Path, rows: list[Numbered], tally: Tally) -> Iterator[Record]:
    at = _find_header(rows)
    for number, cells in rows[:at]:
        words = " ".join(filter(None, map(read_cell_words, cells)))
        tally.note("row above the header of the table", f"{path.name}: row {number}: {words[:80]}")
    header = [read_cell_words(cell) for cell in (rows[at][1] if rows else [])]
    twice = next((name for name, times in Counter(header).items() if name and times > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: two columns named {twice!r} in row {rows[at][0]}; rename one")
    missing = sum(max(0, len(header) - len(row)) for _, row in rows[at + 1 :])
    if missing > MAX_MISSING_CELLS:
        where = f"{path}: row {rows[at][0]}"
        raise SourceError(f"{where} has {len(header)} columns, but rows below lack {missing} cells; is it a header?")
    for index, (number, row) in enumerate(rows[at + 1 :]):
        by_name = dict.fromkeys(header, "") | dict(zip(header, row, strict=False))
        record = Record(index, f"row {number}", {name: cell for name, cell in by_name.items() if name})
        if len(row) > len(header):
            tally.fault("row with more cells than the header", f"{path.name}: {record.place}", item=record.item)
        else:
            yield record


def _read_unpacked(read: Callable[[Path], Any], path: Path) -> Any:
    """Read a compressed table in a worker, because a small file may decompress to a very large table."""
    try:
        return run_in_worker(read, path)
    except DocumentError as error:
        raise SourceError(str(error)) from error


def _read_workbook(path: Path, tally: Tally) -> Iterator[Record]:
    """Yield the rows of the first sheet with a table; a cover sheet has no table."""
    sheets: dict[str, list[Numbered]] = _read_unpacked(_read_sheets, path)
    if not sheets:
        raise SourceError(f"{path}: no rows in any sheet; is it the right file?")
    tabular = [title for title, rows in sheets.items() if len(rows[_find_header(rows)][1]) > 1 and len(rows) > 1]
    chosen = [*tabular, *sheets][0]
    for title in sheets.keys() - {chosen}:
        tally.note("sheet of the workbook that was not read", f"{path.name}: {title}")
    yield from _cut(path, sheets[chosen], tally)


def _read_sheets(path: Path) -> dict[str, list[Numbered]]:
    with limit_reading(str(path), path.stat().st_size), open_workbook(path, merged=True) as book:
        sheets = {sheet.title: _keep_filled_rows(_unmerge_cells(sheet)) for sheet in book.worksheets}
    return {title: rows for title, rows in sheets.items() if rows}


def _unmerge_cells(sheet: Any) -> list[list[Any]]:
    """Return the rows of a sheet; vertically merged cells all have the value of the first cell."""
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    for area in sheet.merged_cells.ranges:
        for row in range(area.min_row, min(area.max_row, len(rows))):
            rows[row][area.min_col - 1] = rows[area.min_row - 1][area.min_col - 1]
    return rows


def _read_lines(path: Path, text: str, tally: Tally) -> Iterator[Record]:
    # not `splitlines`, which would split at U+2028 inside JSON
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    for index, (number, line) in enumerate(lines):
        record, problem = Record(index, f"line {number}", {}), ""
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError) as error:
            cells, problem = None, f": {error}"
        if isinstance(cells, dict):
            yield replace(record, cells=cells)
        else:
            reason = "line is not JSON, or not an object"
            tally.fault(reason, f"{path.name}: {record.place}{problem}", item=record.item)


def _read_json(path: Path, text: str) -> list[Any]:
    """Return the rows of a JSON or YAML file; raise SourceError if it contains no list of objects."""
    try:
        data = json.loads(text) if path.suffix.lower() == ".json" else _DatelessLoader(text).get_single_data()
    except yaml.YAMLError as error:
        raise SourceError(f"{path}: not YAML: {' '.join(str(error).split())[:200]}; correct this file") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: not JSON: {error}; name it .jsonl if it has one object per line") from error
    rows = _find_rows(data)
    if rows is None:
        raise SourceError(f"{path}: expected a list of objects, one per question, or an object with one such list")
    return rows


class _DatelessLoader(_SafeLoader):  # type: ignore[misc]
    """A loader that keeps dates as text: 2024-05-01 may be an answer."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, form) for tag, form in forms if tag != "tag:yaml.org,2002:timestamp"]
        for first, forms in _SafeLoader.yaml_implicit_resolvers.items()
    }


def _find_rows(data: Any, depth: int = 3) -> list[Any] | None:
    """Return the rows: a list of objects, columns of equal length or objects by id, at the top or under a key."""
    if isinstance(data, list):
        return data if all(isinstance(item, dict) for item in data) else None
    if not isinstance(data, dict) or not depth:
        return None
    for key in (name for name in FIELDS["rows"] if name in data):
        rows = _find_rows(data[key], depth - 1)
        if rows is not None:
            return rows
    columns = [value for value in data.values() if isinstance(value, list)]
    if len(columns) > 1 and columns[0] and len(columns) == len(data) and len({len(column) for column in columns}) == 1:
        return [dict(zip(data, cells, strict=True)) for cells in zip(*columns, strict=True)]
    if len(data) > 1 and all(isinstance(value, dict) for value in data.values()):
        return [{"id": key, **value} for key, value in data.items()]  # {"q1": {…}, "q2": {…}}
    return _find_rows(columns[0]) if len(columns) == 1 else None


def _number_rows(rows: list[Any]) -> list[Record]:
    return [Record(index, f"row {index + 1}", cells) for index, cells in enumerate(rows)]


def read_parquet(path: Path) -> list[Any]:
    """Return the rows of a Parquet file; called in a worker."""
    import pyarrow  # import here: it takes 0.3 s, and tables are rarely Parquet
    from pyarrow import parquet

    try:
        with limit_reading(str(path), path.stat().st_size):
            table = parquet.ParquetFile(path, pre_buffer=False)
            return [row for batch in table.iter_batches(batch_size=64, use_threads=False) for row in batch.to_pylist()]
    except pyarrow.ArrowMemoryError as error:
        raise MemoryError(str(error)) from error
    except pyarrow.ArrowException as error:
        raise DocumentError(f"{path}: not a Parquet file, or damaged: {error}; write it again") from error
