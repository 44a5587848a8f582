"""Passages as other systems write them: plain strings, or objects under the usual names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from evaluation.cases import Passage
from evidence import Span

_TEXT = ("text", "content", "passage", "page_content", "chunk", "snippet", "body")
_FILE = ("filename", "file", "file_path", "document", "sourcefile", "sourcepage", "source", "title", "url", "id")
_LONGEST_NAME = 255
_PAGE = re.compile(r"#page=(\d{1,9})$")

Names = Callable[[str], str | None]
"""Returns the file of the corpus that a name means, None when it means none."""


class PassagesError(ValueError):
    """What was given is not a list of passages."""


def read_passages(given: Any, *, names: Names) -> tuple[Passage, ...]:
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
        given = texts if texts is not None else [{"filename": key, "text": value} for key, value in given.items()]
    if not isinstance(given, list):
        raise PassagesError(f"passages are {type(given).__name__}, not a list")
    return tuple(_passage(one, names) for one in given)


def _passage(given: Any, names: Names) -> Passage:
    if isinstance(given, str):
        return _from_string(given, names)
    if not isinstance(given, dict):
        raise PassagesError(f"a passage is {type(given).__name__}, not a string or an object")
    metadata = given.get("metadata")
    fields = {**metadata, **given} if isinstance(metadata, dict) else given
    text = next((fields[key] for key in _TEXT if isinstance(fields.get(key), str)), "")
    named = [fields[key] for key in _FILE if isinstance(fields.get(key), str) and fields[key].strip()]
    known = next((found for name in named if (found := names(name))), None)
    return Passage(
        text=text,
        filename=known or (named[0] if named else None),
        span=_span(fields) if known else None,
        score=read_number(fields.get("score")),
        page=_page(fields, named),
    )


def _from_string(given: str, names: Names) -> Passage:
    """Read `Part 36#page=Offers: words`, which search front ends write; other strings are words alone."""
    for match in re.finditer(r":\s", given[:_LONGEST_NAME]):
        name = given[: match.start()].strip()
        if found := names(name):
            page = _PAGE.search(name)
            return Passage(given[match.end() :], found, page=int(page[1]) if page else None)
    return Passage(given)


def _span(fields: dict[str, Any]) -> Span | None:
    ends = fields.get("span")
    if not isinstance(ends, list):
        ends = [fields.get("start"), fields.get("end")]
    whole = len(ends) == 2 and all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    return Span(*ends) if whole and 0 <= ends[0] < ends[1] else None


def _page(fields: dict[str, Any], named: list[str]) -> int | None:
    page = fields.get("page")
    if isinstance(page, int) and not isinstance(page, bool) and page > 0:
        return page
    match = next((match for name in named if (match := _PAGE.search(name))), None)
    return int(match[1]) if match else None


def read_number(value: Any) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
