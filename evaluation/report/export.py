"""What the list shows as a file: CSV, JSON Lines or Parquet, a row at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from exhibit.evaluation.report import comparison
from exhibit.evaluation.report.questions import FIELDS, brief, error_kind, labels_of
from exhibit.evaluation.report.run import Record, Rows
from exhibit.evaluation.report.sources import dataset_names
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.whole import whole

_BATCH = 2000  # rows written at a time: a matter of memory
_NUMBERS = ("found", "found_before", "found_after")
_FORMULA = tuple("=+-@\t\r")


def report_records(folder: Path) -> Iterator[Record]:
    """Yield a run's questions as the report lists them, in the order of the files."""
    for name, row in Rows(folder, dataset_names(folder)).scan():
        told = dict(zip(FIELDS, brief(row), strict=True))
        told["error"] = row["reply"].get("error") or ""
        kinds = {"dataset": name, "verdict": row["verdict"], "kind_of_error": error_kind(row)}
        yield {**kinds, **told, "labels": labels_of(row)}


def comparison_records(before: Path, after: Path) -> Iterator[Record]:
    """Yield the questions of two runs as the comparison lists them, those that changed for the worse first."""
    first, second = (Rows(folder, dataset_names(folder)) for folder in (before, after))
    pairs = comparison.pair_rows(first, second, lambda *_: None)
    names = ["change", "dataset", "before", "after", "kind_of_error"]
    for pair, (one, other) in zip(pairs, comparison.read_pairs(first, second, pairs), strict=True):
        values, fields = comparison.line_of(pair.dataset, one, other, pair.change)
        told = dict(zip([*names, *comparison.FIELDS], [*values, *fields], strict=True))
        yield {**told, "labels": labels_of(one or other or {})}


def only(records: Iterable[Record], wanted: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records whose fields, or labels, have the values asked for."""
    for record in records:
        if all(str(record.get(name, record["labels"].get(name))) == value for name, value in wanted.items()):
            yield record


def write_table(records: Iterable[Record], path: Path) -> int:
    """Write records in the format that the file's ending names, and return how many there are."""
    writers: dict[str, Callable[[Iterable[Record], Path], int]] = {
        ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet,
    }  # fmt: skip
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ToolkitError(f"{path}: no such format; end its name in {', '.join(writers)}")
    with whole(path) as partial:
        return writer(records, partial)


def _jsonl(records: Iterable[Record], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            count += 1
    return count


def _csv(records: Iterable[Record], path: Path) -> int:
    count = 0
    # with a mark at its beginning, as spreadsheets take other files for their own encoding
    with path.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.writer(file)
        for record in records:
            if not count:
                writer.writerow(record)
            writer.writerow(_plain(value) for value in record.values())
            count += 1
    return count


def _plain(value: Any) -> Any:
    """Return a cell: what a spreadsheet would take for a formula has an apostrophe in front."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _parquet(records: Iterable[Record], path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, count, writer = iter(records), 0, None
    try:
        while batch := list(islice(rows, _BATCH)):
            kinds = {name: pa.float64() if name in _NUMBERS else pa.string() for name in batch[0]}
            columns = {name: [_cell(name, record[name]) for record in batch] for name in kinds}
            table = pa.table(columns, schema=pa.schema(list(kinds.items())))
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            count += len(batch)
        if writer is None:
            pq.write_table(pa.table({}), path)
    finally:
        if writer is not None:
            writer.close()
    return count


def _cell(name: str, value: Any) -> Any:
    if name in _NUMBERS:
        return value
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return text.encode("utf-8", "replace").decode("utf-8")
