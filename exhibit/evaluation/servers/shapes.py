"""Recognises the format of a reply or of a results row by its fields (shapes.toml), and reads values from it."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import TypeAdapter

from exhibit.evaluation.cases import Passage
from exhibit.evidence import Span
from exhibit.evidence.fields import REPLY
from exhibit.law.names import split_page
from exhibit.schemas.parsing import read_beside
from exhibit.storage.http_policy import HttpError


@dataclass(frozen=True)
class Shape:
    """The form in which one system writes a reply; shapes.toml explains the fields."""

    name: str
    marks: tuple[str, ...]
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    pages_from: int = 1


_KNOWN = read_beside(__file__)
SHAPES = TypeAdapter(tuple[Shape, ...]).validate_python(_KNOWN["shape"])
NAMES = REPLY
"""The known names of fields that are searched at any place in a reply."""


def recognise(reply: Any) -> Shape | None:
    """Return the shape of a reply or row; None where no shape fits."""
    fields = unwrap(reply)
    if not isinstance(fields, Mapping):
        return None
    return next((one for one in SHAPES if all(search(mark, fields) is not None for mark in one.marks)), None)


def is_truth(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a question of a bundle, whose answer is the expected answer and not a reply.

    Such a row has the field `is_impossible`, and no field with passages or a reply.
    """
    replied = {"passages", "retrieved_passages", "reply"} & row.keys()
    return "is_impossible" in row and not replied and recognise(row) in (None, SHAPES[-1])


def unwrap(reply: Any) -> Any:
    """Return the reply inside a wrapper: `output`, `data`, `[reply]` or the components of a Haystack pipeline."""
    if isinstance(reply, list) and len(reply) == 1:
        reply = reply[0]
    if not isinstance(reply, Mapping):
        return reply
    for key in ("output", "data", "result", "response"):
        inner = reply.get(key)
        if isinstance(inner, Mapping) and not {"answer", "message", "choices", "source_nodes"} & reply.keys():
            return unwrap(inner)
    inside = [part for part in reply.values() if isinstance(part, Mapping)]
    if inside and any({"replies", "answers", "documents"} & part.keys() for part in inside):
        return {**reply, **{key: value for part in inside for key, value in part.items()}}
    return reply


def search(path: str, fields: Any) -> Any:
    """Return the value at a JMESPath; None if there is none, or if the path cannot be applied to the value."""
    try:
        return _compile_path(path).search(fields)
    except (JMESPathError, RecursionError):
        return None


@lru_cache(maxsize=256)
def _compile_path(path: str) -> Any:
    return jmespath.compile(path)


def find_words(paths: Iterable[str], fields: Any) -> str | None:
    """Return the first text that is not blank at one of the JMESPaths in `paths`; None if there is none."""
    values = (search(path, fields) for path in paths)
    return next((text for text in values if isinstance(text, str) and text.strip()), None)


def read_items(path: str, fields: Any) -> list[Any]:
    """Return the list at a JMESPath in the reply `fields`.

    The list is empty if the path has no value. Raise HttpError if the value is not a list.
    """
    held = search(path, fields)
    if held and not isinstance(held, list):
        raise HttpError(f"{path} in the reply is not a list: {describe(held)}")
    return held or []


def find_list(paths: Iterable[str], fields: Any) -> Any:
    """Return the first non-empty value at one of the JMESPaths in `paths`.

    If all values are empty, return the first of them; if there are no values, return None.
    """
    held = [value for path in paths if (value := search(path, fields)) is not None and value is not False]
    return next((value for value in held if _holds_any(value)), held[0] if held else None)


def _holds_any(value: Any) -> bool:
    return any(map(_holds_any, value.values())) if isinstance(value, Mapping) else bool(value)


def describe(value: Any, *, depth: int = 4) -> str:
    """Return the structure of a reply in one line, such as `{result: text, sources: [3 × {page: number}]}`."""
    if isinstance(value, Mapping):
        if depth == 0:
            return "{…}"
        parts = [f"{key}: {describe(held, depth=depth - 1)}" for key, held in list(value.items())[:12]]
        return "{" + ", ".join([*parts, "…"] if len(value) > 12 else parts) + "}"
    if isinstance(value, list):
        inside = f"{len(value)} × {describe(value[0], depth=depth - 1)}" if value and depth else "…" if value else ""
        return f"[{inside}]"
    names = {str: "text", bool: "true or false", int: "number", float: "number"}
    return "null" if value is None else names.get(type(value), "value")


def first_of(fields: Mapping[str, Any], name: str, kind: type | tuple[type, ...] = object) -> Any:
    """Return the value of the first field whose name is a known synonym of `name` and whose type is `kind`.

    None if there is no such field. shapes.toml lists the synonyms.
    """
    held = (fields[key] for key in NAMES[name] if fields.get(key) is not None)
    return next((value for value in held if isinstance(value, kind)), None)


def read_number(value: Any) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_count(value: Any) -> int | None:
    """Return a whole number from 0, given as a number or as digits; None for anything else."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def read_usage(reply: Any) -> dict[str, float]:
    """Return the token counts and the cost of a reply under the keys `tokens_in`, `tokens_out` and `cost`.

    Servers use different field names for them. Missing values and zeros are left out.
    """
    usage: dict[str, float] = {}
    for place in _list_places(reply):
        for name in ("tokens_in", "tokens_out", "cost"):
            number = next((read_number(place[key]) for key in NAMES[name] if place.get(key)), None)
            if number is not None and number > 0:
                usage.setdefault(name, number)
    return usage


def _list_places(reply: Any, depth: int = 3) -> list[Mapping[str, Any]]:
    """Return the nested objects of a reply that may contain token counts and costs, the outermost first."""
    if not isinstance(reply, Mapping) or not depth:
        return []
    inside = [reply[key] for key in NAMES["usage"] if isinstance(reply.get(key), Mapping)]
    replies = reply.get("replies") or reply.get("choices")
    first = [one for one in replies if isinstance(one, Mapping)][:1] if isinstance(replies, list) else []
    answer = [reply["answer"]] if isinstance(reply.get("answer"), Mapping) else []
    return [*inside, *(place for one in [*inside, *first, *answer] for place in _list_places(one, depth - 1))]


def read_confidence(reply: Any) -> float | None:
    """Return the confidence, from 0 to 1, of a reply or of one of its events; None where there is none."""
    for event in reply if isinstance(reply, list) else [reply]:
        for place in _list_wrapped(event):
            number = read_number(first_of(place, "confidence", (int, float)))
            if number is not None and 0 <= number <= 1:
                return number
    return None


def _list_wrapped(reply: Any, depth: int = 2) -> Iterator[Mapping[str, Any]]:
    if isinstance(reply, Mapping):
        yield reply
        for name in NAMES["wrapper"] if depth else ():
            yield from _list_wrapped(reply.get(name), depth - 1)


_LONGEST_NAME = 255  # characters of a file name, the limit of file systems
_PAGE = re.compile(r"#page=(\d{1,9})$")
_FOOTER = re.compile(r"(?im)^[#*_ ]{0,6}(?:sources?|references?|citations?|quellen?|zdroje)[*_ ]{0,4}:[*_ ]{0,4}")
_MOST_SOURCES = 100
"""The number of lines of such a list that are read."""
_MARK = re.compile(r"^(?:[-*•]|\[?\d{1,3}[\].):])\s*")

Names = Callable[[str], str | None]
"""Returns the corpus file that a name means; None where it means none."""


class PassagesError(ValueError):
    """An error: a value is not a list of passages."""


def read_passages(given: Any, *, names: Names, pages_from: int = 1) -> tuple[Passage, ...]:
    """Return passages in order; raise PassagesError where the value is not a list of passages."""
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given]
    elif isinstance(given, dict):
        # both {"text": […]} and {"part-36.pdf": "…"} occur
        texts = next(
            (given[key] for key in ("text", "passages", "documents") if isinstance(given.get(key), list)), None
        )
        if texts is None and all(isinstance(one, dict) for one in given.values()):
            texts = list(given.values())  # {"3": {…}, "7": {…}}: passages by number
        given = texts if texts is not None else [{"filename": key, "text": value} for key, value in given.items()]
    if not isinstance(given, list):
        raise PassagesError(f"passages are {type(given).__name__}, not a list")
    return tuple(_make_passage(one, names, pages_from) for one in given)


def numbers_of(given: Any, passages: Sequence[Passage], *, names: Names) -> tuple[int, ...] | None:
    """Return the numbers, from 1, of the passages that the list `given` refers to.

    The items of `given` are passage numbers or passage texts; items that match no passage are left out. None if
    `given` is not a list, or if none of its items matches a passage.
    """
    if not isinstance(given, list):
        return None
    places = {passage.text.strip(): number for number, passage in reversed(list(enumerate(passages, 1)))}
    try:
        numbers = [
            one if type(one) is int else places.get(read_passages([one], names=names)[0].text.strip()) for one in given
        ]
    except PassagesError:
        return None
    known = tuple(number for number in numbers if number is not None and 1 <= number <= len(passages))
    return known if known or not given else None


STAGE_LISTS = ("retrieved", "reranked", "context")
"""The fields of a reply with the passages of a stage: before the reranker, after it, and in the context."""


def read_stage_lists(
    fields: Any, passages: Any, paths: Mapping[str, Iterable[str]] | None = None
) -> dict[str, list[Any]]:
    """Return the passage lists that a reply has for the stages `retrieved`, `reranked` and `context`, by stage.

    The list of a stage is read at the stage's JMESPaths in `paths`; if the stage has no paths, it is read from
    the field with the stage's name. Empty lists, and the list that is already read as `passages`, are left out.
    """
    lists = {}
    for name in STAGE_LISTS:
        held = find_list((paths or {}).get(name) or (name,), fields)
        # servers repeat empty lists that they never fill
        if isinstance(held, list) and held and held is not passages:
            lists[name] = held
    return lists


def read_stages(
    lists: Mapping[str, list[Any]], passages: Sequence[Passage], *, names: Names, pages_from: int = 1
) -> dict[str, Any]:
    """Return the values for the fields `retrieved`, `reranked` and `context` of a `Reply`, by field name.

    `lists` has the list of passages after each stage. The value of `retrieved` is a tuple of passages. The
    values of `reranked` and `context` are tuples of positions in `passages`, counted from 1. A value is None if
    its list is missing. Positions are also None if no listed passage is in `passages`.
    """
    before = lists.get("retrieved")
    return {
        "retrieved": None if before is None else read_passages(before, names=names, pages_from=pages_from),
        "reranked": numbers_of(lists.get("reranked"), passages, names=names),
        "context": numbers_of(lists.get("context"), passages, names=names),
    }


def _make_passage(given: Any, names: Names, pages_from: int) -> Passage:
    if isinstance(given, str):
        return _parse_string(given, names)
    if not isinstance(given, dict):
        raise PassagesError(f"a passage is {type(given).__name__}, not a string or an object")
    fields = _flatten(given)
    named = [fields[key] for key in NAMES["file"] if isinstance(fields.get(key), str) and fields[key].strip()]
    said, known = next(((name, file) for name in named if (file := names(name))), (named[0] if named else "", None))
    page = _read_page(fields, named, pages_from)
    return Passage(
        text=first_of(fields, "text", str) or "",
        filename=known or said or None,
        told_filename=said,
        told_provision=str(first_of(fields, "provision", (str, int)) or "")[:_LONGEST_NAME],
        span=_read_span(fields) if known else None,
        score=read_number(first_of(fields, "score")),
        page=page,
        told_page=page,
        told_box=_read_numbers(fields, "box", 4),
        told_size=_read_numbers(fields, "size", 2),
    )


def _flatten(given: Mapping[str, Any], depth: int = 3) -> dict[str, Any]:
    """Return a passage's fields with those of its nested objects; the passage's own fields take precedence."""
    inside: dict[str, Any] = {}
    for key in NAMES["inside"]:
        if depth and isinstance(given.get(key), Mapping):
            inside = {**_flatten(given[key], depth - 1), **inside}
    return {**inside, **{key: value for key, value in given.items() if value is not None}}


def _parse_string(given: str, names: Names) -> Passage:
    """Parse a passage from `nda.pdf#page=3: TEXT`, from a file name alone, or from a text without a file name."""
    for match in re.finditer(r":\s", given[:_LONGEST_NAME]):
        name = given[: match.start()].strip()
        if filename := names(name):
            page = _PAGE.search(name)
            number = int(page[1]) if page else None
            return Passage(given[match.end() :], filename, page=number, told_page=number, told_filename=name)
    return _parse_named_file(given, names) or Passage(given)


def _parse_named_file(given: str, names: Names) -> Passage | None:
    """Return the passage that a string such as `[1] nda.pdf, p. 3` names; None where it names no corpus file."""
    for text in dict.fromkeys((given.strip(), _MARK.sub("", given.strip()))) if len(given) <= _LONGEST_NAME else ():
        for name, page in (split_page(text), (text, None)):
            if name and (file := names(name.strip(" []()*_`"))):
                return Passage("", file, page=page, told_page=page, told_filename=text)
    return None


def find_named_sources(answer: str, names: Names) -> tuple[Passage, ...]:
    """Return the files that an answer lists at its end: `Sources:` and then `[1] nda.pdf, p. 3`."""
    head = _FOOTER.search(answer)
    if head is None:
        return ()
    lines = [piece for line in answer[head.end() :].splitlines() for piece in line.split(";")]
    found = (_parse_named_file(line.strip(), names) for line in lines[:_MOST_SOURCES] if line.strip())
    return tuple(dict.fromkeys(passage for passage in found if passage is not None))


def _read_span(fields: Mapping[str, Any]) -> Span | None:
    ends = fields.get("span")
    if not isinstance(ends, list):
        ends = [first_of(fields, "start"), first_of(fields, "end")]
    whole = len(ends) == 2 and all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    return Span(*ends) if whole and 0 <= ends[0] < ends[1] else None


def _read_numbers(fields: Mapping[str, Any], name: str, count: int) -> tuple[float, ...] | None:
    """Return the numbers in a passage's field whose name is a known synonym of `name`.

    The field must have exactly `count` numbers, not all 0. The first such field counts; None if there is none.
    """
    for key in NAMES[name]:
        value = _parse_list(fields.get(key))
        numbers = [read_number(one) for one in value] if isinstance(value, list) else []
        known = tuple(number for number in numbers if number is not None)
        if len(known) == len(numbers) == count and any(known):
            return known
    return None


def _parse_list(value: Any) -> Any:
    """Return the parsed list if `value` is a JSON list in a string, such as `"[1, 2]"`.

    Return None if such a string is not valid JSON. Return any other value unchanged.
    """
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return None
    return value


def _read_page(fields: Mapping[str, Any], named: list[str], pages_from: int) -> int | None:
    for key in NAMES["page"]:
        # a label is the number printed on the page: it counts from 1 in every system
        held = fields.get(key)
        number = read_count(held[0] if isinstance(held, list) and held else held)
        if number is not None:
            number += 1 - pages_from if key == "page" else 0
            return number if number > 0 else None
    match = next((match for name in named if (match := _PAGE.search(name))), None)
    return int(match[1]) if match else None
