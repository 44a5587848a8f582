"""Reads and writes the files of a bundle: a strict writer for converters, a lenient reader for the evaluator."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, StrictBool, StrictInt, TypeAdapter, ValidationError

from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import CARD as CARD
from exhibit.schemas.layout import CORPUS as CORPUS
from exhibit.schemas.layout import GOLD as GOLD
from exhibit.schemas.layout import INFO as INFO
from exhibit.schemas.layout import ORIGIN as ORIGIN
from exhibit.schemas.layout import TRAIN as TRAIN
from exhibit.schemas.models import BundleInfo, Gold, Row
from exhibit.schemas.parsing import format_faults, parse_json, read_regular

# ---------------------------------------------------------------- writing


def write_train(rows: Iterable[Row], path: Path) -> None:
    """Write the questions as a JSON array, one row per line, so that a diff of two versions is readable."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        separator = "[\n"
        for row in rows:
            record = row.model_dump()
            record["contexts"] = [c.model_dump(exclude_none=True) for c in row.contexts]
            out.write(separator + json.dumps(record, ensure_ascii=False))
            separator = ",\n"
        out.write("\n]\n" if separator == ",\n" else "[]\n")


def write_gold(lines: Iterable[Gold], path: Path) -> None:
    """Write the located gold, one JSON object per line."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for line in lines:
            out.write(json.dumps(line.model_dump(), ensure_ascii=False) + "\n")


def drafts_text(drafts: Iterable[tuple[Row, Iterable[Gold]]]) -> str:
    """Return the content of `drafts.jsonl`: one line per question, with its proposed gold."""
    lines = ({**row.model_dump(), "gold": [line.model_dump() for line in gold]} for row, gold in drafts)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def write_info(info: BundleInfo, path: Path) -> None:
    """Write `bundle.json`."""
    left_out: dict[str, Any] = {name: True for name in ("headline", "patches") if not getattr(info, name)}
    if not any(document.labels for document in info.documents):
        left_out["documents"] = {"__all__": {"labels"}}
    record = info.model_dump(exclude=left_out)
    text = json.dumps(record, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


# ---------------------------------------------------------------- reading


def _refuse_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a non-empty string is required")
    return text


# not a pattern: pydantic's patterns reject a lone surrogate, which damaged PDFs contain
Words = Annotated[str, AfterValidator(_refuse_blank)]


@dataclass(frozen=True)
class LooseContext:
    """A gold passage as the evaluator reads it; a plain-string context has no file name."""

    filename: Words | None
    text: str | None = None


@dataclass(frozen=True)
class Question:
    """A row of any `train.json` that the evaluator accepts."""

    id: int | str
    question: str
    answer: str
    is_impossible: bool = False
    contexts: tuple[LooseContext, ...] = ()


def _read_objects(given: Any) -> Any:
    """Return a question's contexts as a list of objects: a string becomes `{"filename": None, "text": …}`."""
    if not isinstance(given, list):
        return [] if given is None else given
    if {type(one) for one in given} == {str, dict}:
        raise ValueError("has both strings and objects; use only one of the two")
    return [{"filename": None, "text": one} if isinstance(one, str) else one for one in given]


class LooseRow(BaseModel):
    """A row of a `train.json` that was not written by this project."""

    id: StrictInt | str | None = None
    query_id: StrictInt | str | None = None
    question: Words
    answer: Words
    is_impossible: StrictBool = False
    contexts: Annotated[list[LooseContext], BeforeValidator(_read_objects)] = []


_ROWS = TypeAdapter(list[LooseRow])


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read a `train.json` in any accepted format; raise one BundleError that names every bad row."""
    given = load_json(path)
    if not isinstance(given, list):
        raise BundleError(f"{path}: must be a JSON array of objects")
    try:
        rows = _ROWS.validate_python(given)
    except ValidationError as error:
        raise BundleError("\n".join(f"{path}: {fault}" for fault in _list_row_faults(error))) from error
    questions: dict[int | str, Question] = {}
    for index, row in enumerate(rows):
        id = next((one for one in (row.id, row.query_id) if one is not None), index)
        if id in questions:
            raise BundleError(f"{path}: id {id!r} occurs more than once")
        questions[id] = Question(id, row.question, row.answer, row.is_impossible, tuple(row.contexts))
    return tuple(questions.values())


def _list_row_faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors():
        index, *field = fault["loc"]
        where = filter(None, (f"row {index}", ".".join(map(str, field))))
        yield f"{': '.join(where)}: {fault['msg'].removeprefix('Value error, ')}"


def read_gold(path: Path) -> Iterator[Gold]:
    """Yield the lines of `gold.jsonl`."""
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


def read_text(path: Path) -> str:
    """Return a file's text, which must be UTF-8."""
    try:
        # bytes first: read_text would turn \r\n inside a quoted passage into \n
        return read_regular(path, most=None).decode("utf-8")
    except FileNotFoundError:
        raise BundleError(f"{path}: missing") from None
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: not UTF-8 (byte {error.start}); save it again as UTF-8") from error
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-empty lines of a JSONL file with their line numbers; only one line is in memory at a time."""
    at = 0
    try:
        if path.exists() and not path.is_file():  # opening a pipe would block
            raise BundleError(f"{path}: not a file")
        with path.open("rb") as file:
            # split bytes: a line ends only at a line feed, not at U+2028, which JSON allows inside strings
            for number, line in enumerate(file, 1):
                if line.strip(b"\n"):
                    yield number, line.decode("utf-8").removesuffix("\n")
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
