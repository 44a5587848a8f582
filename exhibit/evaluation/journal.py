"""The journal of a run: the replies of a system, one a line, read back one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.schemas.errors import BundleError

JOURNAL = "journal.jsonl"
REPLY = TypeAdapter(Reply)
"""Reads and writes replies."""
Id = int | str
TextOf = Callable[[str], str | None]
"""The text of a document by the name of its file, None where there is none."""


class JournalEntry(NamedTuple):
    """A reply in the journal: whose, where its line begins, and whether it is an error."""

    id: Id
    at: int
    failed: bool


class Journal:
    """Append-only: one line a reply, written whole; a line that a kill cut short is as if it had not been."""

    def __init__(self, path: Path, text_of: TextOf, *, texts: bool) -> None:
        """Open a journal; without `texts` passages are kept by their place, and their words read from the documents."""
        self._path, self._text_of, self._texts = path, text_of, texts

    def scan(self, questions: Mapping[Id, str]) -> Iterator[JournalEntry]:
        """Yield the replies there are in order, the later of two counts; refuse those to other questions than these."""
        if not self._path.is_file():
            return
        at = 0
        with self._path.open("rb+") as file:
            for line in iter(file.readline, b""):
                if not line.endswith(b"\n"):
                    file.truncate(at)
                    return
                row = self._row(line)
                if questions.get(row["id"]) != row["question"]:
                    raise BundleError(
                        f"{self._path}: has a reply to {row['id']!r}, which this dataset does not ask so; "
                        "it changed since: start a new run"
                    )
                yield JournalEntry(row["id"], at, bool(row["reply"]["error"]))
                at += len(line)

    def _row(self, line: bytes) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BundleError(f"{self._path}: damaged: {error}; start a new run") from error
        return row

    def read(self, at: int) -> Reply:
        """Return the reply whose line begins at a place."""
        with self._path.open("rb") as file:
            file.seek(at)
            reply = REPLY.validate_python(self._row(file.readline())["reply"])
        before = reply.retrieved and tuple(map(self._with_text, reply.retrieved))
        return replace(reply, passages=tuple(map(self._with_text, reply.passages)), retrieved=before)

    def _with_text(self, passage: Passage) -> Passage:
        if self._texts or passage.span is None or passage.text:
            return passage
        whole = self._text_of(passage.filename or "")
        if whole is None:
            raise BundleError(f"{self._path}: {passage.filename} is no longer in the corpus; start a new run")
        return replace(passage, text=whole[passage.span.start : passage.span.end])

    def add(self, case: Case, reply: Reply) -> int:
        """Add a reply, which is on disk before the next is asked for, and return where its line begins."""
        if not self._texts:
            before = reply.retrieved and _without_texts(reply.retrieved)
            reply = replace(reply, passages=_without_texts(reply.passages), retrieved=before)
        fields = {"error": reply.error, **REPLY.dump_python(reply, exclude_defaults=True)}
        # ASCII: a lone surrogate from a damaged PDF cannot be written in UTF-8
        row = json.dumps({"id": case.id, "question": case.question, "reply": fields})
        with self._path.open("ab") as file:
            at = file.tell()
            file.write(row.encode("ascii") + b"\n")
        return at


def _without_texts(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    return tuple(replace(one, text="") if one.span else one for one in passages)
