"""Replies from a file: `predictions:FILE`, JSON, JSONL or CSV, one object or row per question.

{"id": 7, "dataset": "cuad", "question": "…", "answer": "…", "passages": ["…", {"filename": "…", "text": "…"}]}

A reply is matched to its question by dataset and id, or by the text of the question. The formats in
`shapes.toml` are accepted as well: results of NVIDIA's blueprint, LangChain, LlamaIndex, Haystack, ragas
and evaltools, and a run of Exhibit itself. The recognised format is reported. A field with the expected
answer is never read as a reply.
"""

import ast
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.servers import shapes
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, count_only
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import LazyLines

_FEW = 3
"""A file is suspected to contain expected answers when at least this many answers, and all of them, equal them."""


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
        self._path = path
        self._options = options
        self._places: dict[tuple[str | None, str | None, str | None], int] = {}
        """The row of a dataset, id and question; parts that the row does not give are None."""
        self._rows = read_rows(path)
        self._shape = _recognise_shape(path, self._rows)
        self._alike: set[str] = set()
        """Questions that several rows have."""
        for place, row in enumerate(self._rows):
            question, id = question_of(row), id_of(row)
            first = self._places.setdefault((row.get("dataset"), id, question), place)
            if first != place and id is not None:
                raise ToolkitError(f"{path}: rows {first + 1} and {place + 1} are both for {id!r}; remove one of them")
            if question is not None:  # the ids are of another numbering, so the questions decide
                first = self._places.setdefault((row.get("dataset"), None, question), place)
                self._alike |= {question} if first != place else set()

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Return notes on the recognised form of the file, and on the number of questions without a row.

        Raise an error if no row fits the dataset, or if the rows are copied from the bundle with its expected
        answers, and are not a system's replies.
        """
        predicted = [case for case in cases if self._place(dataset.name, case) is not None]
        where = f"{self._path.name}: "
        self._refuse_alike(dataset, predicted, where)
        if not predicted:
            asked = cases[0].question if len(cases[0].question) <= 80 else f"{cases[0].question[:79]}…"
            raise ToolkitError(
                f"{where}no row answers a question of {dataset.name}, such as question {cases[0].id!r} ({asked}); "
                "is the file for another bundle?"
            )
        if len(predicted) >= _FEW and all(_is_copied(case, self._find_row(dataset.name, case)) for case in predicted):
            raise ToolkitError(
                f"{where}contains the questions of {dataset.name} with the expected answers; give a file with the "
                "system's replies"
            )
        notes = [
            f"{where}read as {self._shape.name}{self._describe_fields(self._find_row(dataset.name, predicted[0]))}"
        ]
        if len(predicted) < len(cases):
            left = len(cases) - len(predicted)
            notes.append(f"{where}{left} of {len(cases)} questions of {dataset.name} have no row: they count as failed")
        return notes

    def _refuse_alike(self, dataset: Dataset, cases: Sequence[Case], where: str) -> None:
        """Raise an error if a reply can be matched only by its question's text, and that text occurs twice."""
        asked = Counter(normalise_question(case.question) for case in dataset.cases)
        for case in cases:
            question = normalise_question(case.question)
            by_question = self._place(dataset.name, case, by_id=True) is None
            if by_question and (question in self._alike or asked[question] > 1):
                raise ToolkitError(
                    f"{where}a question occurs twice ({question[:80]!r}), and the rows have no matching ids: give "
                    "each row the id of train.json"
                )

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Return the size of the dataset's corpus.

        No document is ingested, because the replies are already in a file.
        """
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield the replies in the order of the cases; a case without a row gets a reply with an error."""
        for position, case in enumerate(cases):
            if self._place(dataset.name, case) is None:
                yield NumberedReply(position, Reply(error=f"no prediction in {self._path.name}"))
            else:
                reply = read_row(self._find_row(dataset.name, case), self._shape, dataset.documents.named)
                where = f"{self._path.name}: " if reply.error else ""
                yield NumberedReply(position, replace(reply, error=where + reply.error))

    def _place(self, dataset: str, case: Case, *, by_id: bool = False) -> int | None:
        id, question = str(case.id), normalise_question(case.question)
        for named in (dataset, None):
            for key in ((named, id, question), (named, id, None), *(() if by_id else ((named, None, question),))):
                if key in self._places:
                    return self._places[key]
        return None

    def _find_row(self, dataset: str, case: Case) -> dict[str, Any]:
        """Return the row of a question; an empty mapping if it has none."""
        place = self._place(dataset, case)
        return {} if place is None else self._rows[place]

    def _describe_fields(self, row: Mapping[str, Any]) -> str:
        """Return a note that says which fields of a row are read as the answer and as the passages."""
        fields = shapes.unwrap(row)
        answer = next((path for path in self._shape.answers if shapes.find_words([path], fields)), None)
        passages = next((path for path in self._shape.passages if shapes.find_list([path], fields)), None)
        truths = [name for name in self._shape.truths if name in fields]
        parts = [f"the answer is {answer}" if answer else "no answer", f"the passages are {passages or 'not given'}"]
        return f": {', '.join(parts)}" + (f"; {', '.join(truths)} is the expected answer: not read" if truths else "")


def read_row(row: Mapping[str, Any], shape: shapes.Shape, names: shapes.Names) -> Reply:
    """Return the reply in a row that has the form `shape`; if it cannot be read, a reply with an error."""
    fields = shapes.unwrap(row)
    reply = fields["reply"] if isinstance(fields.get("reply"), dict) else fields
    if reply.get("error"):
        return Reply(error=str(reply["error"]))
    answer = shapes.find_words(shape.answers, fields)
    if reply.get("latency") == -1:  # evaltools writes an error as the answer, with a latency of -1
        return Reply(error=answer or "the row is marked as failed")
    held = shapes.find_list(shape.passages, fields)
    try:
        passages = shapes.read_passages(held, names=names, pages_from=shape.pages_from)
        lists = shapes.read_stage_lists(reply, held)
        stages = shapes.read_stages(lists, passages, names=names, pages_from=shape.pages_from)
    except shapes.PassagesError as error:
        return Reply(error=str(error))
    if answer is None and not passages:
        return Reply(error="neither an answer nor passages")
    usage = reply.get("usage") if shape.name == "a run of this project" else shapes.read_usage(fields)
    return Reply(
        answer=answer,
        passages=passages,
        selected=shapes.read_count(reply.get("selected")),
        seconds=_read_seconds(reply),
        usage={name: value for name, held in (usage or {}).items() if (value := shapes.read_number(held)) is not None},
        first_token=shapes.read_number(reply.get("first_token")),
        confidence=shapes.read_number(reply.get("confidence")),
        **stages,
    )


def _recognise_shape(path: Path, rows: "Rows") -> shapes.Shape:
    """Return the form (shape) that most rows have; raise an error that shows a row if no form is recognised."""
    if all(map(shapes.is_truth, rows)):
        raise ToolkitError(
            f"{path}: contains questions with expected answers (a train.json); give a file with the system's replies"
        )
    known = [shape for row in rows if (shape := shapes.recognise(row)) is not None]
    if not known:
        raise ToolkitError(
            f"{path}: not recognised as replies: {shapes.describe(rows[0]) if rows else 'no rows'}; a row must be "
            f'like {{"id" or "question", "answer", "passages": […]}}'
        )
    # a row without an answer may match another shape, so the most frequent shape decides
    names = Counter(shape.name for shape in known)
    return max(known, key=lambda shape: names[shape.name])


def _is_copied(case: Case, row: Mapping[str, Any]) -> bool:
    """Return whether a row is copied from the bundle instead of being a system's reply.

    A copied row has the expected answer as its `answer`, and the gold passages as its `contexts`.
    """
    contexts = row.get("contexts")
    if row.get("answer") != case.truth or not isinstance(contexts, list) or "passages" in row:
        return False
    golds = [gold.text or "" for gold in case.gold]
    texts = [one.get("text") or "" if isinstance(one, Mapping) else one for one in contexts]
    return texts == golds and any(isinstance(one, Mapping) for one in contexts)


def _read_seconds(fields: Mapping[str, Any]) -> float | None:
    seconds = shapes.read_number(fields.get("seconds", fields.get("latency")))
    return None if seconds is None or seconds < 0 else seconds


def question_of(row: Mapping[str, Any]) -> str | None:
    """Return the text of the question in a row; None if the row has no question."""
    question = shapes.first_of(row, "question", str)
    return None if question is None else normalise_question(question)


def id_of(row: Mapping[str, Any]) -> str | None:
    """Return the id of the question in a row; None if the row has no id."""
    id = shapes.first_of({key: value for key, value in row.items() if value != ""}, "id", (str, int))
    return None if id is None else str(id)


def normalise_question(question: str) -> str:
    """Return a question with its white space normalised, for comparison."""
    return " ".join(question.split())


Rows = LazyLines[dict[str, Any]] | list[dict[str, Any]]


def read_rows(path: Path) -> Rows:
    """Return the rows of a file of replies, one for each question.

    A JSONL file is not loaded as a whole: each row is read from disk when it is needed.
    """
    if path.suffix.lower() == ".jsonl" and path.is_file():
        lines = LazyLines(path, _read_row)
        with suppress(ValueError, RecursionError):  # otherwise the file does not have one row per line
            if sum(1 for _ in lines):
                return lines
    return _read_whole(path)


def _read_row(line: bytes, where: str) -> dict[str, Any]:
    row = json.loads(line.decode("utf-8").removeprefix("\ufeff"))
    if not isinstance(row, dict) or _lacks_question(row):
        raise ValueError(f"{where}: the row has neither an id nor a question")
    return _join_nvidia_passages(row)


def _read_whole(path: Path) -> list[dict[str, Any]]:
    text = read_text(path).removeprefix("\ufeff")
    rows = _parse_csv(text) if path.suffix.lower() in (".csv", ".tsv") else _parse_json(path, text)
    if isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], dict) and _lacks_question(rows[0]):
        rows = _find_rows(rows[0])  # {"samples": […]}, {"results": […]}, or columns, as `datasets` writes
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ToolkitError(f"{path}: must be a list of objects, or one object per line")
    bad = [n for n, row in enumerate(rows) if _lacks_question(row)]
    if bad:
        raise ToolkitError(f"{path}: row {bad[0]} has neither an id nor a question; add one of them")
    return [_join_nvidia_passages(row) for row in rows]


def _lacks_question(row: Mapping[str, Any]) -> bool:
    return id_of(row) is None and question_of(row) is None


def _parse_json(path: Path, text: str) -> Any:
    """Return the values in a JSON or JSONL file; an error names the number of a broken line."""
    where, rows = "", list[Any]()
    try:
        if text.lstrip().startswith("["):
            return json.loads(text)
        for number, line in enumerate(text.split("\n"), 1):
            where = f"line {number}: "
            if line.strip():
                rows.append(json.loads(line))
    except (ValueError, RecursionError) as error:
        if rows or not where:
            fault = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise ToolkitError(f"{path}: {where}not JSON: {fault}") from error
        try:
            return [json.loads(text)]  # one object over several lines
        except (ValueError, RecursionError) as whole:
            raise ToolkitError(f"{path}: neither JSON nor JSONL: {whole}") from whole
    return rows


def _parse_csv(text: str) -> list[dict[str, Any]]:
    csv.field_size_limit(1 << 24)
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    return [{key: _parse_cell(cell) for key, cell in row.items() if key and cell} for row in rows]


def _parse_cell(text: str) -> Any:
    """Return the value of a CSV cell.

    A cell with passages, written as a JSON or Python list or object, is parsed. Any other cell is returned as
    text, also a cell such as `[1]`, which is a citation.
    """
    if text.lstrip().startswith(("[", "{")):
        for parse in (json.loads, ast.literal_eval):
            try:
                value = parse(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            # "[1]" is a citation of an answer
            return value if isinstance(value, dict) or all(isinstance(one, str | dict) for one in value) else text
    return text


def _find_rows(content: Mapping[str, Any]) -> Any:
    lists = [value for value in content.values() if isinstance(value, list)]
    if len(lists) == len(content) > 1 and len({len(value) for value in lists}) == 1:
        return [dict(zip(content, row, strict=True)) for row in zip(*lists, strict=True)]
    objects = [value for value in lists if value and all(isinstance(row, dict) for row in value)]
    return objects[0] if objects else [content]


def _join_nvidia_passages(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of NVIDIA's results with the added key `nvidia_passages`, one object per passage.

    NVIDIA's row has the texts and the names of the passages in two lists. An object has the keys `text`,
    `filename` and, if the name ends with a number, `page_number`: `contract.pdf_3` is page 3. A row is returned
    unchanged if it has another form.
    """
    texts, names = row.get("generated_contexts"), row.get("retrieved_docs")
    if "generated_answer" not in row or not isinstance(texts, list) or not isinstance(names, list):
        return row
    if len(texts) != len(names):  # unknown which text belongs to which name
        return row
    passages = []
    for text, name in zip(texts, names, strict=True):
        match = re.fullmatch(r"(.+)_(\d+)", str(name))
        place = {"filename": match[1], "page_number": int(match[2])} if match else {"filename": str(name)}
        passages.append({**place, "text": text})
    return {**row, "nvidia_passages": passages}
