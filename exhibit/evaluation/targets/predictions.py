"""Replies from a file: `predictions:FILE`, JSON, JSONL or CSV, one object or row per question.

{"id": 7, "dataset": "cuad", "question": "…", "answer": "…", "passages": ["…", {"filename": "…", "text": "…"}]}

A reply is matched to its question by dataset and id, or by the text of the question. Results of NVIDIA's blueprint,
LangChain, LlamaIndex, Haystack, ragas and evaltools, and runs of Exhibit itself, are read by their known keys
(`evaluation.replies`). A field with the expected answer is never read as a reply.
"""

import ast
import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from exhibit.converters.core.benchmark import Tally
from exhibit.converters.tables.records import read_records
from exhibit.evaluation import replies
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, count_only
from exhibit.schemas.bundle import INFO, read_text
from exhibit.schemas.errors import ToolkitError

_MIN_COPIED = 3
"""A file is taken for a copy of the bundle when at least this many answers, and all of them, are the expected ones."""


def open(argument: str | None, options: TargetOptions) -> "Predictions":
    """Return a target that reads its replies from the file `argument`."""
    if not argument:
        raise ToolkitError("--target predictions needs a file: --target predictions:FILE")
    return Predictions(Path(argument), options)


class Predictions:
    """A target whose replies are the rows of a file; a question without a row fails, and is not scored as wrong."""

    exact = False

    def __init__(self, path: Path, options: TargetOptions) -> None:
        self.name = f"predictions:{path.name}"
        self._path, self._options = path, options
        self._rows = read_rows(path)
        _check_rows(path, self._rows)
        self._numbers: dict[tuple[str | None, str | None, str | None], int] = {}
        """The number of the row of a dataset, id and question; parts that the row does not give are None."""
        self._repeated: set[str] = set()
        """Questions that several rows have."""
        for number, row in enumerate(self._rows):
            question, id = question_of(row), id_of(row)
            first = self._numbers.setdefault((row.get("dataset"), id, question), number)
            if first != number and id is not None:
                raise ToolkitError(f"{path}: rows {first + 1} and {number + 1} are both for {id!r}; remove one of them")
            if question is not None:  # for rows whose ids have another numbering
                first = self._numbers.setdefault((row.get("dataset"), None, question), number)
                self._repeated |= {question} if first != number else set()

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Return notes on how the file is read, and on the number of questions without a row.

        Raise an error if no row fits the dataset, or if the rows are copies of the bundle's with its expected answers.
        """
        rows = [(case, row) for case in cases if (row := self._find_row(dataset.name, case)) is not None]
        where = f"{self._path.name}: "
        self._check_seal(dataset)
        if not rows:
            raise ToolkitError(
                f"{where}no row answers a question of {dataset.name}, such as question {cases[0].id!r} "
                f"({cases[0].question:.80}); is the file for another bundle?"
            )
        questions = Counter(normalise_question(case.question) for case in dataset.cases)
        for case, _ in rows:
            question = normalise_question(case.question)
            repeated = question in self._repeated or questions[question] > 1
            if repeated and self._find_row(dataset.name, case, by_id=True) is None:
                raise ToolkitError(
                    f"{where}a question occurs twice ({question:.80}), and the rows have no matching ids: give "
                    "each row the id of train.json"
                )
        if len(rows) >= _MIN_COPIED and all(_is_copied(case, row) for case, row in rows):
            raise ToolkitError(
                f"{where}contains the questions of {dataset.name} with the expected answers; give a file with the "
                "system's replies"
            )
        notes = [f"{where}{replies.describe_parts(rows[0][1])}"]
        if left := len(cases) - len(rows):
            notes.append(f"{where}{left} of {len(cases)} questions of {dataset.name} have no row: they count as failed")
        return notes

    def _check_seal(self, dataset: Dataset) -> None:
        """Raise an error if the file answers the questions of another version of the bundle (`--to questions`)."""
        sealed = {row["sealed"] for row in self._rows if row.get("sealed")}
        if sealed and dataset.digests.get(INFO) not in sealed:
            raise ToolkitError(
                f"{self._path.name}: answers the questions of another version of {dataset.name}; ask for the questions "
                f"again: exhibit export {dataset.root} --to questions"
            )

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Return the size of the dataset's corpus: the replies are already in a file."""
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield the replies in the order of the cases; a case without a row gets a reply with an error."""
        for position, case in enumerate(cases):
            reply = Reply(error=f"no prediction in {self._path.name}")
            if (row := self._find_row(dataset.name, case)) is not None:
                reply = replies.read_reply(row, dataset.documents.named)
                reply = replace(reply, error=f"{self._path.name}: {reply.error}" if reply.error else "")
            yield NumberedReply(position, reply)

    def _find_row(self, dataset: str, case: Case, *, by_id: bool = False) -> dict[str, Any] | None:
        """Return the row of a question; None if it has none."""
        id, question = str(case.id), normalise_question(case.question)
        for named in (dataset, None):
            for key in ((named, id, question), (named, id, None), *(() if by_id else ((named, None, question),))):
                if key in self._numbers:
                    return self._rows[self._numbers[key]]
        return None


def _check_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Raise an error if no row is a reply, or if the rows are questions with expected answers."""
    known = [parts for row in rows if (parts := replies.find_parts(row)).answer or parts.passages]
    ours = {"passages", "retrieved_passages", "reply", "generated_answer", "response"}
    if known and all("is_impossible" in parts.raw and not ours & parts.raw.keys() for parts in known):
        raise ToolkitError(
            f"{path}: contains questions with expected answers (a train.json); give a file with the system's replies"
        )
    if not known and not any(row.get("error") for row in rows):
        raise ToolkitError(
            f"{path}: not recognised as replies: {replies.describe(rows[0]) if rows else 'no rows'}; a row must be "
            f'like {{"id" or "question", "answer", "passages": […]}}'
        )


def _is_copied(case: Case, row: Mapping[str, Any]) -> bool:
    """Return whether a row's `answer` is the expected answer and its `contexts` are the gold passages."""
    contexts = row.get("contexts")
    if row.get("answer") != case.truth or not isinstance(contexts, list) or "passages" in row:
        return False
    texts = [item.get("text") or "" if isinstance(item, Mapping) else item for item in contexts]
    return texts == [gold.text or "" for gold in case.gold] and any(isinstance(item, Mapping) for item in contexts)


def question_of(row: Mapping[str, Any]) -> str | None:
    """Return the text of the question in a row; None if the row has no question."""
    question = replies.first_of(row, "question", str)
    return None if question is None else normalise_question(question)


def id_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of the question in a row; None if the row has no id."""
    id = replies.first_of({key: value for key, value in row.items() if value != ""}, "id", (str, int))
    return None if id is None else str(id)


def normalise_question(question: str) -> str:
    """Return a question with its white space normalised, for comparison."""
    return " ".join(question.split())


# ---------------------------------------------------------------- the file


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of replies, one for each question."""
    if path.suffix.lower() in (".csv", ".tsv"):
        rows = _parse_csv(read_text(path).removeprefix("\ufeff"))
    else:
        data = read_text(path).encode("utf-8", "surrogatepass")
        rows = [record.cells for record in read_records(path, data, Tally(strict=True), accounted=False)]
    bad = next((number for number, row in enumerate(rows) if id_of(row) is None and question_of(row) is None), None)
    if bad is not None:
        raise ToolkitError(f"{path}: row {bad} has neither an id nor a question; add one of them")
    return rows


def _parse_csv(text: str) -> list[dict[str, Any]]:
    csv.field_size_limit(1 << 24)
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    return [{key: parse_cell(cell) for key, cell in row.items() if key and cell} for row in rows]


def parse_cell(text: str) -> Any:
    """Return the value of a CSV cell: parsed if it is a JSON or Python list or object with passages, else the text."""
    if text.lstrip().startswith(("[", "{")):
        for parse in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = parse(text)
                # "[1]" is a citation of an answer
                passages = isinstance(value, dict) or all(isinstance(item, str | dict) for item in value)
                return value if passages else text
    return text
