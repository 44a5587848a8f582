"""A results folder, read back: what a run left in brief, and its rows on disk, one at a time."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from exhibit.evaluation.records import read_json
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_json
from exhibit.schemas.secrets import is_secret_setting

ROWS = "eval_results.jsonl"

Record = dict[str, Any]


@dataclass(frozen=True)
class DatasetRun:
    """What a run left of one dataset, but for its rows; what is missing is empty."""

    name: str
    summary: Record = field(default_factory=dict)
    ingestion: Record = field(default_factory=dict)
    breakdown: Record = field(default_factory=dict)
    confidence: Record = field(default_factory=dict)
    evidence: Record = field(default_factory=dict)
    verdicts: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    errors: Counter[bool] = field(default_factory=Counter)

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return self.errors.total()

    @property
    def failed(self) -> int:
        """How many questions have an error for a reply."""
        return self.errors[True]


@dataclass(frozen=True)
class RecordedRun:
    """What a run left."""

    name: str
    config: Record
    summary: Record
    datasets: list[DatasetRun]
    seconds: array[float] = field(default_factory=lambda: array("d"), repr=False)
    """How long each reply took."""

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(dataset.questions for dataset in self.datasets)


class Rows:
    """The rows of a run where they are, on disk: only their places are held."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """Name the datasets; raise an error that names every one without results."""
        self.names = list(names)
        self._paths = [folder / name / ROWS for name in self.names]
        if not self._paths:
            raise ToolkitError(f"{folder}: no {ROWS} in a folder of it; is this a run of evaluate_rag.py?")
        missing = [path for path in self._paths if not path.is_file()]
        if missing:
            raise ToolkitError("\n".join(f"{path}: missing; run evaluate_rag.py first" for path in missing))
        self._datasets = array("H")
        self._offsets = array("Q")

    def __len__(self) -> int:
        """Return how many have been passed by `scan`."""
        return len(self._offsets)

    def scan(self) -> Iterator[tuple[str, Record]]:
        """Yield every row with its dataset, in the order of the files, and remember where each is."""
        for dataset, path in enumerate(self._paths):
            with path.open("rb") as file:
                offset = 0
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield self.names[dataset], _parsed(line, f"{path}: line {number}")
                        self._datasets.append(dataset)
                        self._offsets.append(offset)
                    offset += len(line)

    def read(self, numbers: Sequence[int]) -> Iterator[tuple[str, Record]]:
        """Yield some rows with their datasets, by their numbers in the order of `scan`."""
        with ExitStack() as stack:
            files: list[BinaryIO] = [stack.enter_context(path.open("rb")) for path in self._paths]
            for number in numbers:
                dataset = self._datasets[number]
                files[dataset].seek(self._offsets[number])
                line = files[dataset].readline()
                yield self.names[dataset], _parsed(line, f"{self._paths[dataset]}: byte {self._offsets[number]}")


def read_run(folder: Path, names: Iterable[str]) -> RecordedRun:
    """Return what the datasets named left, without their rows: `tally` counts those."""
    return RecordedRun(
        folder.resolve().name,
        _object(folder / "config.json"),
        _object(folder / "summary.json"),
        [_dataset(folder / name, name) for name in names],
    )


def tally(run: RecordedRun, dataset: DatasetRun, row: Record) -> None:
    """Count a row."""
    dataset.verdicts[row["verdict"]] += 1
    dataset.errors[bool(row["reply"].get("error"))] += 1
    if row.get("stage"):
        dataset.stages[row["stage"]] += 1
    if row["reply"].get("seconds") is not None:
        run.seconds.append(row["reply"]["seconds"])


def settings(config: Record, *, under: str = "") -> Iterator[tuple[str, str]]:
    """Yield what was asked for as names and values, nested names joined by dots, secrets and blanks left out."""
    for key, value in config.items():
        name = f"{under}{key}"
        if is_secret_setting(name) or value is None or value in ("", [], {}):
            continue
        if isinstance(value, dict):
            yield from settings(value, under=f"{name}.")
        elif isinstance(value, list):
            yield name, ", ".join(item if isinstance(item, str) else json.dumps(item) for item in value)
        else:
            yield name, value if isinstance(value, str) else json.dumps(value)


def _dataset(folder: Path, name: str) -> DatasetRun:
    parts = ("summary", "ingestion", "breakdown", "confidence", "evidence")
    return DatasetRun(name, **{part: _object(folder / f"{part}.json") for part in parts})  # type: ignore[arg-type]


def _parsed(line: bytes, where: str) -> Record:
    row = parse_json(line, where=where, error=ToolkitError)
    if not isinstance(row, dict) or not isinstance(row.get("reply"), dict) or "verdict" not in row:
        raise ToolkitError(f"{where}: no row of an evaluation; run evaluate_rag.py again")
    return row


def _object(path: Path) -> Record:
    """Return a JSON object, an empty one where there is no file."""
    return read_json(path) if path.is_file() else {}
