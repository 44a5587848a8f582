"""Replies on disk as they come, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evaluation.cases import Case, Passage, Reply
from evaluation.documents import Documents
from evidence import Span
from schemas.errors import BundleError

Id = int | str


def told_place(passage: Passage) -> dict[str, Any]:
    """Return where the system itself says that a passage stands; nothing where it does not."""
    told = {"told_page": passage.told_page, "told_box": passage.told_box, "told_size": passage.told_size}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in told.items() if value is not None
    }


class Journal:
    """Append-only: one line a reply, written whole; a line that a kill cut short is as if it had not been."""

    def __init__(self, path: Path, documents: Documents, *, texts: bool) -> None:
        """Open a journal; without `texts` passages are kept by their place, and read from the documents again."""
        self._path = path
        self._documents = documents
        self._texts = texts

    def read(self, cases: Sequence[Case]) -> dict[Id, Reply]:
        """Return the replies there are; refuse those to other questions than these."""
        if not self._path.is_file():
            return {}
        self._mend()
        questions = {case.id: case.question for case in cases}
        replies: dict[Id, Reply] = {}
        for line in self._path.read_bytes().split(b"\n"):
            if not line:
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BundleError(f"{self._path}: damaged: {error}; start a new run") from error
            if questions.get(row["id"]) != row["question"]:
                raise BundleError(
                    f"{self._path}: has a reply to {row['id']!r}, which this dataset does not ask so; "
                    "it changed since: start a new run"
                )
            replies[row["id"]] = self._reply(row["reply"])
        return replies

    @contextmanager
    def appending(self) -> Iterator[Appender]:
        """Yield what adds replies; each is on disk before the next is asked for."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            yield Appender(file, texts=self._texts)

    def clear(self) -> None:
        """Forget all replies."""
        self._path.unlink(missing_ok=True)

    def _mend(self) -> None:
        """Cut off what follows the last whole line."""
        data = self._path.read_bytes()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            os.truncate(self._path, end)

    def _reply(self, told: dict[str, Any]) -> Reply:
        passages = tuple(self._passage(passage) for passage in told.pop("passages"))
        return Reply(**told, passages=passages)

    def _passage(self, told: dict[str, Any]) -> Passage:
        span = Span(*told["span"]) if told["span"] else None
        text = told.get("text")
        if text is None:
            document = self._documents.get(told["filename"])
            if document is None or span is None:
                raise BundleError(f"{self._path}: {told['filename']} is no longer in the corpus; start a new run")
            text = document.text[span.start : span.end]
        box, size = (tuple(told[key]) if told.get(key) else None for key in ("told_box", "told_size"))
        page = told.get("told_page")
        return Passage(text, told["filename"], span, told["score"], told["page"], page, told_box=box, told_size=size)


class Appender:
    """Adds replies to a journal."""

    def __init__(self, file: IO[bytes], *, texts: bool) -> None:
        self._file = file
        self._texts = texts

    def add(self, case: Case, reply: Reply) -> None:
        """Hand one reply to the file system."""
        row = {"id": case.id, "question": case.question, "reply": self._row(reply)}
        # ASCII: a lone surrogate from a damaged PDF cannot be written in UTF-8
        self._file.write(json.dumps(row).encode("ascii") + b"\n")
        self._file.flush()

    def _row(self, reply: Reply) -> dict[str, Any]:
        return {
            "answer": reply.answer,
            "passages": [self._passage(passage) for passage in reply.passages],
            "selected": reply.selected,
            "seconds": reply.seconds,
            "error": reply.error,
            "usage": reply.usage,
            "first_token": reply.first_token,
            "confidence": reply.confidence,
        }

    def _passage(self, passage: Passage) -> dict[str, Any]:
        row = {
            "filename": passage.filename,
            "span": list(passage.span) if passage.span else None,
            "page": passage.page,
            "score": passage.score,
        } | told_place(passage)
        return row if not self._texts and passage.span else {**row, "text": passage.text}
