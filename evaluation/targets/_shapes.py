"""The shapes in which RAG systems give replies, known by their fields: over HTTP, and in files of predictions.

To teach it one more system, add a `Shape`: the paths that must be there for it to be recognised, where its answer and
its passages are, and which of its fields are the truth and never a reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from exhibit.storage.http import HttpError


@dataclass(frozen=True)
class Shape:
    """How one system writes a reply."""

    name: str
    marks: tuple[str, ...]
    """JMESPaths; every one must be there."""
    answers: tuple[str, ...] = ()
    """JMESPaths of the answer; the first that has words counts."""
    passages: tuple[str, ...] = ()
    """JMESPaths of the passages; the first that has any counts."""
    truths: tuple[str, ...] = ()
    """Fields that hold what should have been answered."""
    pages_from: int = 1
    """The number of a document's first page in its passages."""


SHAPES: tuple[Shape, ...] = (
    Shape("a run of this project", ("reply.passages", "scores"), ("reply.answer",), ("reply.passages",), ("truth",)),
    Shape(
        "NVIDIA RAG blueprint's results",
        ("generated_answer",),
        ("generated_answer",),
        ("nvidia_passages", "generated_contexts", "retrieved_docs"),
        ("answer", "contexts"),
    ),
    Shape(
        "ragas",
        ("user_input", "response || retrieved_contexts"),
        ("response",),
        ("retrieved_contexts",),
        ("reference", "reference_contexts"),
    ),
    Shape("LlamaIndex", ("source_nodes",), ("response.response", "response", "answer"), ("source_nodes",)),
    Shape(
        "LangChain",
        ("source_documents || result",),
        ("result", "answer", "output_text"),
        ("source_documents", "context"),
        ("truth", "ground_truth"),
        pages_from=0,
    ),
    Shape(
        "LangChain",
        ("answer", "(context || documents)[?page_content] | [0]"),
        ("answer",),
        ("context", "documents"),
        ("truth", "ground_truth"),
        pages_from=0,
    ),
    Shape(
        "Haystack",
        ("(answers[?data || answer] | [0]) || replies",),
        (
            "answers[0].data", "answers[0].answer", "replies[0].content[0].text", "replies[0].content",
            "replies[0].text", "replies[0]",
        ),
        ("documents", "answers[0].documents"),
    ),
    Shape("Haystack", ("documents[?content] | [0]",), ("answer",), ("documents",)),
    Shape(
        "a chat server with citations",
        ("choices[0].[message, delta][] | [0]",),
        ("choices[0].message.content", "choices[0].delta.content"),
        (
            "citations.results", "choices[0].message.context.citations", "choices[0].message.context.documents",
            "context.data_points.text", "context.data_points", "citations", "context",
        ),
    ),
    Shape(
        "a chat server",
        ("message.content",),
        ("message.content",),
        ("context.data_points.text", "context.data_points", "contexts", "passages", "sources"),
    ),
    Shape("evaltools", ("question", "answer", "context"), ("answer",), ("context",), ("truth", "ground_truth")),
    Shape("rankings as score.py takes them", ("query", "retrieved_passages"), (), ("retrieved_passages",)),
    Shape(
        "answers with passages",
        ("answer || response || passages || contexts || retrieved_passages || output",),
        ("answer", "response", "output", "text"),
        ("passages", "contexts", "retrieved_passages", "context", "sources", "documents", "hits", "chunks"),
        ("truth", "ground_truth", "reference", "expected_answer"),
    ),
)  # fmt: skip
"""The most telling first: what only one system writes is looked for before what many do."""


def recognise(reply: Any) -> Shape | None:
    """Return the shape of a reply or row, None when it is like none of them."""
    fields = unwrap(reply)
    if not isinstance(fields, Mapping):
        return None
    return next((shape for shape in SHAPES if all(has(mark, fields) for mark in shape.marks)), None)


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


def has(path: str, fields: Any) -> bool:
    """Return whether a path leads to anything."""
    return search(path, fields) is not None


def search(path: str, fields: Any) -> Any:
    """Return what is at a path; None where nothing is, or a function of it does not take what it is given."""
    try:
        return _compiled(path).search(fields)
    except JMESPathError:
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
    told = search(path, fields)
    if told and not isinstance(told, list):
        raise HttpError(f"{path} of the reply is no list: {describe(told)}")
    return told or []


def first_list(paths: Iterable[str], fields: Any) -> Any:
    """Return what the first of some paths has that is not empty; what is empty where all are; None where none is."""
    held = [value for path in paths if (value := search(path, fields)) is not None]
    return next((value for value in held if _holds_any(value)), held[0] if held else None)


def _holds_any(value: Any) -> bool:
    return any(map(_holds_any, value.values())) if isinstance(value, Mapping) else bool(value)


# ---------------------------------------------------------------- a reply that is like none of them


def describe(value: Any, *, depth: int = 4) -> str:
    """Return the shape of a reply in one line: `{result: text, sources: [3 × {page: number}]}`, without its words."""
    if isinstance(value, Mapping):
        if depth == 0:
            return "{…}"
        parts = [f"{key}: {describe(held, depth=depth - 1)}" for key, held in list(value.items())[:12]]
        return "{" + ", ".join([*parts, "…"] if len(value) > 12 else parts) + "}"
    if isinstance(value, list):
        return (
            f"[{len(value)} × {describe(value[0], depth=depth - 1)}]"
            if value and depth
            else "[]"
            if not value
            else "[…]"
        )
    names = {str: "text", bool: "true or false", int: "number", float: "number"}
    return "null" if value is None else names.get(type(value), "value")


def suggest(reply: Any) -> tuple[list[str], list[str]]:
    """Return the paths at which a reply may have its answer and its passages, the likeliest first."""
    texts: list[tuple[str, int]] = []
    lists: list[tuple[str, int]] = []
    for path, value in _walk(reply, ""):
        if isinstance(value, str) and " " in value.strip():
            texts.append((path, len(value)))
        elif isinstance(value, list) and value and _like_passages(value):
            lists.append((path, len(value)))
    inside = tuple(f"{path}[" for path, _ in lists)
    answers = [path for path, _ in sorted(texts, key=lambda pair: -pair[1]) if not path.startswith(inside or ("\0",))]
    return answers[:3], [path for path, _ in sorted(lists, key=lambda pair: -pair[1])][:3]


def _like_passages(value: Sequence[Any]) -> bool:
    first = value[0]
    if isinstance(first, str):
        return len(first.split()) > 2
    return isinstance(first, Mapping) and any(isinstance(v, str) and len(v.split()) > 2 for _, v in _walk(first, ""))


def _walk(value: Any, path: str, depth: int = 5) -> Iterator[tuple[str, Any]]:
    if path:
        yield path, value
    if depth == 0:
        return
    if isinstance(value, Mapping):
        for key, held in value.items():
            name = str(key) if str(key).isidentifier() else '"' + str(key) + '"'
            yield from _walk(held, f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(value, list):
        for index, held in enumerate(value[:2]):
            yield from _walk(held, f"{path}[{index}]", depth - 1)
