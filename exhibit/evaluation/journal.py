"""The journal of a run: the replies to a dataset's questions, one per line, read back one at a time.

A question is asked only if the journal has no reply to it or only a failed reply.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from exhibit.engine import track
from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.datasets import Dataset, Id
from exhibit.evaluation.targets import Target
from exhibit.schemas.errors import BundleError
from exhibit.schemas.parsing import parse_json

JOURNAL = "journal.jsonl"
REPLY = TypeAdapter(Reply)


class Journal:
    """The replies of a round, in which each question is asked once; only the replies' offsets are in memory."""

    def __init__(self, place: Path, dataset: Dataset, target: Target, number: int = 1) -> None:
        self._path = place / (JOURNAL if number == 1 else JOURNAL.replace(".", f"-{number}."))
        self._dataset, self._target = dataset, target
        self._offsets: dict[Id, int] = {}
        self.failed: dict[Id, bool] = {}  # for each question with a reply, whether its last reply is an error
        self._answered = False
        if self._path.is_file():
            self._read_offsets()

    def _read_offsets(self) -> None:
        questions = {case.id: case.question for case in self._dataset.cases}
        at = 0
        with self._path.open("rb+") as file:
            for line in iter(file.readline, b""):
                if not line.endswith(b"\n"):  # the run was stopped while it wrote this line
                    file.truncate(at)
                    return
                row = parse_json(line, where=self._path)
                if questions.get(row["id"]) != row["question"]:
                    fault = f"has a reply to {row['id']!r}, but the dataset has changed and no longer has this question"
                    raise BundleError(f"{self._path}: {fault}; start a new run")
                self._note(row["id"], at, row["reply"])
                at += len(line)

    def _note(self, id: Id, at: int, reply: Mapping[str, Any]) -> None:
        self._offsets[id], self.failed[id] = at, bool(reply["error"])
        self._answered |= reply.get("answer") is not None

    def ask(self) -> "Journal":
        """Ask each question that has no successful reply, and write each reply to disk at once."""
        left = list_left_to_ask(self._dataset, self.failed)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replies = self._target.ask(self._dataset, left)
        for position, reply in track(replies, total=len(left), label=f"{self._dataset.name}: ask", unit="question"):
            if self._target.exact:
                reply = _change_passages(reply, lambda passage: replace(passage, text="") if passage.span else passage)
            case, fields = left[position], {"error": reply.error, **REPLY.dump_python(reply, exclude_defaults=True)}
            # ASCII: a lone surrogate from a damaged PDF cannot be encoded as UTF-8
            row = json.dumps({"id": case.id, "question": case.question, "reply": fields})
            with self._path.open("ab") as file:
                self._note(case.id, file.tell(), fields)
                file.write(row.encode("ascii") + b"\n")
        return self

    def has_answers(self) -> bool:
        """Return whether any reply has an answer, even an empty one; also True if every question failed."""
        return self._answered or all(self.failed.values())

    def __iter__(self) -> Iterator[Case]:
        for case in self._dataset.cases:
            if case.id in self._dataset.refused:
                yield replace(case, reply=Reply(error=self._dataset.refused[case.id]))
                continue
            with self._path.open("rb") as file:
                file.seek(self._offsets[case.id])
                reply = REPLY.validate_python(parse_json(file.readline(), where=self._path)["reply"])
            place = partial(self._dataset.documents.place, golds=case.gold)
            yield replace(case, reply=_change_passages(reply, self._restore_text if self._target.exact else place))

    def _restore_text(self, passage: Passage) -> Passage:
        if passage.span is None or passage.text:
            return passage
        text = text_of(self._dataset, self._target)(passage.filename or "")
        if text is None:
            raise BundleError(f"{self._path}: {passage.filename} is no longer in the corpus; start a new run")
        return replace(passage, text=text[passage.span.start : passage.span.end])


def _change_passages(reply: Reply, change: Callable[[Passage], Passage]) -> Reply:
    before = reply.retrieved and tuple(map(change, reply.retrieved))
    return replace(reply, passages=tuple(map(change, reply.passages)), retrieved=before)


def text_of(dataset: Dataset, target: Target) -> Callable[[str], str | None]:
    """Return a function that maps a file name to the document's text, as the target extracts it."""
    return getattr(target, "text", None) or dataset.documents.read_text


def list_left_to_ask(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases that still have to be asked: first the cases without a reply, then the cases that failed."""
    left = [case for case in dataset.cases if case.id not in dataset.refused and failed.get(case.id, True)]
    return sorted(left, key=lambda case: case.id in failed)


def to_probe(dataset: Dataset, failed: Mapping[Id, bool]) -> list[Case]:
    """Return the cases left to ask, for a probe: those without a reply, else cases with an answer, else the failed."""
    left = list_left_to_ask(dataset, failed)
    new = [case for case in left if case.id not in failed]
    return new or [case for case in dataset.cases if left and failed.get(case.id) is False] or left
