"""Replies that a system gave elsewhere: `predictions:FILE`, JSON or JSONL, one object a question.

{"id": 7, "dataset": "cuad", "question": "…", "answer": "…", "passages": ["…", {"filename": "…", "text": "…"}]}

A reply is found by its dataset and id, or by its question. The `eval_results.jsonl` of a run and the predictions of
`score.py` are read as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.cases import Case, Reply
from evaluation.datasets import Dataset
from evaluation.targets import Asked, Ingestion, TargetOptions, count_only
from evaluation.targets._passages import Names, PassagesError, read_number, read_passages
from schemas.bundle import read_text
from schemas.errors import ToolkitError

_QUESTION = ("question", "query")
_PASSAGES = ("passages", "retrieved_passages", "contexts", "context")


def open(argument: str | None, options: TargetOptions) -> Predictions:
    """Return the replies of a file."""
    if not argument:
        raise ToolkitError("--target predictions needs a file: predictions:FILE")
    return Predictions(Path(argument), options)


class Predictions:
    """Replies by question; a question without one is a failure, not a wrong answer."""

    exact = False

    def __init__(self, path: Path, options: TargetOptions) -> None:
        self.name = f"predictions:{path.name}"
        self._path = path
        self._options = options
        self._rows: dict[tuple[str | None, str | None, str | None], dict[str, Any]] = {}
        """Replies by dataset, id and question, of which some may not be told."""
        for row in _rows(path):
            told = [_plain(row[key]) for key in _QUESTION if isinstance(row.get(key), str)]
            question, id = next(iter(told), None), str(row["id"]) if "id" in row else None
            self._rows.setdefault((row.get("dataset"), id, question), row)
            if question is not None:  # ids of another numbering: the question tells
                self._rows.setdefault((row.get("dataset"), None, question), row)

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Say what the corpus is; nothing is read for the replies."""
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[Asked]:
        """Yield the replies in order."""
        for position, case in enumerate(cases):
            row = self._find(dataset.name, case)
            reply = Reply(error=f"no prediction in {self._path.name}")
            yield Asked(position, reply if row is None else self._reply(row, dataset.documents.named))

    def _find(self, dataset: str, case: Case) -> dict[str, Any] | None:
        id, question = str(case.id), _plain(case.question)
        for named in (dataset, None):
            for key in ((named, id, question), (named, id, None), (named, None, question)):
                if key in self._rows:
                    return self._rows[key]
        return None

    def _reply(self, row: dict[str, Any], names: Names) -> Reply:
        told = row["reply"] if isinstance(row.get("reply"), dict) else row
        if told.get("error"):
            return Reply(error=str(told["error"]))
        answer = told.get("answer")
        try:
            passages = read_passages(next((told[key] for key in _PASSAGES if key in told), None), names=names)
        except PassagesError as error:
            return Reply(error=f"{self._path.name}: {error}")
        selected, seconds = told.get("selected"), told.get("seconds")
        return Reply(
            answer=answer if isinstance(answer, str) else None,
            passages=passages,
            selected=selected if isinstance(selected, int) and not isinstance(selected, bool) else None,
            seconds=read_number(seconds),
            confidence=read_number(told.get("confidence")),
        )


def _plain(question: str) -> str:
    return " ".join(question.split())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    text = read_text(path).removeprefix("\ufeff")
    try:
        rows = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(n) for n in text.split("\n") if n.strip()]
        )
    except ValueError as error:
        raise ToolkitError(f"{path}: neither JSON nor JSONL: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ToolkitError(f"{path}: must be a list of objects, or one object a line")
    bad = [n for n, row in enumerate(rows) if "id" not in row and not any(key in row for key in _QUESTION)]
    if bad:
        raise ToolkitError(f"{path}: row {bad[0]} has neither an id nor a question: which question is it for?")
    yield from rows
