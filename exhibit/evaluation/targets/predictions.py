"""Replies from a file: `predictions:FILE`, JSON, JSONL or CSV, one object or row per question.

{"id": 7, "dataset": "cuad", "question": "…", "answer": "…", "passages": ["…", {"filename": "…", "text": "…"}]}

A reply is matched to its question by dataset and id, or by the text of the question, and read by known keys
(`evaluation.replies`). `recheck:FILE` is a finished run of ragas, DeepEval, promptfoo, Inspect, Langfuse or LangSmith.
"""

import ast
import io
import json
import math
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from exhibit.converters import Tally
from exhibit.converters.tables.records import read_records
from exhibit.evaluation import replies
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.replies import find_list, find_text, read_number, search
from exhibit.evaluation.scoring import write_json
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, count_only
from exhibit.evidence import is_readable, locate
from exhibit.evidence.read import read_within
from exhibit.schemas.bundle import CORPUS, INFO, TRAIN, load_json, read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import list_files, replace_folder

ACCOUNT = "recheck.json"  # the file in a run's folder with the other tool's scores and the unmatched rows
_MIN_CONTAINED_WORDS = 4  # least words of a question that is searched in prompts; a shorter one may be part of another

Row = Mapping[str, Any]
Matches = dict[int | str, int]  # the number of the row that matches each question, by the question's id


class Predictions:
    """A target whose replies are the rows of a file; a question without a row counts as failed, not as wrong."""

    exact = False

    def __init__(self, path: Path, options: TargetOptions, *, kind: str = "predictions") -> None:
        if not path.name:
            raise ToolkitError(f"--target {kind} needs a file: --target {kind}:FILE")
        self.name = f"{kind}:{path.name}"
        self._path, self._options = path, options
        # the tool that made a finished run; its questions may be prompts that contain the question of the bundle
        self.tool, self._rows = read_finished_run(path) if kind == "recheck" else ("", self._read())

    def _read(self) -> list[Row]:
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

    def match(self, dataset: Dataset) -> Matches:
        return match_rows(self._rows, dataset.cases, dataset.name, prompts=bool(self.tool))

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
        if len(rows) > 2 and all(_is_copied(case, row) for case, row in rows):  # one or two answers may equal the gold
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

    def write_account(self, folder: Path, datasets: Sequence[Dataset]) -> None:
        """Write the means of the other tool's scores, over its rows and over all questions, and the unmatched rows."""
        matched = Counter(number for dataset in datasets for number in self.match(dataset).values())
        questions = sum(len(dataset.cases) for dataset in datasets)
        reported = []
        for name, _ in Counter(name for row in self._rows for name in row["scores"]).most_common():
            marks = [row["scores"][name] for row in self._rows if name in row["scores"]]
            credited = sum(self._rows[number]["scores"].get(name, 0.0) * count for number, count in matched.items())
            mean = math.fsum(marks) / len(marks)
            reported.append({"name": name, "mean": mean, "rows": len(marks), "over_all": credited / questions})
        unmatched = [row["question"] for number, row in enumerate(self._rows) if number not in matched]
        account = {"tool": self.tool, "file": self._path.name, "rows": len(self._rows), "questions": questions}
        account |= {"matched": matched.total(), "reported": reported, "unmatched": unmatched}
        write_json(folder / ACCOUNT, account)


def _is_copied(case: Case, row: Row) -> bool:
    """Return whether a row only repeats the expected answer and the texts of the gold passages."""
    contexts = row.get("contexts")
    if row.get("answer") != case.truth or "passages" in row or not isinstance(contexts, list):
        return False
    texts = [context.get("text") for context in contexts if isinstance(context, Mapping)]
    return bool(texts) and texts == [gold.text for gold in case.gold]


def match_rows(rows: Sequence[Row], cases: Sequence[Case], dataset: str, *, prompts: bool = False) -> Matches:
    """Match each row by its id, else by the text of its question; rows that name the dataset come first.

    A text that occurs twice is an error. With `prompts`, a row's text is a prompt, which matches the longest question
    that it contains; the first matching row is used, and a repeated question has no match.
    """
    ids = {str(case.id): case for case in cases}
    texts = Counter(normalise_question(case.question) for case in cases)
    by_text = {normalise_question(case.question): case for case in cases}
    long = [text for text in texts if len(text.split()) >= _MIN_CONTAINED_WORDS] if prompts else []
    long.sort(key=len, reverse=True)
    numbers = [number for number, row in enumerate(rows) if row.get("dataset") in (dataset, None)]
    numbers.sort(key=lambda number: rows[number].get("dataset") is None)
    matched: Matches = {}
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
    question = find_text(replies.NAMES["question"], row)
    return None if question is None else normalise_question(question)


def id_of(row: Row) -> str | None:
    id = replies.first_of(row, "id")
    return str(id) if isinstance(id, str | int) else None


def normalise_question(question: str) -> str:
    return " ".join(question.split()).casefold()


def read_rows(path: Path) -> list[Row]:
    rows = read_table(path)
    for number, row in enumerate(rows):
        if id_of(row) is None and question_of(row) is None:
            raise ToolkitError(f"{path}: row {number} has neither an id nor a question; add one of them")
    return rows


def read_table(path: Path) -> list[Row]:
    """Return the rows of a table in JSON, JSONL, CSV or Parquet; cells of a CSV with lists or objects are parsed."""
    data = b"" if path.suffix.lower() == ".parquet" else read_text(path).encode("utf-8", "surrogatepass")
    rows: list[Row] = [record.cells for record in read_records(path, data, Tally(strict=True), accounted=False)]
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


_MAX_MEMBER_BYTES = 256 << 20  # most bytes of a sample in Inspect's archive


def describe_account(folder: Path) -> list[str]:
    """Return the other tool's scores in words; empty if the run rechecks no file."""
    if not (folder / ACCOUNT).is_file():
        return []
    account = load_json(folder / ACCOUNT)
    tool, questions, unmatched = account["tool"], account["questions"], account["unmatched"]
    missing = questions - account["matched"]
    absent = f"; {missing:,} of the bundle's {questions:,} are not in the run" if missing else ""
    lines = [f"{tool} reported no score{absent}"] if not account["reported"] else []
    for reported in account["reported"]:
        mean = f"{reported['name']} {reported['mean']:.2f} over {reported['rows']:,} questions"
        lines.append(f"{tool} reported {mean}{absent}; on all {questions:,}: {reported['over_all']:.2f}")
        absent = ""
    if unmatched:
        listed = "; ".join(f"“{question:.60}”" for question in unmatched[:5])
        omitted = f" and {len(unmatched) - 5:,} more in {ACCOUNT}" if len(unmatched) > 5 else ""
        rows = "1 row of the run matches" if len(unmatched) == 1 else f"{len(unmatched):,} rows of the run match"
        lines.append(f"{rows} no question: {listed}{omitted}")
    return lines


def make_bundle(path: Path, documents: Path | None) -> Path:
    """Make a bundle in `datasets_out` from the run's questions and reference answers, located in the documents.

    The gold is each of a row's gold passages, or else its reference, if exactly one document contains it.
    """
    if documents is None:
        raise ToolkitError(f"--recheck {path}: also name the bundle, or the folder of the documents with --documents")
    rows = [row for row in read_finished_run(path)[1] if row["reference"]]
    if not rows:
        raise ToolkitError(f"{path}: no row has a reference answer, so no bundle can be made; name a bundle")
    files = {file.name: file for file in list_files(documents) if is_readable(file) and not file.samefile(path)}
    texts = {name: read_within(file) for name, file in files.items()}
    questions = []
    for number, row in enumerate(rows):
        contexts = []
        for quote in row["golds"] if isinstance(row["golds"], list) else [row["reference"]]:
            holders = [name for name, document in texts.items() if isinstance(quote, str) and locate(quote, document)]
            contexts += [{"filename": holders[0], "text": quote}] if len(holders) == 1 else []
        question = {"id": number, "question": row["question"], "answer": row["reference"], "is_impossible": False}
        questions.append({**question, "contexts": contexts})
    out = Path("datasets_out") / path.stem
    with replace_folder(out, force=True) as folder:
        (folder / CORPUS).mkdir()
        for name, file in files.items():
            shutil.copyfile(file, folder / CORPUS / name)
        write_json(folder / TRAIN, questions)
    return out


def read_finished_run(path: Path) -> tuple[str, list[Row]]:
    """Return the name of the tool that made a finished run, and the run's rows in the form of `_make_row`."""
    content = _read_content(path)
    named = ((tool, _list_objects(records, content)) for tool, records in _RECORDS.items())
    tool, records = next((pair for pair in named if pair[1]), ("", _list_rows(content)))
    rows = [row for row in map(_make_row, records) if row["question"]]
    if rows and (tool or any(row["scores"] for row in rows)):
        return tool or ("ragas" if any(map(_is_ragas, records)) else "Langfuse or LangSmith"), rows
    advice = "a file with a question and an answer per row is evaluated with --target predictions:FILE"
    tools = "ragas, DeepEval, promptfoo, Inspect, Langfuse or LangSmith"
    raise ToolkitError(f"{path}: not recognised as a finished run of {tools}; {advice}")


_FIELDS = {
    "question": (
        "user_input", "question", "input.question", "inputs.question", "inputs.query", "vars.question", "vars.query",
        "query", "inputs.input", "input.input", "input", "input[?role=='user'].content | [-1]", "vars.* | [0]",
    ),
    "answer": (
        "response", "output.answer", "outputs.answer", "answer", "actualOutput", "actual_output", "output.completion",
        "response.output.answer", "response.output", "output.output", "outputs.output", "outputs.response", "output",
        "outputs", "output.choices[0].message.content", "output.choices[0].message.content[?type=='text'].text | [0]",
    ),
    "reference": (
        "reference", "ground_truth", "reference_outputs.answer", "referenceOutputs.answer", "expectedOutput",
        "expected_output.answer", "expected_output", "reference_outputs", "vars.reference", "vars.expected", "target",
    ),
    "error": ("error.message", "error"),
}  # fmt: skip
_TEXT_FIELDS = {"id", *chain(*_FIELDS.values())}  # columns that are no scores, even if they have a number
_LISTS = {
    "passages": (
        "retrieved_contexts", "contexts", "retrievalContext", "retrieval_context", "output.contexts",
        "outputs.contexts", "output.sources", "outputs.sources", "outputs.documents", "metadata.contexts",
        "metadata.retrieved_contexts", "response.output.contexts", "response.metadata.contexts", "vars.contexts",
        "vars.context",
    ),
    "golds": ("reference_contexts", "context"),
}  # fmt: skip
"""The JMESPaths of a row's fields in the records of all tools; the first path with a value counts."""
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # Inspect's marks: correct, partly correct, incorrect, no answer


def _make_row(record: Row) -> Row:
    # a quoted path is the name of a column: "inputs.question" in a table of LangSmith
    row = {name: find_text([*paths, *map(json.dumps, paths)], record) for name, paths in _FIELDS.items()}
    lists = {name: find_list([*paths, *map(json.dumps, paths)], record) for name, paths in _LISTS.items()}
    scores = {name: mark for name, value in _list_marks(record) if (mark := _read_mark(value)) is not None}
    return {**row, **lists, "answer": row["answer"] or "", "scores": scores}


def _read_mark(value: Any) -> float | None:
    mark = _LETTERS.get(value, value) if isinstance(value, str) else value
    return float(mark) if isinstance(mark, bool) else read_number(mark)


def _list_marks(record: Row) -> Iterator[tuple[str, Any]]:
    """Yield a row's marks by name, in any tool's form: a list, an object, or columns such as `feedback.NAME`."""
    for mark in _list_objects("(metricsData || metrics_data)[?name]", record):
        yield str(mark.get("name")), mark.get("score")
    for key, value in record.items():
        prefix, _, name = str(key).partition(".")
        if key in ("scores", "namedScores") and isinstance(value, Mapping):
            for inner, mark in value.items():
                yield str(inner), mark.get("value") if isinstance(mark, Mapping) else mark
        elif name and prefix in ("feedback", "score", "scores"):
            yield name, value
        elif (key == "score" and "vars" in record) or (_is_ragas(record) and key not in _TEXT_FIELDS):
            yield str(key), value


def _is_ragas(record: Row) -> bool:
    return "user_input" in record or "question" in record


# the JMESPath of each tool's records; the other tools write tables
_RECORDS = {"DeepEval": "testCases || test_results", "promptfoo": "results.results[?vars]", "Inspect": "samples"}


def _list_objects(path: str, content: Any) -> list[Row]:
    items = search(path, content)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _list_rows(content: Any) -> list[Row]:
    """Return the rows of a table: a list of objects, or columns as pandas writes them to JSON."""
    if isinstance(content, Mapping) and all(isinstance(column, Mapping) for column in content.values()):
        numbers = dict.fromkeys(number for column in content.values() for number in column)
        return [{name: column.get(number) for name, column in content.items()} for number in numbers]
    return _list_objects("@", content)


def _read_content(path: Path) -> Any:
    if not path.is_file():
        raise ToolkitError(f"{path}: no such file; check the path")
    try:
        if path.suffix.lower() == ".eval":
            return {"samples": list(_read_inspect_archive(path))}
    except (ValueError, RecursionError, KeyError, pa.ArrowException, zipfile.BadZipFile) as error:
        raise ToolkitError(f"{path}: cannot be read as an Inspect log: {error}; check this file") from error
    if path.suffix.lower() == ".json":
        return load_json(path)
    return read_table(path)


def _read_inspect_archive(path: Path) -> Iterator[Row]:
    """Yield the samples of Inspect's archive, whose members are compressed with deflate or Zstandard."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        members = [member for member in archive.infolist() if member.filename.startswith("samples/")]
        for member in sorted(members, key=lambda member: member.filename):
            if member.file_size > _MAX_MEMBER_BYTES:
                raise ValueError(f"{member.filename} has {member.file_size >> 20} MiB, more than the limit")
            if member.compress_type != 93:  # Zstandard, which `zipfile` reads from Python 3.14 on
                yield json.loads(archive.read(member))
                continue
            file.seek(member.header_offset)
            head = file.read(30)
            file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), io.SEEK_CUR)
            packed = pa.BufferReader(file.read(member.compress_size))
            with pa.input_stream(packed, compression="zstd") as stream:
                yield json.loads(stream.read(_MAX_MEMBER_BYTES))
