"""Parquet files with typed columns: the questions, and the gold with its locations and labels."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exhibit.hub.exports import Export
from exhibit.hub.tables import GOLD, QUESTIONS, make_gold_records, make_gold_schema

_SPANS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))
_PLACES = {"pages": pa.list_(pa.int32()), "spans": _SPANS, "alternatives": pa.list_(_SPANS)}
_COLUMNS = {**GOLD, "context": pa.int32(), **_PLACES}


def write(export: Export, folder: Path) -> None:
    """Write the tables of questions and of gold, with their rows in the bundle's order."""
    rows, lines = export.bundle.questions, export.bundle.gold
    numbers = all(isinstance(row.id, int) for row in rows)
    questions = QUESTIONS if numbers else QUESTIONS.set(0, pa.field("id", pa.string()))
    records = [
        {**vars(row), "id": row.id if numbers else str(row.id), "contexts": list(map(vars, row.contexts))}
        for row in rows
    ]
    _write(records, questions, folder / "questions.parquet")
    _write(list(map(_record, make_gold_records(lines))), make_gold_schema(lines, _COLUMNS), folder / "gold.parquet")


def _record(line: dict[str, Any]) -> dict[str, Any]:
    return {
        **line,
        "spans": _make_spans(line["spans"]),
        "alternatives": [_make_spans(place) for place in line["alternatives"]],
    }


def _make_spans(spans: Iterable[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"start": start, "end": end} for start, end in spans]


def _write(records: list[dict[str, Any]], schema: Any, path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(records, schema=schema), path, compression="zstd")
