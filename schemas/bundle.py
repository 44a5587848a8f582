"""The files of a bundle: a strict writer for converters, a lenient reader for the evaluator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import CARD as CARD
from exhibit.schemas.layout import CORPUS as CORPUS
from exhibit.schemas.layout import GOLD as GOLD
from exhibit.schemas.layout import INFO as INFO
from exhibit.schemas.layout import ORIGIN as ORIGIN
from exhibit.schemas.layout import PARTIAL as PARTIAL
from exhibit.schemas.layout import TRAIN as TRAIN
from exhibit.schemas.models import BundleInfo, Gold, Row
from exhibit.schemas.parsing import faults_in, parse_json

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
    left_out: dict[str, Any] = {name: True for name in ("headline", "patches") if not getattr(info, name)}
    if not any(document.labels for document in info.documents):
        left_out["documents"] = {"__all__": {"labels"}}
    record = info.model_dump(exclude=left_out)
    text = json.dumps(record, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class LooseContext:
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
    contexts: tuple[LooseContext, ...] = ()


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read a `train.json` in any accepted shape; raise one BundleError that names every bad row."""
    rows = load_json(path)
    if not isinstance(rows, list):
        raise BundleError(f"{path}: must be a JSON array of objects, not {_kind(rows)}")
    problems: list[str] = []
    questions = []
    for index, row in enumerate(rows):
        faults = list(_row_problems(row))
        problems += [f"{path}: row {index}: {message}" for message in faults]
        if not faults:
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
    for number, line in enumerate(_lines(path), 1):
        try:
            yield Gold.model_validate_json(line)
        except ValidationError as error:
            raise BundleError(f"{path}: line {number}: {faults_in(error, most=1)}") from error


def read_info(path: Path) -> BundleInfo:
    """Read `bundle.json`."""
    try:
        return BundleInfo.model_validate_json(read_text(path))
    except ValidationError as error:
        raise BundleError(f"{path}: {faults_in(error, most=1)}") from error


def read_text(path: Path) -> str:
    """Return a file's text, which must be UTF-8."""
    try:
        # bytes first: read_text would turn \r\n inside a quoted passage into \n
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise BundleError(f"{path}: missing") from None
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: not UTF-8 (byte {error.start}); save it again as UTF-8") from error
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error


def read_lines(path: Path) -> list[str]:
    """Return the lines of a JSONL file."""
    # not splitlines(): it also cuts at U+2028 and other marks that JSON keeps inside strings
    return [line for line in read_text(path).split("\n") if line]


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a JSONL file; one at a time is in memory."""
    at = 0
    try:
        with path.open("rb") as file:
            for line in file:
                if line.strip(b"\n"):
                    yield line.decode("utf-8").removesuffix("\n")
                at += len(line)
    except FileNotFoundError:
        raise BundleError(f"{path}: missing") from None
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: not UTF-8 (byte {at + error.start}); save it again as UTF-8") from error
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error


def load_json(path: Path) -> Any:
    """Return the parsed content of a JSON file."""
    return parse_json(read_text(path).removeprefix("\ufeff"), where=path)


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
        LooseContext(None, c) if isinstance(c, str) else LooseContext(c["filename"], c.get("text"))
        for c in row.get("contexts") or ()
    )
    return Question(
        id=index if identity is None else identity,
        question=row["question"],
        answer=row["answer"],
        is_impossible=row.get("is_impossible", False),
        contexts=passages,
    )
