"""The journal of a run: the replies of a system, one per line, read back one at a time."""

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
"""Validates and serialises replies."""
Id = int | str
TextOf = Callable[[str], str | None]
"""Returns the text of a document by its file name; None where there is no such document."""


class JournalEntry(NamedTuple):
    """The position of a reply in the journal: its question, the offset of its line, and whether it is an error."""

    id: Id
    at: int
    failed: bool


class Journal:
    """An append-only file with one reply per line."""

    def __init__(self, path: Path, text_of: TextOf, *, texts: bool) -> None:
        """Open a journal."""
        self._path, self._text_of, self._texts = path, text_of, texts

    def scan(self, questions: Mapping[Id, str]) -> Iterator[JournalEntry]:
        """Yield the stored replies in order; a later reply to the same question replaces an earlier one."""
        if not self._path.is_file():
            return
        at = 0
        with self._path.open("rb+") as file:
            for line in iter(file.readline, b""):
                if not line.endswith(b"\n"):
                    file.truncate(at)
                    return
                row = self._parse_row(line)
                if questions.get(row["id"]) != row["question"]:
                    raise BundleError(
                        f"{self._path}: has a reply to {row['id']!r}, but the dataset has changed and no longer asks "
                        "this question; start a new run"
                    )
                yield JournalEntry(row["id"], at, bool(row["reply"]["error"]))
                at += len(line)

    def _parse_row(self, line: bytes) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BundleError(f"{self._path}: damaged: {error}; start a new run") from error
        return row

    def read(self, at: int) -> Reply:
        """Return the reply whose line begins at an offset."""
        with self._path.open("rb") as file:
            file.seek(at)
            reply = REPLY.validate_python(self._parse_row(file.readline())["reply"])
        before = reply.retrieved and tuple(map(self._restore_text, reply.retrieved))
        return replace(reply, passages=tuple(map(self._restore_text, reply.passages)), retrieved=before)

    def _restore_text(self, passage: Passage) -> Passage:
        if self._texts or passage.span is None or passage.text:
            return passage
        whole = self._text_of(passage.filename or "")
        if whole is None:
            raise BundleError(f"{self._path}: {passage.filename} is no longer in the corpus; start a new run")
        return replace(passage, text=whole[passage.span.start : passage.span.end])

    def add(self, case: Case, reply: Reply) -> int:
        """Write a reply to disk at once, and return the offset of its line."""
        if not self._texts:
            before = reply.retrieved and _strip_texts(reply.retrieved)
            reply = replace(reply, passages=_strip_texts(reply.passages), retrieved=before)
        fields = {"error": reply.error, **REPLY.dump_python(reply, exclude_defaults=True)}
        # ASCII: a lone surrogate from a damaged PDF cannot be encoded as UTF-8
        row = json.dumps({"id": case.id, "question": case.question, "reply": fields})
        with self._path.open("ab") as file:
            at = file.tell()
            file.write(row.encode("ascii") + b"\n")
        return at


def _strip_texts(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    return tuple(replace(one, text="") if one.span else one for one in passages)
