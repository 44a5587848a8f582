"""Parquet with real types: the questions, and the gold with its places and labels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exhibit.hub.exports import Export


def write(export: Export, folder: Path) -> None:
    """Write both tables; rows in the bundle's order."""
    _write(_questions(export), folder / "questions.parquet")
    _write(_gold(export), folder / "gold.parquet")


def _questions(export: Export) -> Any:
    rows = export.bundle.questions
    numbers = all(isinstance(row.id, int) for row in rows)
    context = pa.struct([("filename", pa.string()), ("text", pa.string())])
    return pa.table(
        {
            "id": pa.array(
                [row.id if numbers else str(row.id) for row in rows], pa.int64() if numbers else pa.string()
            ),
            "question": pa.array([row.question for row in rows], pa.string()),
            "answer": pa.array([row.answer for row in rows], pa.string()),
            "is_impossible": pa.array([row.is_impossible for row in rows], pa.bool_()),
            "contexts": pa.array([[vars(c) for c in row.contexts] for row in rows], pa.list_(context)),
        }
    )


def _gold(export: Export) -> Any:
    lines = export.bundle.gold
    spans = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))
    columns = {
        "id": pa.array([line.id for line in lines], pa.int64()),
        "context": pa.array([line.context for line in lines], pa.int32()),
        "filename": pa.array([line.filename for line in lines], pa.string()),
        "pages": pa.array([line.pages for line in lines], pa.list_(pa.int32())),
        "spans": pa.array([_spans(line.spans) for line in lines], spans),
        "alternatives": pa.array([[_spans(place) for place in line.alternatives] for line in lines], pa.list_(spans)),
        "how": pa.array([line.how for line in lines], pa.string()),
        "score": pa.array([line.score for line in lines], pa.float64()),
    }
    names = dict.fromkeys(name for line in lines for name in line.labels)
    if names:  # a struct without fields cannot be stored
        columns["labels"] = pa.StructArray.from_arrays(
            [_label([line.labels.get(name) for line in lines]) for name in names], names=list(names)
        )
    return pa.table(columns)


def _spans(spans: Iterable[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"start": start, "end": end} for start, end in spans]


def _label(values: list[str | int | float | bool | None]) -> Any:
    """Return a label's values in the narrowest type that holds them all."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([value if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if value is None else str(value) for value in values], pa.string())


def _write(table: Any, path: Path) -> None:
    pq.write_table(table, path, compression="zstd")
