"""What the list shows as a file: CSV, JSON Lines or Parquet, a row at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.place import whole
from exhibit.viewer.cases import brief, fields_of, labels_of
from exhibit.viewer.drawing import Record
from exhibit.viewer.matching import Matching

_BATCH = 2000  # rows written at a time: a matter of memory
_FORMULA = tuple("=+-@\t\r")


def records(runs: Sequence[RunFolder]) -> Iterator[Record]:
    """Yield the questions of a run, or of several side by side, as the page lists them."""
    matching = Matching(runs)
    for _ in matching.scan():
        pass  # the order is known when all are seen
    facets = [{"error": "kind_of_error"}.get(facet.name, facet.name) for facet in matching.facets()]
    for number, run in enumerate(runs, 1):
        facets = [f"verdict: {run.name}" if name == f"verdict-{number}" else name for name in facets]
    names = [*facets, *fields_of([run.name for run in runs])]
    for sides in matching:
        told = dict(zip(names, [*matching.values(sides), *brief(sides)], strict=True))
        yield {**told, "labels": labels_of(next(filter(None, sides)))}


def only(rows: Iterable[Record], wanted: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records whose fields, or labels, have the values asked for."""
    for row in rows:
        if all(str(row.get(name, row["labels"].get(name))) == value for name, value in wanted.items()):
            yield row


def write_table(rows: Iterable[Record], path: Path) -> int:
    """Write records in the format that the file's ending names, and return how many there are."""
    writers: dict[str, Callable[[Iterable[Record], Path], int]] = {
        ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet,
    }  # fmt: skip
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ToolkitError(f"{path}: no such format; end its name in {', '.join(writers)}")
    with whole(path) as partial:
        return writer(rows, partial)


def _jsonl(rows: Iterable[Record], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for count, row in enumerate(rows, 1):  # noqa: B007  (the last number is the number of rows)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def _csv(rows: Iterable[Record], path: Path) -> int:
    count = 0
    # with a mark at its beginning, as spreadsheets take other files for their own encoding
    with path.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.writer(file)
        for count, row in enumerate(rows, 1):
            if count == 1:
                writer.writerow(row)
            writer.writerow(_plain(value) for value in row.values())
    return count


def _plain(value: Any) -> Any:
    """Return a cell: what a spreadsheet would take for a formula has an apostrophe in front."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _parquet(rows: Iterable[Record], path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    given, count = iter(rows), 0
    first = list(islice(given, 1))
    kinds = [(name, pa.float64() if name.startswith("found") else pa.string()) for row in first for name in row]
    given = chain(first, given)
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        while batch := list(islice(given, _BATCH)):
            columns = {name: [_cell(name, row[name]) for row in batch] for name, _ in kinds}
            writer.write_table(pa.table(columns, schema=pa.schema(kinds)))
            count += len(batch)
    return count


def _cell(name: str, value: Any) -> Any:
    if name.startswith("found"):
        return value
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return text.encode("utf-8", "replace").decode("utf-8")
