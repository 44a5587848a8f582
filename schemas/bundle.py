"""Bundles on disk: a strict writer for converters, a lenient reader for the evaluator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from schemas.errors import BundleError
from schemas.locations import Location, Remote, fetched, origin_of
from schemas.models import BundleInfo, Gold, Row

CORPUS = "corpus"
TRAIN = "train.json"
GOLD = "gold.jsonl"
INFO = "bundle.json"
CARD = "README.md"


# ---------------------------------------------------------------- writing


def write_train(rows: Iterable[Row], path: Path) -> None:
    """Write the questions as a JSON array, one row a line so that two versions can be compared."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        separator = "[\n"
        for row in rows:
            record = row.model_dump()
            record["contexts"] = [c.model_dump(exclude_none=True) for c in row.contexts]
            out.write(separator + json.dumps(record, ensure_ascii=False))
            separator = ",\n"
        out.write("\n]\n" if separator == ",\n" else "[]\n")


def write_gold(lines: Iterable[Gold], path: Path) -> None:
    """Write the located gold, one JSON object a line."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for line in lines:
            out.write(json.dumps(line.model_dump(), ensure_ascii=False) + "\n")


def write_info(info: BundleInfo, path: Path) -> None:
    """Write `bundle.json`."""
    text = json.dumps(info.model_dump(), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def sha256_of(path: Location) -> str:
    """Return the file's sha256 in hexadecimal; a remote file's is the recorded one, which every read is checked by."""
    if isinstance(path, Remote) and path.sha256 is not None:
        return path.sha256
    with fetched(path) as here, here.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Passage:
    """A gold passage as the evaluator sees it; a plain-string context has no file name."""

    filename: str | None
    text: str | None


@dataclass(frozen=True)
class Question:
    """A row of any `train.json` that the evaluator accepts."""

    id: int | str
    question: str
    answer: str
    is_impossible: bool = False
    contexts: tuple[Passage, ...] = ()


@dataclass(frozen=True)
class Bundle:
    """A folder with `corpus/` and `train.json`, and whatever else of a bundle is there."""

    root: Path
    questions: tuple[Question, ...]
    files: dict[str, Location]
    gold: tuple[Gold, ...] = ()
    info: BundleInfo | None = None
    labels: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where it is, as its user knows it: a path, or the URL that its corpus is at."""
        return str(origin_of(self.root) or self.root)


def open_bundle(root: Path) -> Bundle:
    """Read a bundle as the evaluator does; raise one BundleError that names every problem."""
    problems: list[str] = []
    questions: tuple[Question, ...] = ()
    files: dict[str, Location] = {}
    if not root.is_dir():
        raise BundleError(f"{root}: no such folder")
    try:
        questions = read_questions(root / TRAIN)
    except BundleError as error:
        problems.append(str(error))
    try:
        files = corpus_files(root)
    except BundleError as error:
        problems.append(str(error))
    gold: tuple[Gold, ...] = ()
    info = None
    try:
        gold = tuple(read_gold(root / GOLD)) if (root / GOLD).is_file() else ()
        info = read_info(root / INFO) if (root / INFO).is_file() else None
    except BundleError as error:
        problems.append(str(error))
    if problems:
        raise BundleError("\n".join(problems))
    labels = {line.id: dict(line.labels) for line in reversed(gold)}
    return Bundle(root, questions, files, gold, info, labels)


def corpus_files(root: Path) -> dict[str, Location]:
    """Return basename -> path of every file under `corpus/`; two files with one basename are an error."""
    origin = origin_of(root)
    corpus = root / CORPUS if origin is None else origin / CORPUS
    files: dict[str, Location] = {}
    twice = []
    for path in _local_files(root / CORPUS) if origin is None else _remote_files(root, origin):
        if path.name in files:
            twice.append(f"{corpus}: two files named {path.name!r}: {files[path.name]} and {path}")
        files.setdefault(path.name, path)
    if twice:
        raise BundleError("\n".join(twice))
    return files


def _local_files(corpus: Path) -> Iterator[Location]:
    if not corpus.is_dir():
        raise BundleError(f"{corpus}: no such folder; a bundle keeps its documents there")
    yield from sorted(p for p in corpus.rglob("*") if p.is_file())


def _remote_files(root: Path, origin: Remote) -> Iterator[Location]:
    """Yield the documents of a bundle whose small files alone are here, with what each must hash to."""
    for name, entry in sorted(read_info(root / INFO).files.items()):
        if name.startswith(f"{CORPUS}/"):
            yield Remote((origin / name).url, entry.sha256, entry.bytes)


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read a `train.json` in any accepted shape; raise one BundleError that names every bad row."""
    rows = load_json(path)
    if not isinstance(rows, list):
        raise BundleError(f"{path}: must be a JSON array of objects, not {_kind(rows)}")
    problems: list[str] = []
    questions = []
    for index, row in enumerate(rows):
        found = list(_row_problems(row))
        problems += [f"{path}: row {index}: {message}" for message in found]
        if not found:
            questions.append(_question(index, row))
    seen: set[int | str] = set()
    for question in questions:
        if question.id in seen:
            problems.append(f"{path}: id {question.id!r} occurs more than once")
        seen.add(question.id)
    if problems:
        raise BundleError("\n".join(problems))
    return tuple(questions)


def read_gold(path: Path) -> Iterator[Gold]:
    """Yield the lines of `gold.jsonl`."""
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield Gold.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "line"
            raise BundleError(f"{path}: line {number}: {where}: {first['msg']}") from error


def read_info(path: Path) -> BundleInfo:
    """Read `bundle.json`."""
    try:
        return BundleInfo.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise BundleError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def read_text(path: Path) -> str:
    """Return a file's text, which must be UTF-8."""
    try:
        # bytes first: read_text would turn \r\n inside a quoted passage into \n
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise BundleError(f"{path}: missing") from None
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: not UTF-8 (byte {error.start}); save it again as UTF-8") from error


def read_lines(path: Path) -> list[str]:
    """Return the lines of a JSONL file."""
    # not splitlines(): it also cuts at U+2028 and other marks that JSON keeps inside strings
    return [line for line in read_text(path).split("\n") if line]


def load_json(path: Path) -> Any:
    """Return the parsed content of a JSON file."""
    try:
        return json.loads(read_text(path).removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise BundleError(f"{path}: not JSON: {error.msg} at line {error.lineno}") from error


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _row_problems(row: object) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"must be an object, not {_kind(row)}"
        return
    for name in ("question", "answer"):
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            yield f"{name}: a non-empty string is required"
    identity = row.get("id", row.get("query_id"))
    if isinstance(identity, bool) or not isinstance(identity, int | str | None):
        yield f"id: must be an integer or a string, not {_kind(identity)}"
    if not isinstance(row.get("is_impossible", False), bool):
        yield "is_impossible: must be true or false"
    contexts = row.get("contexts")
    if contexts is None:
        return
    if not isinstance(contexts, list):
        yield f"contexts: must be an array, not {_kind(contexts)}"
    elif {type(c) for c in contexts} == {str, dict}:
        yield "contexts: mixes strings and objects; use one or the other"
    else:
        for index, context in enumerate(contexts):
            yield from _context_problems(index, context)


def _context_problems(index: int, context: object) -> Iterator[str]:
    if isinstance(context, str):
        return
    if not isinstance(context, dict):
        yield f"contexts.{index}: must be a string or an object, not {_kind(context)}"
        return
    if not isinstance(context.get("filename"), str) or not context["filename"]:
        yield f"contexts.{index}.filename: a non-empty string is required"
    if not isinstance(context.get("text"), str | None):
        yield f"contexts.{index}.text: must be a string"


def _question(index: int, row: dict[str, Any]) -> Question:
    identity = row.get("id")
    if identity is None:
        identity = row.get("query_id")
    passages = tuple(
        Passage(None, c) if isinstance(c, str) else Passage(c["filename"], c.get("text"))
        for c in row.get("contexts") or ()
    )
    return Question(
        id=index if identity is None else identity,
        question=row["question"],
        answer=row["answer"],
        is_impossible=row.get("is_impossible", False),
        contexts=passages,
    )
