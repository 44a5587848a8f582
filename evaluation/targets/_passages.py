"""Passages as other systems write them: plain strings, or objects under the usual names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from exhibit.evaluation.cases import Passage
from exhibit.evaluation.targets._usage import read_count, read_number
from exhibit.evidence import Span

_TEXT = ("text", "content", "passage", "page_content", "chunk", "snippet", "body", "description")
_FILE = (
    "filename", "file_name", "file", "file_path", "document_name", "document", "docnm_kwd", "sourcefile", "sourcepage",
    "source", "title", "url", "document_id", "id",
)  # fmt: skip
_INSIDE = ("node", "document", "metadata", "meta", "extra_info", "content_metadata", "kwargs")
"""Objects inside a passage whose fields are the passage's own: LlamaIndex's node, Haystack's meta …"""
_PAGES = ("page_number", "page_label", "page")
_BOXES = ("box", "bbox", "bounding_box", "location")
_SIZES = ("page_size", "location_max_dimensions")
_LONGEST_NAME = 255  # of a file, as file systems have it
_PAGE = re.compile(r"#page=(\d{1,9})$")

Names = Callable[[str], str | None]
"""Returns the file of the corpus that a name means, None when it means none."""


class PassagesError(ValueError):
    """What was given is not a list of passages."""


def read_passages(given: Any, *, names: Names, pages_from: int = 1) -> tuple[Passage, ...]:
    """Return passages in order; raise PassagesError when they are nothing of the kind."""
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given]
    elif isinstance(given, dict):
        # {"text": […]} and {"part-36.pdf": "…"} are both seen
        texts = next(
            (given[key] for key in ("text", "passages", "documents") if isinstance(given.get(key), list)), None
        )
        if texts is None and all(isinstance(one, dict) for one in given.values()):
            texts = list(given.values())  # {"3": {…}, "7": {…}}: passages by their numbers
        given = texts if texts is not None else [{"filename": key, "text": value} for key, value in given.items()]
    if not isinstance(given, list):
        raise PassagesError(f"passages are {type(given).__name__}, not a list")
    return tuple(_passage(one, names, pages_from) for one in given)


def _passage(given: Any, names: Names, pages_from: int) -> Passage:
    if isinstance(given, str):
        return _from_string(given, names)
    if not isinstance(given, dict):
        raise PassagesError(f"a passage is {type(given).__name__}, not a string or an object")
    fields = _flat(given)
    text = next((fields[key] for key in _TEXT if isinstance(fields.get(key), str)), "")
    named = [fields[key] for key in _FILE if isinstance(fields.get(key), str) and fields[key].strip()]
    told, known = next(((name, file) for name in named if (file := names(name))), (named[0] if named else "", None))
    page = _page(fields, named, pages_from)
    return Passage(
        text=text,
        filename=known or told or None,
        told_filename=told,
        span=_span(fields) if known else None,
        score=read_number(fields.get("score", fields.get("similarity"))),
        page=page,
        told_page=page,
        told_box=_numbers(fields, _BOXES, 4),
        told_size=_numbers(fields, _SIZES, 2),
    )


def _flat(given: Mapping[str, Any], depth: int = 3) -> dict[str, Any]:
    """Return a passage's fields with those of the objects inside it; its own come first."""
    inside: dict[str, Any] = {}
    for key in _INSIDE:
        if depth and isinstance(given.get(key), Mapping):
            inside = {**_flat(given[key], depth - 1), **inside}
    return {**inside, **{key: value for key, value in given.items() if value is not None}}


def _from_string(given: str, names: Names) -> Passage:
    """Read `Part 36#page=Offers: words`, which search front ends write; other strings are words alone."""
    for match in re.finditer(r":\s", given[:_LONGEST_NAME]):
        name = given[: match.start()].strip()
        if filename := names(name):
            page = _PAGE.search(name)
            number = int(page[1]) if page else None
            return Passage(given[match.end() :], filename, page=number, told_page=number, told_filename=name)
    return Passage(given)


def _span(fields: Mapping[str, Any]) -> Span | None:
    ends = fields.get("span")
    if not isinstance(ends, list):
        ends = [
            fields.get("start", fields.get("start_char_idx", fields.get("start_index"))),
            fields.get("end", fields.get("end_char_idx")),
        ]
    whole = len(ends) == 2 and all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    return Span(*ends) if whole and 0 <= ends[0] < ends[1] else None


def _numbers(fields: Mapping[str, Any], keys: tuple[str, ...], count: int) -> tuple[float, ...] | None:
    """Return the first of some fields that is so many numbers."""
    for key in keys:
        value = fields.get(key)
        numbers = [read_number(one) for one in value] if isinstance(value, list) else []
        known = tuple(number for number in numbers if number is not None)
        if len(known) == len(numbers) == count and any(known):
            return known
    return None


def _page(fields: Mapping[str, Any], named: list[str], pages_from: int) -> int | None:
    for key in _PAGES:
        # a label is what is printed on the page: it counts from 1 whoever writes it
        number = read_count(fields.get(key))
        if number is not None:
            number += 1 - pages_from if key == "page" else 0
            return number if number > 0 else None
    match = next((match for name in named if (match := _PAGE.search(name))), None)
    return int(match[1]) if match else None
