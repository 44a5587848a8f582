"""Rows of a file with replies: JSON, an object a line, CSV, and what other tools wrap them in."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError

_QUESTION = ("question", "query", "user_input", "input")
_ID = ("id", "query_id", "question_id")


def question_of(row: Mapping[str, Any]) -> str | None:
    """Return the question that a row is for, if it says."""
    return next((plain_question(row[key]) for key in _QUESTION if isinstance(row.get(key), str)), None)


def id_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of the question that a row is for, if it says."""
    return next((str(row[key]) for key in _ID if isinstance(row.get(key), str | int) and row[key] != ""), None)


def plain_question(question: str) -> str:
    """Return a question as it is compared."""
    return " ".join(question.split())


class Lines(Sequence[dict[str, Any]]):
    """An object a line: where each begins is known, and it is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = array("q")
        self.sound = True
        """Whether there are several objects, each on its line and for a question; else the file is something else."""
        at = 0
        with path.open("rb") as file:
            for line in file:
                if line.strip():
                    self._starts.append(at)
                    self.sound = self.sound and self._is_row(line)
                at += len(line)
        self.sound = self.sound and len(self._starts) > 1

    def _is_row(self, line: bytes) -> bool:
        try:
            row = _parse(line)
        except (ValueError, RecursionError):
            return False
        return isinstance(row, dict) and not _for_no_question(row)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        with self._path.open("rb") as file:
            file.seek(self._starts[place])
            return _with_nvidia_passages(_parse(file.readline()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as file:
            yield from (_with_nvidia_passages(_parse(line)) for line in file if line.strip())


def _parse(line: bytes) -> Any:
    return json.loads(line.decode("utf-8").removeprefix("\ufeff"))


def read_rows(path: Path) -> Sequence[dict[str, Any]]:
    """Return the rows of a file; of one with an object a line only those stay in memory that are looked at."""
    if path.suffix.lower() == ".jsonl" and path.is_file():
        lines = Lines(path)
        if lines.sound:
            return lines
    return _whole(path)


def _whole(path: Path) -> list[dict[str, Any]]:
    text = read_text(path).removeprefix("\ufeff")
    rows = _csv(text) if path.suffix.lower() in (".csv", ".tsv") else _json(path, text)
    if isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], dict) and _for_no_question(rows[0]):
        rows = _inside(rows[0])  # {"samples": […]}, {"results": […]}, and columns as datasets write them
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ToolkitError(f"{path}: must be a list of objects, or one object a line")
    bad = [n for n, row in enumerate(rows) if _for_no_question(row)]
    if bad:
        raise ToolkitError(f"{path}: row {bad[0]} has neither an id nor a question: which question is it for?")
    return [_with_nvidia_passages(row) for row in rows]


def _for_no_question(row: Mapping[str, Any]) -> bool:
    return id_of(row) is None and question_of(row) is None


def _json(path: Path, text: str) -> Any:
    try:
        if text.lstrip().startswith("["):
            return json.loads(text)
        try:
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        except ValueError:
            return [json.loads(text)]
    except (ValueError, RecursionError) as error:
        raise ToolkitError(f"{path}: neither JSON nor JSONL: {error}") from error


def _csv(text: str) -> list[dict[str, Any]]:
    csv.field_size_limit(1 << 24)
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    return [{key: _cell(cell) for key, cell in row.items() if key and cell} for row in rows]


def _cell(text: str) -> Any:
    """Return what a cell means: passages written as JSON or as Python are a list of them, all else is text."""
    if text.lstrip().startswith(("[", "{")):
        for parse in (json.loads, ast.literal_eval):
            try:
                value = parse(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            # "[1]" is an answer's citation
            return value if isinstance(value, dict) or all(isinstance(one, str | dict) for one in value) else text
    return text


def _inside(content: Mapping[str, Any]) -> Any:
    lists = [value for value in content.values() if isinstance(value, list)]
    if len(lists) == len(content) > 1 and len({len(value) for value in lists}) == 1:
        return [dict(zip(content, row, strict=True)) for row in zip(*lists, strict=True)]
    objects = [value for value in lists if value and all(isinstance(row, dict) for row in value)]
    return objects[0] if objects else [content]


def _with_nvidia_passages(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of NVIDIA's results with its passages' words and names (`contract.pdf_3`: page 3) put together."""
    texts, names = row.get("generated_contexts"), row.get("retrieved_docs")
    if "generated_answer" not in row or not isinstance(texts, list) or not isinstance(names, list):
        return row
    if len(texts) != len(names):  # a passage without a description has a name and no words: which is which is unknown
        return row
    passages = []
    for text, name in zip(texts, names, strict=True):
        match = re.fullmatch(r"(.+)_(\d+)", str(name))
        place = {"filename": match[1], "page_number": int(match[2])} if match else {"filename": str(name)}
        passages.append({**place, "text": text})
    return {**row, "nvidia_passages": passages}
