"""Replies from a file: `predictions:FILE`, JSON, JSONL or CSV, one object or row per question.

{"id": 7, "dataset": "cuad", "question": "…", "answer": "…", "passages": ["…", {"filename": "…", "text": "…"}]}

A reply is matched to its question by dataset and id, or by the text of the question, and read by known keys
(`evaluation.replies`).
"""

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from exhibit.converters import Tally
from exhibit.converters.tables.records import read_records
from exhibit.evaluation import replies
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, count_only
from exhibit.schemas.bundle import INFO, read_text
from exhibit.schemas.errors import ToolkitError

_MIN_COPIED = 3  # least rows of a file that is refused because all are the expected answers
_MIN_CONTAINED_WORDS = 4  # least words of a question that is searched in prompts; a shorter one may be part of another

Row = Mapping[str, Any]


def open(argument: str | None, options: TargetOptions) -> "Predictions":
    if not argument:
        raise ToolkitError("--target predictions needs a file: --target predictions:FILE")
    return Predictions(Path(argument), options)


class Predictions:
    """A target whose replies are the rows of a file; a question without a row counts as failed, not as wrong."""

    exact = False
    kind = "predictions"
    prompts = False  # whether the question of a row may be a prompt that contains the question of the bundle

    def __init__(self, path: Path, options: TargetOptions) -> None:
        self.name = f"{self.kind}:{path.name}"
        self._path, self._options = path, options
        self._rows: Sequence[Row] = self._read()

    def _read(self) -> Sequence[Row]:
        """Return the rows; raise an error if no row is a reply, or if two rows have the same id."""
        path, rows = self._path, read_rows(self._path)
        if not any(row.get("error") or (parts := replies.find_parts(row)).answer or parts.passages for row in rows):
            form = replies.describe(rows[0]) if rows else "no rows"
            right = 'a row must be like {"id" or "question", "answer", "passages": […]}'
            raise ToolkitError(f"{path}: not recognised as replies: {form}; {right}")
        numbers: dict[Any, int] = {}
        for number, row in enumerate(rows, 1):
            key = row.get("dataset"), id_of(row), question_of(row)
            if key[1] is not None and (first := numbers.setdefault(key, number)) != number:
                raise ToolkitError(f"{path}: rows {first} and {number} both answer {key[1]!r}; remove one of them")
        return rows

    def match(self, dataset: Dataset) -> dict[int | str, int]:
        return match_rows(self._rows, dataset.cases, dataset.name, prompts=self.prompts)

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Return notes on the file; raise an error if no row answers a question, or one of another version."""
        where = f"{self._path.name}: "
        sealed = {row["sealed"] for row in self._rows if row.get("sealed")}
        if sealed and dataset.digests.get(INFO) not in sealed:
            advice = f"export the questions again: exhibit export {dataset.root} --to questions"
            raise ToolkitError(f"{where}answers the questions of another version of {dataset.name}; {advice}")
        matched = self.match(dataset)
        rows = [(case, self._rows[matched[case.id]]) for case in cases if case.id in matched]
        if not rows:
            first = f"question {cases[0].id!r} ({cases[0].question:.80}); is the file for another bundle?"
            raise ToolkitError(f"{where}no row answers a question of {dataset.name}, such as {first}")
        if len(rows) >= _MIN_COPIED and all(_is_copied(case, row) for case, row in rows):
            fault = f"contains the questions of {dataset.name} with the expected answers"
            raise ToolkitError(f"{where}{fault}; give a file with the system's replies")
        notes = [f"{where}{replies.describe_parts(rows[0][1])}"]
        if left := len(cases) - len(rows):
            notes.append(f"{where}{left} of {len(cases)} questions of {dataset.name} have no row: they count as failed")
        return notes

    def ingest(self, dataset: Dataset) -> Ingestion:
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        matched = self.match(dataset)
        for position, case in enumerate(cases):
            reply = Reply(error=f"no prediction in {self._path.name}")
            if case.id in matched:
                reply = replies.read_reply(self._rows[matched[case.id]], dataset.documents.named)
                reply = replace(reply, error=reply.error and f"{self._path.name}: {reply.error}")
            yield NumberedReply(position, reply)


def _is_copied(case: Case, row: Row) -> bool:
    """Return whether a row only repeats the expected answer and the texts of the gold passages."""
    contexts = row.get("contexts")
    if row.get("answer") != case.truth or "passages" in row or not isinstance(contexts, list):
        return False
    texts = [context.get("text") for context in contexts if isinstance(context, Mapping)]
    return bool(texts) and texts == [gold.text for gold in case.gold]


def match_rows(
    rows: Sequence[Row], cases: Sequence[Case], dataset: str, *, prompts: bool = False
) -> dict[int | str, int]:
    """Return the number of the row that matches each question, by the question's id.

    A row is matched by id, else by the text of its question; rows that name the dataset come first. A text that occurs
    twice is an error. With `prompts`, a row's text is a prompt, which matches the longest question that it contains;
    the first matching row is used, and a repeated question has no match.
    """
    ids = {str(case.id): case for case in cases}
    texts = Counter(normalise_question(case.question) for case in cases)
    by_text = {normalise_question(case.question): case for case in cases}
    long = [text for text in texts if len(text.split()) >= _MIN_CONTAINED_WORDS] if prompts else []
    long.sort(key=len, reverse=True)
    numbers = [number for number, row in enumerate(rows) if row.get("dataset") in (dataset, None)]
    numbers.sort(key=lambda number: rows[number].get("dataset") is None)
    matched: dict[int | str, int] = {}
    for number in numbers:
        case = ids.get(id_of(rows[number]) or "")
        if case is not None and question_of(rows[number]) in (None, normalise_question(case.question)):
            matched.setdefault(case.id, number)
    by_id = set(matched)
    for number in numbers:
        text = question_of(rows[number]) or ""
        if text not in texts:
            text = next((question for question in long if question in text), "")
        case = by_text.get(text)
        if case is None or case.id in by_id:
            continue
        if texts[text] == 1 and case.id not in matched:
            matched[case.id] = number
        elif not prompts:
            fault = f"a question occurs twice ({text:.80}), and the rows do not have the ids of train.json"
            raise ToolkitError(f"{fault}; add these ids")
    return matched


def question_of(row: Row) -> str | None:
    question = replies.find_text(replies.NAMES["question"], row)
    return None if question is None else normalise_question(question)


def id_of(row: Row) -> str | None:
    id = replies.first_of(row, "id")
    return str(id) if isinstance(id, str | int) else None


def normalise_question(question: str) -> str:
    return " ".join(question.split()).casefold()


def read_rows(path: Path) -> list[dict[str, Any]]:
    rows = read_table(path)
    for number, row in enumerate(rows):
        if id_of(row) is None and question_of(row) is None:
            raise ToolkitError(f"{path}: row {number} has neither an id nor a question; add one of them")
    return rows


def read_table(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a table in JSON, JSONL, CSV or Parquet; cells of a CSV with lists or objects are parsed."""
    data = b"" if path.suffix.lower() == ".parquet" else read_text(path).encode("utf-8", "surrogatepass")
    rows = [record.cells for record in read_records(path, data, Tally(strict=True), accounted=False)]
    if path.suffix.lower() not in (".csv", ".tsv"):
        return rows
    return [{key: _parse_cell(cell) for key, cell in row.items() if cell} for row in rows]


def _parse_cell(text: str) -> Any:
    """Return the list or object that a cell has in JSON or Python, else the text."""
    if text.lstrip().startswith(("[", "{")):
        for parse in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = parse(text)
                # "[1]" is a citation of an answer
                passages = isinstance(value, dict) or all(isinstance(item, str | dict) for item in value)
                return value if passages else text
    return text
