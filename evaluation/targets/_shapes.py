"""Replies and rows known by their fields, as shapes.toml describes them, and what is at a path of one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from exhibit.storage.http import HttpError


@dataclass(frozen=True)
class Shape:
    """How one system writes a reply; shapes.toml says what the fields are."""

    name: str
    marks: tuple[str, ...]
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    pages_from: int = 1


def _read() -> tuple[Shape, ...]:
    told: Any = tomllib.loads((Path(__file__).parent / "shapes.toml").read_text(encoding="utf-8"))["shape"]
    frozen: Any = [{key: tuple(v) if isinstance(v, list) else v for key, v in one.items()} for one in told]
    return tuple(Shape(**one) for one in frozen)


SHAPES = _read()


def recognise(reply: Any) -> Shape | None:
    """Return the shape of a reply or row, None when it is like none of them."""
    fields = unwrap(reply)
    if not isinstance(fields, Mapping):
        return None
    return next((one for one in SHAPES if all(search(mark, fields) is not None for mark in one.marks)), None)


def is_truth(row: Mapping[str, Any]) -> bool:
    """Return whether a row is one of a bundle's questions: its answer is the truth, not a reply."""
    replied = {"passages", "retrieved_passages", "reply"} & row.keys()
    return "is_impossible" in row and not replied and recognise(row) in (None, SHAPES[-1])


def unwrap(reply: Any) -> Any:
    """Return what a server wraps: LangServe's `output`, the components of a Haystack pipeline, `data`, `[reply]`."""
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
    """Return what is at a path; None where nothing is, or a function of it does not take what it is given."""
    try:
        return _compiled(path).search(fields)
    except (JMESPathError, RecursionError):
        return None


@lru_cache(maxsize=256)
def _compiled(path: str) -> Any:
    return jmespath.compile(path)


def first_words(paths: Iterable[str], fields: Any) -> str | None:
    """Return the first text with words in it at some paths."""
    values = (search(path, fields) for path in paths)
    return next((text for text in values if isinstance(text, str) and text.strip()), None)


def items_at(path: str, fields: Any) -> list[Any]:
    """Return the list at a path, empty where there is nothing; raise where a server sent something else."""
    held = search(path, fields)
    if held and not isinstance(held, list):
        raise HttpError(f"{path} of the reply is no list: {describe(held)}")
    return held or []


def first_list(paths: Iterable[str], fields: Any) -> Any:
    """Return what the first of some paths has that is not empty; what is empty where all are; None where none is."""
    held = [value for path in paths if (value := search(path, fields)) is not None and value is not False]
    return next((value for value in held if _holds_any(value)), held[0] if held else None)


def _holds_any(value: Any) -> bool:
    return any(map(_holds_any, value.values())) if isinstance(value, Mapping) else bool(value)


def describe(value: Any, *, depth: int = 4) -> str:
    """Return the shape of a reply in one line: `{result: text, sources: [3 × {page: number}]}`, without its words."""
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
