"""A results folder, read back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.records import read_json
from schemas.bundle import read_lines
from schemas.errors import ToolkitError
from schemas.parsing import parse_json

ROWS = "eval_results.jsonl"
_SECRET = re.compile(r"(?:^|[_.-])(?:api_?key|token|secret|password|authorization)$", re.IGNORECASE)

Record = dict[str, Any]


@dataclass(frozen=True)
class DatasetRun:
    """What a run left of one dataset; what is missing is empty."""

    name: str
    rows: list[Record]
    summary: Record = field(default_factory=dict)
    ingestion: Record = field(default_factory=dict)
    breakdown: Record = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """How many questions have an error for a reply."""
        return sum(bool(row["reply"].get("error")) for row in self.rows)


@dataclass(frozen=True)
class Run:
    """What a run left."""

    name: str
    config: Record
    summary: Record
    datasets: list[DatasetRun]

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(len(dataset.rows) for dataset in self.datasets)


def read_run(folder: Path, names: Iterable[str]) -> Run:
    """Return the results of the datasets named; raise an error that names every one without results."""
    names = list(names)
    missing = [name for name in names if not (folder / name / ROWS).is_file()]
    if missing:
        raise ToolkitError("\n".join(f"{folder / name / ROWS}: missing; run evaluate_rag.py first" for name in missing))
    return Run(
        folder.resolve().name,
        _object(folder / "config.json"),
        _object(folder / "summary.json"),
        [_dataset(folder / name, name) for name in names],
    )


def settings(config: Record, *, under: str = "") -> Iterator[tuple[str, str]]:
    """Yield what was asked for as names and values, nested names joined by dots, secrets and blanks left out."""
    for key, value in config.items():
        name = f"{under}{key}"
        if _SECRET.search(name) or value is None or value in ("", [], {}):
            continue
        if isinstance(value, dict):
            yield from settings(value, under=f"{name}.")
        elif isinstance(value, list):
            yield name, ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value)
        else:
            yield name, value if isinstance(value, str) else json.dumps(value)


def _dataset(folder: Path, name: str) -> DatasetRun:
    rows = []
    for number, line in enumerate(read_lines(folder / ROWS), 1):
        rows.append(parse_json(line, where=f"{folder / ROWS}: line {number}", error=ToolkitError))
    parts = (_object(folder / f"{part}.json") for part in ("summary", "ingestion", "breakdown"))
    return DatasetRun(name, rows, *parts)


def _object(path: Path) -> Record:
    """Return a JSON object, an empty one where there is no file."""
    return read_json(path) if path.is_file() else {}
