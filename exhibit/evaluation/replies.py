"""Reads answers and passages from servers' replies, functions' results and rows of predictions.

By default, the parts of a reply are read by the known keys below; a system's file may name other paths.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from exhibit.evaluation.cases import Passage, Reply
from exhibit.evaluation.server_files import ReplyPaths
from exhibit.evidence import Span
from exhibit.law.names import split_page
from exhibit.storage.http import Event, HttpError

ANSWERS = (
    "generated_answer", "answer", "answer.text", "answer.content", "response.response", "response", "result",
    "output_text", "choices[0].message.content", "choices[0].delta.content", "message.content", "answers[0].data",
    "answers[0].answer", "replies[0].content[0].text", "replies[0].content", "replies[0].text", "replies[0]", "output",
    "reply", "final_answer", "text", "@",
)  # fmt: skip
PASSAGES = (
    "source_nodes", "generated_contexts", "source_documents", "citations.results",
    "choices[0].message.context.citations", "choices[0].message.context.documents", "context.data_points.text",
    "context.data_points", "passages", "contexts", "retrieved_passages", "retrieved_contexts", "context", "sources",
    "retrieved_chunks", "retrieved_docs", "retrieved_documents", "documents", "answers[0].documents", "hits", "chunks",
    "results", "evidence", "citations", "references", "matches", "source_chunks", "supporting_passages", "retrieved",
)  # fmt: skip
"""The JMESPaths at which systems return the answer and the passages, never those of the expected answer."""
NAMES: dict[str, tuple[str, ...]] = {
    # a row of predictions
    "question": ("question", "query", "user_input", "input"),
    "id": ("id", "query_id", "question_id"),
    # fields of a reply: the parts with its metadata, and the metadata
    "report": (
        "message", "context", "metadata", "meta", "result", "output", "data", "answer", "usage", "usage_metadata",
        "token_usage", "llm_output",
    ),
    "event": ("type", "event", "kind", "event_type"),
    "confidence": ("confidence", "confidence_score"),
    "tokens_in": ("prompt_tokens", "input_tokens", "tokens_in", "promptTokens", "prompt_token_count"),
    "tokens_out": ("completion_tokens", "output_tokens", "tokens_out", "completionTokens", "completion_token_count"),
    "cost": ("cost", "total_cost", "cost_usd"),
    # fields of a passage, also inside its nested objects: LlamaIndex's node, Haystack's meta
    "inside": ("node", "document", "metadata", "meta", "extra_info", "content_metadata", "kwargs"),
    "text": (
        "text", "content", "passage", "page_content", "chunk", "snippet", "excerpt", "preview", "clause_text",
        "chunk_text", "quote", "quoted_text", "passage_text", "evidence_text", "highlight", "body", "description",
    ),
    "file": (
        "filename", "file_name", "file", "file_path", "document_name", "document", "docnm_kwd", "sourcefile",
        "sourcepage", "source", "title", "document_title", "doc_name", "pdf_name", "contract_name", "url",
        "document_id", "doc_id", "contract_id", "law_id", "source_id", "id",
    ),
    "page": ("page_number", "page_label", "page", "page_num", "page_no", "page_numbers", "pages"),
    "score": ("score", "similarity", "relevance_score", "similarity_score", "rerank_score", "relevance"),
    "start": ("start", "start_char_idx", "start_index", "start_char", "char_start"),
    "end": ("end", "end_char_idx", "end_index", "end_char", "char_end"),
}  # fmt: skip
STAGE_LISTS = ("retrieved", "reranked", "context")  # passages before the reranker, after it, and in the context
KNOWN = ReplyPaths()  # every part is read by known keys
_REPLY_KEYS = {"answer", "message", "choices", "source_nodes"}  # a mapping with one of these keys is no wrapper


def unwrap(reply: Any, depth: int = 4) -> Any:
    """Return the reply inside a wrapper: `output`, `data`, `[reply]` or the components of a Haystack pipeline."""
    if isinstance(reply, list) and len(reply) == 1:
        reply = reply[0]
    if not isinstance(reply, Mapping):
        return reply
    for key in ("output", "data", "result", "response", "reply"):
        inner = reply.get(key)
        if depth and isinstance(inner, Mapping) and not _REPLY_KEYS & reply.keys():
            return unwrap(inner, depth - 1)
    if "generated_answer" in reply:  # NVIDIA's results: their `answer` and `contexts` are the expected answer and gold
        texts, names = reply.get("generated_contexts"), reply.get("retrieved_docs")
        if isinstance(texts, list) and isinstance(names, list) and len(texts) == len(names):
            # a.pdf_3: page 3
            parts = (re.fullmatch(r"(.+?)(?:_(\d+))?", str(name)) or ("", "", None) for name in names)
            pairs = zip(parts, texts, strict=True)
            texts = [{"filename": part[1], "page_number": part[2], "text": text} for part, text in pairs]
        return {**reply, "answer": None, "contexts": None, "generated_contexts": texts}
    inside = [part for part in reply.values() if isinstance(part, Mapping)]
    if any({"replies", "answers", "documents"} & part.keys() for part in inside):
        return {**reply, **{key: value for part in inside for key, value in part.items()}}
    return reply


def search(path: str, fields: Any) -> Any:
    """Return the value at a JMESPath; None if no value is there, or if the path does not fit the data."""
    try:
        return jmespath.search(path, fields)
    except (JMESPathError, RecursionError):
        return None


def find_text(paths: Iterable[str], fields: Any) -> str | None:
    """Return the first text at one of the JMESPaths that is not blank; None if there is none."""
    values = (search(path, fields) for path in paths if path)
    return next((text for text in values if isinstance(text, str) and text.strip()), None)


def find_list(paths: Iterable[str], fields: Any) -> Any:
    """Return the first non-empty value at the JMESPaths, or else the first value, or else None."""
    values = [value for path in paths if path and (value := search(path, fields)) not in (None, False)]
    return next((value for value in values if _holds_any(value)), values[0] if values else None)


def _holds_any(value: Any, depth: int = 4) -> bool:
    if isinstance(value, Mapping) and depth:
        return any(_holds_any(inner, depth - 1) for inner in value.values())
    return bool(value)


def first_of(fields: Mapping[str, Any], name: str) -> Any:
    """Return the first value in a field whose name is a known spelling of `name`."""
    return next((fields[key] for key in NAMES[name] if fields.get(key) not in (None, "")), None)


def describe(value: Any, *, depth: int = 4) -> str:
    """Return a reply's structure in one line, such as `{result: text, sources: [3 × {page: number}]}`."""
    if isinstance(value, Mapping | list) and value and not depth:
        return "…"
    if isinstance(value, Mapping):
        parts = [f"{key}: {describe(inner, depth=depth - 1)}" for key, inner in list(value.items())[:12]]
        return "{" + ", ".join(parts + ["…"] * (len(value) > len(parts))) + "}"
    if isinstance(value, list):
        return f"[{len(value)} × {describe(value[0], depth=depth - 1)}]" if value else "[]"
    names = {str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), "value")


def read_number(value: Any) -> float | None:
    """Return a finite number, given as a number or, as in a CSV file, as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _read_count(value: Any) -> int | None:
    """Return a non-negative integer, given as a number or as text; None for anything else."""
    number = read_number(value)
    return int(number) if number is not None and number >= 0 and number.is_integer() else None


def _find_number(reply: Any, name: str, depth: int = 4) -> float | None:
    if not depth or not isinstance(reply, Mapping):
        return None
    parts = [*map(reply.get, NAMES["report"]), *(find_list(("replies[:1]", "choices[:1]"), reply) or ())]
    numbers = (read_number(reply.get(key)) for key in NAMES[name])
    inner = (_find_number(part, name, depth - 1) for part in parts)
    return next((number for number in (*numbers, *inner) if number is not None), None)


_MAX_NAME_CHARS = 255  # the limit of file systems
_PAGE = re.compile(r"#page=(\d{1,9})$")

FileNamer = Callable[[str], str | None]  # returns the corpus file that a name refers to; None if there is none
PassageReader = Callable[[Any], tuple[Passage, ...]]


class ReplyError(HttpError):
    """A reply, or a part of it, is missing or has an unexpected form."""


def read_passages(given: Any, *, names: FileNamer, paths: ReplyPaths = KNOWN) -> tuple[Passage, ...]:
    """Return passages in order; raise ReplyError if the value is not a list of passages."""
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given]
    elif isinstance(given, Mapping):
        # both {"text": […]} and {"part-36.pdf": "…"} occur
        texts = find_list(("text", "passages", "documents"), given)
        named = [{"filename": key, "text": value} for key, value in given.items()]
        given = texts if isinstance(texts, list) else named
    if not isinstance(given, list):
        raise ReplyError(f"passages are {type(given).__name__}, not a list")
    return tuple(_make_passage(item, names, paths) for item in given)


def _make_passage(given: Any, names: FileNamer, paths: ReplyPaths) -> Passage:
    if isinstance(given, str):
        return _parse_string(given, names)
    if not isinstance(given, Mapping):
        raise ReplyError(f"a passage is {type(given).__name__}, not a string or an object")
    own = {name: value for name, path in paths.fields.items() if (value := search(path, given)) is not None}
    fields = _flatten({**given, **own})
    named = [fields[key] for key in NAMES["file"] if isinstance(fields.get(key), str) and fields[key].strip()]
    stated, known = next(((name, file) for name in named if (file := names(name))), (named[0] if named else "", None))
    page = _read_page(fields, named, paths.pages_from)
    listed, ends = fields.get("span"), [first_of(fields, "start"), first_of(fields, "end")]
    ends = listed if isinstance(listed, list) else ends
    whole = list(map(type, ends)) == [int, int] and 0 <= ends[0] < ends[1]
    return Passage(
        text=find_text(NAMES["text"], fields) or "",
        filename=known or stated or None,
        told_filename=stated,
        span=Span(*ends) if known and whole else None,
        score=read_number(first_of(fields, "score")),
        page=page,
        told_page=page,
    )


def _flatten(given: Mapping[str, Any], depth: int = 3) -> dict[str, Any]:
    """Return the fields of a passage and of its nested objects; of two fields with one name, the outer one is used."""
    inside: dict[str, Any] = {}
    for key in NAMES["inside"]:
        if depth and isinstance(given.get(key), Mapping):
            inside = {**_flatten(given[key], depth - 1), **inside}
    return {**inside, **{key: value for key, value in given.items() if value is not None}}


def _parse_string(given: str, names: FileNamer) -> Passage:
    """Parse a passage from `nda.pdf#page=3: TEXT`, from a file name alone, or from a text without a file name."""
    for match in re.finditer(r":\s", given[:_MAX_NAME_CHARS]):
        name = given[: match.start()].strip()
        if filename := names(name):
            page = _PAGE.search(name)
            number = int(page[1]) if page else None
            return Passage(given[match.end() :], filename, page=number, told_page=number, told_filename=name)
    text = given.strip()
    for name, number in (split_page(text), (text, None)) if len(given) <= _MAX_NAME_CHARS else ():
        if name and (filename := names(name.strip(" []()*_`"))):
            return Passage("", filename, page=number, told_page=number, told_filename=text)
    return Passage(given)


def _read_page(fields: Mapping[str, Any], named: list[str], pages_from: int) -> int | None:
    # LangChain's loaders count `page` from 0; a label is the number printed on the page
    first = 0 if "page_content" in fields else pages_from
    for key in NAMES["page"]:
        value = fields.get(key)
        number = _read_count(value[0] if isinstance(value, list) and value else value)
        if number is not None:
            number += 1 - first if key == "page" else 0
            return number if number > 0 else None
    return next((int(match[1]) for name in named if (match := _PAGE.search(name))), None)


@dataclass
class Parts:
    raw: Any = None  # the reply as JSON; for a stream, its first event
    answer: str | None = None
    passages: Any = None  # the passages in the system's own form; None if there are none
    blank: str = ""  # `empty` or `null` if this is the content of the reply's field for the answer
    stages: dict[str, list[Any]] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    ended: bool | None = None  # whether the stream had an end mark; None if the reply is not a stream


def find_parts(reply: Any, paths: ReplyPaths = KNOWN) -> Parts:
    fields = unwrap(reply)
    answers, inside = (ANSWERS, fields) if paths.answer is None else (paths.answer, reply)
    listed, source = (PASSAGES, fields) if paths.passages is None else (paths.passages, reply)
    answer, passages = find_text(answers, inside), find_list(listed, source)
    if paths.passages is None and isinstance(passages, str) and passages == answer:
        passages = None
    stages = {}
    for name in STAGE_LISTS:
        value = find_list(getattr(paths, name) or (name,), source)
        if isinstance(value, list) and value and value is not passages:
            stages[name] = value
    usage = {}
    for name in ("tokens_in", "tokens_out", "cost"):
        stated = read_number(search(paths.usage[name], reply)) if name in paths.usage else None
        number = stated or _find_number(fields, name) or _find_number(reply, name)
        if number and number > 0:
            usage[name] = number
    confidence = _find_number(fields, "confidence")
    confidence = confidence if confidence is not None and 0 <= confidence <= 1 else None
    blank = "" if answer else next(filter(None, (_find_blank(path, inside) for path in answers)), "")
    return Parts(reply, answer, passages, blank, stages, usage, confidence)


def _find_blank(path: str, fields: Any) -> str:
    """Return `null` if the field at a path is null, `empty` if its text is blank, and an empty text otherwise."""
    parent, _, key = path.rpartition(".")
    inside = search(parent or "@", fields)
    if not isinstance(inside, Mapping) or key not in inside:
        return ""
    value = inside[key]
    return "null" if value is None else "empty" if isinstance(value, str) and not value.strip() else ""


def make_reply(parts: Parts, *, names: FileNamer, paths: ReplyPaths = KNOWN) -> Reply:
    read = partial(read_passages, names=names, paths=paths)
    passages, before = read(parts.passages), parts.stages.get("retrieved")
    return Reply(
        parts.answer,
        passages,
        retrieved=None if before is None else read(before),
        reranked=_number_passages(parts.stages.get("reranked"), passages, read),
        context=_number_passages(parts.stages.get("context"), passages, read),
        usage=parts.usage,
        confidence=parts.confidence,
    )


def _number_passages(given: Any, passages: Sequence[Passage], read: PassageReader) -> tuple[int, ...] | None:
    numbers = {passage.text.strip(): number for number, passage in reversed(list(enumerate(passages, 1)))}
    try:
        listed = [item if type(item) is int else numbers.get(read([item])[0].text.strip(), 0) for item in given or ()]
    except ReplyError:
        return None
    return tuple(number for number in listed if 1 <= number <= len(passages)) or None


def read_reply(row: Mapping[str, Any], names: FileNamer) -> Reply:
    """Return the reply in a row of predictions or a function's result; if it is unreadable, a reply with an error."""
    parts, fields = find_parts(row), unwrap(row)
    if fields.get("error"):
        return Reply(error=str(fields["error"]))
    if read_number(fields.get("latency")) == -1:  # evaltools writes an error as the answer, with a latency of -1
        return Reply(error=parts.answer or "the row is marked as failed")
    try:
        reply = make_reply(parts, names=names)
    except ReplyError as error:
        return Reply(error=str(error))
    if reply.answer is None and not reply.passages:
        if parts.blank != "empty":
            return Reply(error="neither an answer nor passages")
        reply = replace(reply, answer="")
    seconds = read_number(fields.get("seconds", fields.get("latency")))
    valid = seconds is not None and seconds >= 0
    return replace(reply, selected=_read_count(fields.get("selected")), seconds=seconds if valid else None)


_PIECES = ("delta.content", "delta.text", "delta", *ANSWERS, "token", "content", "data")
# words in the names of events with a piece of the answer; other events have a status, steps or sources
_ANSWER_EVENTS = {
    "", "answer", "chunk", "completion", "content", "data", "delta", "message", "response", "stream", "text", "token",
}  # fmt: skip


def join_events(events: Iterable[Event], paths: ReplyPaths, check: Callable[[Any, str], None]) -> Parts:
    """Return the parts of a streamed reply; `check` raises an error for an event that reports an error."""
    joined = Parts(ended=False)
    pieces: list[str] = []
    answers = [path for path in (_PIECES if paths.answer is None else paths.answer) if path]
    for name, event, done in events:
        joined.ended = joined.ended or done or bool(paths.end and search(paths.end, event))
        if done:
            continue
        check(event, name)
        joined.raw = event if joined.raw is None else joined.raw
        values = (search(path, event) for path in answers)
        piece = next((value for value in values if isinstance(value, str) and value), None)
        kind = name if name and name != "message" else find_text(NAMES["event"], event) or name
        if piece and _ANSWER_EVENTS.intersection(re.split(r"[\W_]", kind.casefold())):
            pieces.append(piece)
        parts = find_parts(event, paths)
        passages = event if paths.passages is None and isinstance(event, list) else parts.passages
        # servers repeat an empty default in every later event
        if isinstance(passages, list | Mapping) and len(passages) > len(joined.passages or ()):
            joined.passages = passages
        joined.stages |= parts.stages
        joined.usage |= parts.usage
        joined.confidence = parts.confidence if joined.confidence is None else joined.confidence
    # many servers end with an event that repeats the whole answer
    if len(pieces) > 1 and "".join(pieces[:-1]).strip() == pieces[-1].strip():
        pieces.pop()
    joined.answer = "".join(pieces) if "".join(pieces).strip() else None
    return joined


def describe_parts(reply: Any) -> str:
    """Describe which fields of a reply are read as the answer and the passages."""
    fields = unwrap(reply)
    answer = next((path for path in ANSWERS if find_text([path], fields)), None)
    passages = next((path for path in PASSAGES if find_list([path], fields)), None)
    return f"{f'the answer is {answer}' if answer else 'no answer'}, the passages are {passages or 'not given'}"
