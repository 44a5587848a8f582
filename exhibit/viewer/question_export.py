"""Writes the questions of runs as a table in CSV, JSON Lines or Parquet."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from exhibit.evaluation.runs import RunResults
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import replace_file
from exhibit.viewer.drawing import Record
from exhibit.viewer.listing import fields_of, labels_of, make_brief
from exhibit.viewer.matching import Matching

_BATCH = 2000  # rows written at a time, to save memory
_FORMULA = tuple("=+-@\t\r")


def make_records(runs: Sequence[RunResults]) -> Iterator[Record]:
    """Yield a record for each question, with its values in each run, in the order of the report's question list."""
    matching = Matching(runs)
    for _ in matching.scan():
        pass  # the order is known after all are read
    facets = [{"error": "kind_of_error", "lost": "lost_at"}.get(one.name, one.name) for one in matching.make_facets()]
    for number, run in enumerate(runs, 1):
        facets = [f"verdict: {run.name}" if name == f"verdict-{number}" else name for name in facets]
    names = [*facets, *fields_of([run.name for run in runs])]
    for sides in matching:
        fields = dict(zip(names, [*matching.values(sides), *make_brief(sides)], strict=True))
        yield {**fields, "labels": labels_of(next(filter(None, sides)))}


def filter_records(rows: Iterable[Record], wanted: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records whose fields or labels have the wanted values."""
    for row in rows:
        if all(str(row.get(name, row["labels"].get(name))) == value for name, value in wanted.items()):
            yield row


def write_table(rows: Iterable[Record], path: Path) -> int:
    """Write records as CSV, JSON Lines or Parquet, chosen by the file's extension; return the number of records."""
    writers: dict[str, Callable[[Iterable[Record], Path], None]] = {".csv": _write_csv, ".jsonl": _write_jsonl}
    writers |= {".parquet": _write_parquet}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ToolkitError(f"{path}: unknown format; use a name that ends in {', '.join(writers)}")
    number = count()
    with replace_file(path) as partial:
        writer((row for row, _ in zip(rows, number, strict=False)), partial)
    return next(number)


def _write_jsonl(rows: Iterable[Record], path: Path) -> None:
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_csv(rows: Iterable[Record], path: Path) -> None:
    # with a byte order mark, because spreadsheets otherwise assume another encoding
    with path.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.writer(file)
        for number, row in enumerate(rows):
            if not number:
                writer.writerow(row)
            writer.writerow(_protect_cell(value) for value in row.values())


def _protect_cell(value: Any) -> Any:
    """Return a CSV cell; a text that a spreadsheet would run as a formula gets a leading apostrophe."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _write_parquet(rows: Iterable[Record], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    given = iter(rows)
    first = list(islice(given, 1))
    kinds = [(name, pa.float64() if name.startswith("found") else pa.string()) for row in first for name in row]
    given = chain(first, given)
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        while batch := list(islice(given, _BATCH)):
            columns = {name: [_format_cell(name, row[name]) for row in batch] for name, _ in kinds}
            writer.write_table(pa.table(columns, schema=pa.schema(kinds)))


def _format_cell(name: str, value: Any) -> Any:
    if name.startswith("found"):
        return value
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return text.encode("utf-8", "replace").decode("utf-8")
