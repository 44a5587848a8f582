"""Replies on disk as they come: a run that was stopped goes on where it was, and none needs to stay in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evidence import Span
from exhibit.schemas.errors import BundleError

Id = int | str
TextOf = Callable[[str], str | None]
"""The text of a document by the name of its file, None where there is none."""

_BLOCK = 1 << 16
"""Bytes that are read at once from the end, to find the last whole line."""


class Kept(NamedTuple):
    """A reply in the journal: whose, where its line begins, and whether it is an error."""

    id: Id
    at: int
    failed: bool


def told_place(passage: Passage) -> dict[str, Any]:
    """Return where the system itself says that a passage stands; nothing where it does not."""
    told = {
        "told_page": passage.told_page,
        "told_box": passage.told_box,
        "told_size": passage.told_size,
        "told_filename": passage.told_filename if passage.told_filename != passage.filename else None,
    }
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in told.items() if value is not None
    }


class Journal:
    """Append-only: one line a reply, written whole; a line that a kill cut short is as if it had not been."""

    def __init__(self, path: Path, text_of: TextOf, *, texts: bool) -> None:
        """Open a journal; without `texts` passages are kept by their place, and their words read from the documents."""
        self._path = path
        self._text_of = text_of
        self._texts = texts

    # ---------------------------------------------------------------- reading

    def scan(self, questions: Mapping[Id, str]) -> Iterator[Kept]:
        """Yield the replies there are in order, the later of two counts; refuse those to other questions than these."""
        if not self._path.is_file():
            return
        self._mend()
        at = 0
        with self._path.open("rb") as file:
            for line in file:
                row = self._row(line)
                if questions.get(row["id"]) != row["question"]:
                    raise BundleError(
                        f"{self._path}: has a reply to {row['id']!r}, which this dataset does not ask so; "
                        "it changed since: start a new run"
                    )
                yield Kept(row["id"], at, bool(row["reply"]["error"]))
                at += len(line)

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], Reply]]:
        """Yield what returns the reply whose line begins at a place."""
        with self._path.open("rb") as file:

            def read(at: int) -> Reply:
                file.seek(at)
                return self._reply(self._row(file.readline())["reply"])

            yield read

    def _row(self, line: bytes) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BundleError(f"{self._path}: damaged: {error}; start a new run") from error
        return row

    def _mend(self) -> None:
        """Cut off what follows the last whole line."""
        with self._path.open("rb") as file:
            size = end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _BLOCK)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    end = start + newline + 1
                    break
                end = start
        if end < size:
            os.truncate(self._path, end)

    def _reply(self, told: dict[str, Any]) -> Reply:
        passages = tuple(self._passage(passage) for passage in told.pop("passages"))
        context = told.pop("context", None)
        return Reply(**told, passages=passages, context=None if context is None else tuple(context))

    def _passage(self, told: dict[str, Any]) -> Passage:
        span = Span(*told["span"]) if told["span"] else None
        text = told.get("text")
        if text is None:
            whole = self._text_of(told["filename"])
            if whole is None or span is None:
                raise BundleError(f"{self._path}: {told['filename']} is no longer in the corpus; start a new run")
            text = whole[span.start : span.end]
        box, size = (tuple(told[key]) if told.get(key) else None for key in ("told_box", "told_size"))
        page = told.get("told_page")
        return Passage(
            text, told["filename"], span, told["score"], told["page"], page,
            told_box=box, told_size=size, told_filename=told.get("told_filename"),
        )  # fmt: skip

    # ---------------------------------------------------------------- writing

    @contextmanager
    def appending(self) -> Iterator[Appender]:
        """Yield what adds replies; each is on disk before the next is asked for."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            yield Appender(file, texts=self._texts)


class Appender:
    """Adds replies to a journal."""

    def __init__(self, file: IO[bytes], *, texts: bool) -> None:
        self._file = file
        self._texts = texts
        self._end = file.seek(0, os.SEEK_END)

    def add(self, case: Case, reply: Reply) -> int:
        """Hand one reply to the file system and return where its line begins."""
        row = {"id": case.id, "question": case.question, "reply": self._row(reply)}
        # ASCII: a lone surrogate from a damaged PDF cannot be written in UTF-8
        line = json.dumps(row).encode("ascii") + b"\n"
        self._file.write(line)
        self._file.flush()
        self._end += len(line)
        return self._end - len(line)

    def _row(self, reply: Reply) -> dict[str, Any]:
        return {
            "answer": reply.answer,
            "passages": [self._passage(passage) for passage in reply.passages],
            "selected": reply.selected,
            **({} if reply.context is None else {"context": list(reply.context)}),
            "seconds": reply.seconds,
            "error": reply.error,
            "usage": reply.usage,
            "first_token": reply.first_token,
            "confidence": reply.confidence,
        }

    def _passage(self, passage: Passage) -> dict[str, Any]:
        row: dict[str, Any] = {
            "filename": passage.filename,
            "span": passage.span,
            "page": passage.page,
            "score": passage.score,
            **told_place(passage),
        }
        if self._texts or not passage.span:
            row["text"] = passage.text
        return row
