"""Replies from a finished run of ragas, DeepEval, promptfoo, Inspect, Langfuse or LangSmith: `recheck:FILE`.

The rows are matched to the questions of the bundle by text. Answers and passages are scored as those of any target,
and what the tool reported is set beside it, over the tool's questions and over all questions of the bundle.
"""

import csv
import io
import json
import math
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.records import write_json
from exhibit.evaluation.replies import find_list, find_text, read_number, read_reply
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, count_only
from exhibit.evaluation.targets.predictions import normalise_question, parse_cell
from exhibit.evidence import Document, is_readable, locate
from exhibit.evidence.read import read_within
from exhibit.schemas.bundle import CORPUS, TRAIN, load_json, read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import list_files, replace_folder

ACCOUNT = "recheck.json"
"""The file of a run's folder with what the other tool reported, and the rows that match no question."""
_MAX_LISTED = 5  # unmatched rows that the terminal shows; the file lists all
_MIN_CONTAINED_WORDS = 4
"""A question of at least this many words is found inside a prompt; a shorter one may be part of another question."""

_QUESTIONS = (
    "user_input", "question", "input.question", "inputs.question", "input.query", "inputs.query", "vars.question",
    "vars.query", "query", "inputs.input", "input.input", "input",
)  # fmt: skip
_ANSWERS = (
    "response", "output.answer", "outputs.answer", "answer", "actualOutput", "actual_output", "output.completion",
    "response.output.answer", "response.output", "output.output", "outputs.output", "outputs.response", "output",
    "outputs",
)  # fmt: skip
_PASSAGES = (
    "retrieved_contexts", "contexts", "retrievalContext", "retrieval_context", "output.contexts", "outputs.contexts",
    "output.sources", "outputs.sources", "outputs.documents", "metadata.contexts", "metadata.retrieved_contexts",
    "response.output.contexts", "response.metadata.contexts", "vars.contexts", "vars.context",
)  # fmt: skip
_REFERENCES = (
    "reference", "ground_truth", "reference_outputs.answer", "referenceOutputs.answer", "expectedOutput",
    "expected_output.answer", "expected_output", "reference_outputs", "vars.reference", "vars.expected", "target",
)  # fmt: skip
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's marks: correct, partly correct, incorrect, no answer."""
_FEEDBACK = ("feedback.", "score.", "scores.")
"""The beginnings of the columns in which tables of LangSmith and Langfuse have marks."""
_MAX_MEMBER_BYTES = 256 << 20

Record = Mapping[str, Any]


@dataclass(frozen=True)
class FinishedRow:
    """What a run has of one question."""

    question: str
    answer: str | None
    passages: Any
    reference: str | None
    golds: Any
    """The passages with the answer, where the run has them."""
    scores: Mapping[str, float]
    error: str = ""


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: the tool that made it, and its rows."""

    tool: str
    rows: tuple[FinishedRow, ...]

    def list_scores(self) -> list[str]:
        """Return the names of the reported metrics, that of the most questions first."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.scores))
        return sorted(names, key=lambda name: -sum(name in row.scores for row in self.rows))


def read_finished_run(path: Path) -> FinishedRun:
    """Return the run in a file; raise ToolkitError if no known tool writes such files."""
    content = _read_content(path)
    for tool, (list_records, find_scores) in _TOOLS.items():
        records = list_records(content)
        if records is not None:
            rows = [row for record in records if (row := _make_row(record, find_scores)) is not None]
            if rows:
                return FinishedRun(tool, tuple(rows))
    raise ToolkitError(
        f"{path}: not recognised as a finished run of ragas, DeepEval, promptfoo, Inspect, Langfuse or LangSmith; a "
        "file with a question and an answer per row is evaluated with --target predictions:FILE"
    )


def _make_row(record: Record, find_scores: Callable[[Record], Mapping[str, Any]]) -> FinishedRow | None:
    question = _find_question(record)
    if question is None:
        return None
    error = record.get("error")
    scores = {name: mark for name, value in find_scores(record).items() if (mark := _read_mark(value)) is not None}
    return FinishedRow(
        question=question,
        answer=_find_answer(record),
        passages=find_list(_PASSAGES, record),
        reference=find_text(_REFERENCES, record),
        golds=find_list(("reference_contexts", "context"), record),
        scores=scores,
        error=str(error.get("message", error)) if isinstance(error, Mapping) else str(error or ""),
    )


def _find_question(record: Record) -> str | None:
    messages = record.get("input")
    if isinstance(messages, list):  # a chat: the last message of the user
        texts = [m.get("content") for m in messages if isinstance(m, Mapping) and m.get("role") == "user"]
        return next((text for text in reversed(texts) if isinstance(text, str)), None)
    vars = record.get("vars")
    if isinstance(vars, Mapping) and len(vars) == 1:
        return str(next(iter(vars.values())))
    return find_text(_QUESTIONS, record)


def _find_answer(record: Record) -> str | None:
    answer = find_text(_ANSWERS, record)
    choices = find_list(("output.choices",), record)
    if answer is None and isinstance(choices, list):
        answer = find_text(("message.content", "message.content[?type=='text'].text | [0]"), choices[0])
    return answer


def _read_mark(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        if value in _LETTERS:
            return _LETTERS[value]
        try:
            value = float(value)
        except ValueError:
            return None
    return read_number(value) if not isinstance(value, float) or math.isfinite(value) else None


# ---------------------------------------------------------------- the target


def open(argument: str | None, options: TargetOptions) -> "Recheck":
    """Return a target that reads its replies from a finished run."""
    if not argument:
        raise ToolkitError("--recheck needs a file: the finished run of ragas, DeepEval, promptfoo, Inspect …")
    return Recheck(Path(argument), options)


class Recheck:
    """A target whose replies are those of another tool's finished run; a question without a row fails."""

    exact = False

    def __init__(self, path: Path, options: TargetOptions) -> None:
        self.name = f"recheck:{path.name}"
        self._path, self._options = path, options
        self._run = read_finished_run(path)
        self._matched: dict[str, dict[int, int]] = {}
        """By dataset, the number of the row of each case by the case's position."""

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Return a note on what the file holds; raise an error if it answers no question of the dataset."""
        if not self._match(dataset):
            raise ToolkitError(
                f"{self._path}: a run of {self._run.tool} with {len(self._run.rows)} rows, and none has a question of "
                f"{dataset.name}, such as {cases[0].question:.80}; is the file for another bundle?"
            )
        with_passages = sum(bool(row.passages) for row in self._run.rows)
        return [f"{self._path.name}: {self._run.tool}, {len(self._run.rows)} rows, {with_passages} with passages"]

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Return the size of the dataset's corpus: the replies are already in a file."""
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield the replies in the order of the cases; a case without a row gets a reply with an error."""
        by_id = {dataset.cases[at].id: row for at, row in self._match(dataset).items()}
        for position, case in enumerate(cases):
            reply = Reply(error=f"not in the run {self._path.name}")
            if case.id in by_id:
                row = self._run.rows[by_id[case.id]]
                fields = {"answer": row.answer, "passages": row.passages, "error": row.error}
                reply = read_reply(fields, dataset.documents.named)
                # an empty answer is an answer of the run, and its refusal
                empty = row.answer is None and not row.passages and not row.error
                reply = replace(reply, answer="", error="") if empty else reply
            yield NumberedReply(position, reply)

    def _match(self, dataset: Dataset) -> dict[int, int]:
        if dataset.name not in self._matched:
            self._matched[dataset.name] = match_rows(self._run.rows, [case.question for case in dataset.cases])
        return self._matched[dataset.name]

    def write_account(self, folder: Path, datasets: Sequence[Dataset]) -> None:
        """Write what the tool reported, over its own questions and over all, and the rows that match no question."""
        matched = Counter(row for dataset in datasets for row in self._match(dataset).values())
        questions = sum(len(dataset.cases) for dataset in datasets)
        reported = []
        for name in self._run.list_scores():
            marks = [row.scores[name] for row in self._run.rows if name in row.scores]
            credited = sum(self._run.rows[row].scores.get(name, 0.0) * count for row, count in matched.items())
            mean = math.fsum(marks) / len(marks)
            reported.append({"name": name, "mean": mean, "rows": len(marks), "over_all": credited / questions})
        account = {
            "tool": self._run.tool,
            "file": self._path.name,
            "rows": len(self._run.rows),
            "questions": questions,
            "matched": matched.total(),
            "reported": reported,
            "unmatched": [row.question for number, row in enumerate(self._run.rows) if number not in matched],
        }
        write_json(folder / ACCOUNT, account)


def match_rows(rows: Sequence[FinishedRow], questions: Sequence[str]) -> dict[int, int]:
    """Return the number of the row of each question by the question's position.

    A row is matched by the same text, else by the longest question that its prompt contains. Questions that occur twice
    in the bundle cannot be told apart and are not matched; of several rows with one question the first counts.
    """
    texts = [normalise_question(question).casefold() for question in questions]
    repeated = {text for text, count in Counter(texts).items() if count > 1}
    positions = {text: position for position, text in enumerate(texts) if text not in repeated}
    contained = sorted((t for t in positions if len(t.split()) >= _MIN_CONTAINED_WORDS), key=len, reverse=True)
    matched: dict[int, int] = {}
    for number, row in enumerate(rows):
        prompt = normalise_question(row.question).casefold()
        text = prompt if prompt in positions or prompt in repeated else next((t for t in contained if t in prompt), "")
        if text in positions:
            matched.setdefault(positions[text], number)
    return matched


def describe_account(folder: Path) -> list[str]:
    """Return what the other tool reported, in words; an empty list for a run that rechecks nothing."""
    if not (folder / ACCOUNT).is_file():
        return []
    account = load_json(folder / ACCOUNT)
    questions, missing = account["questions"], account["questions"] - account["matched"]
    absent = f"{missing:,} of the bundle's {questions:,} are not in the run" if missing else ""
    lines = []
    for number, one in enumerate(account["reported"]):
        parts = [f"{account['tool']} reported {one['name']} {one['mean']:.2f} over {one['rows']:,} questions"]
        parts += [absent] if absent and not number else []
        parts += [f"on all {questions:,}: {one['over_all']:.2f}"]
        lines.append("; ".join(parts))
    if not lines:
        lines.append(f"{account['tool']} reported no score{f'; {absent}' if absent else ''}")
    if unmatched := account["unmatched"]:
        listed = "; ".join(f"“{question:.60}”" for question in unmatched[:_MAX_LISTED])
        more = f" and {len(unmatched) - _MAX_LISTED:,} more in {ACCOUNT}" if len(unmatched) > _MAX_LISTED else ""
        rows = "1 row of the run matches" if len(unmatched) == 1 else f"{len(unmatched):,} rows of the run match"
        lines.append(f"{rows} no question: {listed}{more}")
    return lines


def make_bundle(path: Path, documents: Path | None) -> Path:
    """Make a bundle in `datasets_out` from the run's questions and reference answers, located in the documents."""
    if documents is None:
        raise ToolkitError(f"--recheck {path}: name the bundle, or the folder of the documents with --documents")
    rows = [row for row in read_finished_run(path).rows if row.reference]
    if not rows:
        raise ToolkitError(f"{path}: no row has a reference answer, so no bundle can be made; name a bundle")
    found = (file for file in list_files(documents) if is_readable(file) and not file.samefile(path))
    files = {file.name: file for file in found}
    if not files:
        raise ToolkitError(f"--documents {documents}: no readable document there")
    texts = {name: read_within(file) for name, file in files.items()}
    out = Path("datasets_out") / path.stem
    with replace_folder(out, force=True) as folder:
        (folder / CORPUS).mkdir()
        for name, file in files.items():
            shutil.copyfile(file, folder / CORPUS / name)
        write_json(folder / TRAIN, [_make_question(number, row, texts) for number, row in enumerate(rows)])
    return out


def _make_question(number: int, row: FinishedRow, texts: Mapping[str, Document]) -> Record:
    """Return a question whose contexts are the run's gold passages, or its reference, where one document has them."""
    contexts = []
    for quote in row.golds if isinstance(row.golds, list) else [row.reference]:
        holders = [name for name, document in texts.items() if isinstance(quote, str) and locate(quote, document)]
        contexts += [{"filename": holders[0], "text": quote}] if len(holders) == 1 else []
    question = {"id": number, "question": row.question, "answer": row.reference, "is_impossible": False}
    return {**question, "contexts": contexts}


# ---------------------------------------------------------------- the tools


def _list_deepeval(content: Any) -> list[Record] | None:
    return _list_objects(content, "testCases", "test_results")


def _find_deepeval_scores(record: Record) -> Mapping[str, Any]:
    metrics = record.get("metricsData") or record.get("metrics_data") or ()
    return {one["name"]: one.get("score") for one in metrics if isinstance(one, Mapping) and "name" in one}


def _list_promptfoo(content: Any) -> list[Record] | None:
    results = content.get("results") if isinstance(content, Mapping) else None
    records = _list_objects(results, "results")
    return records if records and all("vars" in record for record in records) else None


def _find_promptfoo_scores(record: Record) -> Mapping[str, Any]:
    named = record.get("namedScores")
    return {"score": record.get("score"), **(named if isinstance(named, Mapping) else {})}


def _list_inspect(content: Any) -> list[Record] | None:
    return _list_objects(content, "samples")


def _find_inspect_scores(record: Record) -> Mapping[str, Any]:
    scores = record.get("scores") or {}
    return {name: score.get("value") for name, score in scores.items() if isinstance(score, Mapping)}


def _list_table(content: Any) -> list[Record] | None:
    """Return the records of a table of LangSmith or Langfuse, which has marks in columns such as `feedback.NAME`."""
    records = _list_records(content)
    marked = records and any(str(key).startswith((*_FEEDBACK, "scores")) for record in records for key in record)
    return records if marked else None


def _find_table_scores(record: Record) -> Mapping[str, Any]:
    nested = record.get("scores")
    marks = dict(nested) if isinstance(nested, Mapping) else {}
    for key, value in record.items():
        prefix = next((start for start in _FEEDBACK if key.startswith(start)), None)
        if prefix:
            marks[key.removeprefix(prefix)] = value
    return marks


def _list_ragas(content: Any) -> list[Record] | None:
    records = _list_records(content)
    asked = records and all("user_input" in record or "question" in record for record in records)
    return records if asked and any(_find_ragas_scores(record) for record in records or ()) else None


_RAGAS_FIELDS = {
    "user_input", "question", "response", "answer", "retrieved_contexts", "contexts", "reference", "ground_truth",
    "reference_contexts", "rubrics", "multi_responses", "id", "error",
}  # fmt: skip


def _find_ragas_scores(record: Record) -> Mapping[str, Any]:
    fields = {name: value for name, value in record.items() if name not in _RAGAS_FIELDS}
    return {name: value for name, value in fields.items() if _read_mark(value) is not None}


_TOOLS: dict[str, tuple[Callable[[Any], list[Record] | None], Callable[[Record], Mapping[str, Any]]]] = {
    "DeepEval": (_list_deepeval, _find_deepeval_scores),
    "promptfoo": (_list_promptfoo, _find_promptfoo_scores),
    "Inspect": (_list_inspect, _find_inspect_scores),
    "Langfuse or LangSmith": (_list_table, _find_table_scores),
    "ragas": (_list_ragas, _find_ragas_scores),
}


def _list_objects(content: Any, *names: str) -> list[Record] | None:
    """Return the list of objects in the first of some fields that has one."""
    for name in names:
        value = content.get(name) if isinstance(content, Mapping) else None
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            return value
    return None


def _list_records(content: Any) -> list[Record] | None:
    """Return the records of a table: a list of objects, or columns as pandas writes them to JSON."""
    if isinstance(content, list) and content and all(isinstance(item, Mapping) for item in content):
        return content
    if isinstance(content, Mapping) and content and all(isinstance(value, Mapping) for value in content.values()):
        numbers = dict.fromkeys(number for column in content.values() for number in column)
        return [{name: column.get(number) for name, column in content.items()} for number in numbers]
    return None


# ---------------------------------------------------------------- files


def _read_content(path: Path) -> Any:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise ToolkitError(f"{path}: no such file")
    try:
        if suffix == ".eval":
            return {"samples": list(_read_inspect_archive(path))}
        if suffix == ".parquet":
            return pq.read_table(path).to_pylist()
        text = read_text(path).removeprefix("\ufeff")
        if suffix in (".csv", ".tsv"):
            return list(_read_csv(text, "\t" if suffix == ".tsv" else ","))
        if suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text)
    except (ValueError, RecursionError, KeyError, pa.ArrowException, zipfile.BadZipFile) as error:
        raise ToolkitError(f"{path}: cannot be read: {error}") from error


def _read_csv(text: str, delimiter: str) -> Iterator[Record]:
    """Yield the rows of a table; cells with JSON or Python values are parsed, and dotted columns nested."""
    csv.field_size_limit(1 << 24)
    for row in csv.DictReader(io.StringIO(text), delimiter=delimiter):
        record: dict[str, Any] = {}
        for key, cell in row.items():
            if not key or not cell:
                continue
            value = parse_cell(cell)
            record[key] = value
            outer, dot, inner = key.partition(".")
            if dot and outer in ("input", "inputs", "output", "outputs", "reference_outputs", "expected_output"):
                nested = record.setdefault(outer, {})
                if isinstance(nested, dict):
                    nested[inner] = value
        yield record


def _read_inspect_archive(path: Path) -> Iterator[Record]:
    """Yield the samples of Inspect's archive, whose members are compressed with deflate or Zstandard."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        members = [member for member in archive.infolist() if member.filename.startswith("samples/")]
        for member in sorted(members, key=lambda one: one.filename):
            if member.file_size > _MAX_MEMBER_BYTES:
                raise ValueError(f"{member.filename} has {member.file_size >> 20} MiB")
            yield json.loads(_read_member(archive, file, member))


def _read_member(archive: zipfile.ZipFile, file: io.BufferedReader, member: zipfile.ZipInfo) -> bytes:
    zstandard = 93  # the number of the method in the ZIP format; `zipfile` reads it from Python 3.14 on
    if member.compress_type != zstandard:
        return archive.read(member)
    file.seek(member.header_offset)
    head = file.read(30)
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), io.SEEK_CUR)
    packed = pa.BufferReader(file.read(member.compress_size))
    with pa.input_stream(packed, compression="zstd") as stream:
        return bytes(stream.read(_MAX_MEMBER_BYTES))
