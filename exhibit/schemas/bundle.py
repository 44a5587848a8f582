"""Reads and writes the files of a bundle: a strict writer for converters, a lenient reader for the evaluator."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, StrictBool, StrictInt, TypeAdapter, ValidationError

from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import CARD, CORPUS, GOLD, INFO, ORIGIN, TRAIN
from exhibit.schemas.models import BundleInfo, Gold, Row
from exhibit.schemas.parsing import format_faults, list_faults, numbered_lines, parse_json, read_text

__all__ = ["CARD", "CORPUS", "GOLD", "INFO", "ORIGIN", "TRAIN", "numbered_lines", "read_text"]


def write_train(rows: Iterable[Row], path: Path) -> None:
    """Write the questions as a JSON array, one row per line, so that a diff of two versions is readable."""
    lines = ",\n".join(json.dumps(row.model_dump(exclude_none=True), ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{lines}\n]\n" if lines else "[]\n", encoding="utf-8", newline="\n")


def write_gold(lines: Iterable[Gold], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(line.model_dump(), ensure_ascii=False) + "\n" for line in lines)


def drafts_text(drafts: Iterable[tuple[Row, Iterable[Gold]]]) -> str:
    """Return the content of `drafts.jsonl`: one line per question, with its proposed gold."""
    lines = ({**row.model_dump(), "gold": [line.model_dump() for line in gold]} for row, gold in drafts)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def write_info(info: BundleInfo, path: Path) -> None:
    left_out: dict[str, Any] = {name: True for name in ("headline", "patches") if not getattr(info, name)}
    if not any(document.labels for document in info.documents):
        left_out["documents"] = {"__all__": {"labels"}}
    text = json.dumps(info.model_dump(exclude=left_out), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _refuse_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a non-empty string is required")
    return text


def _read_objects(given: Any) -> Any:
    """Return a question's contexts as a list of objects: a string becomes `{"filename": None, "text": …}`."""
    if not isinstance(given, list):
        return [] if given is None else given
    if {type(context) for context in given} == {str, dict}:
        raise ValueError("has both strings and objects; use only strings or only objects")
    return [{"filename": None, "text": context} if isinstance(context, str) else context for context in given]


# not a pydantic pattern, which would reject a lone surrogate, as in damaged PDFs
Words = Annotated[str, AfterValidator(_refuse_blank)]


@dataclass(frozen=True)
class LooseContext:
    """A gold passage as the evaluator reads it; a plain-string context has no file name."""

    filename: Words | None
    text: str | None = None


@dataclass(frozen=True)
class Question:
    """A row of any `train.json` that the evaluator accepts, even if this project did not write it."""

    id: StrictInt | str
    question: Words
    answer: Words
    is_impossible: StrictBool = False
    contexts: Annotated[tuple[LooseContext, ...], BeforeValidator(_read_objects)] = ()


_QUESTIONS = TypeAdapter(list[Question])


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read a `train.json` in any accepted format; raise one BundleError that names every bad row."""
    rows = load_json(path)
    if not isinstance(rows, list):
        raise BundleError(f"{path}: must be a JSON array of objects")
    for index, row in enumerate(rows):
        if isinstance(row, dict):
            row["id"] = next((row[name] for name in ("id", "query_id") if row.get(name) is not None), index)
    try:
        questions = tuple(_QUESTIONS.validate_python(rows))
    except ValidationError as error:
        faults = (": ".join(filter(None, fault)) for fault in list_faults(error))
        raise BundleError("\n".join(f"{path}: {fault}" for fault in faults)) from error
    for id, count in Counter(question.id for question in questions).items():
        if count > 1:
            raise BundleError(f"{path}: id {id!r} occurs more than once; make the ids unique")
    return questions


def read_gold(path: Path) -> Iterator[Gold]:
    for number, line in numbered_lines(path):
        try:
            yield Gold.model_validate_json(line)
        except ValidationError as error:
            raise BundleError(f"{path}: line {number}: {format_faults(error, most=1)}") from error


def read_info(path: Path) -> BundleInfo:
    """Return the validated content of a `bundle.json`; raise BundleError if it is invalid."""
    try:
        return BundleInfo.model_validate_json(read_text(path))
    except ValidationError as error:
        raise BundleError(f"{path}: {format_faults(error, most=1)}") from error


def load_json(path: Path) -> Any:
    return parse_json(read_text(path), where=path)
