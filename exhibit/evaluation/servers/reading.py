"""Read a server's reply, whole or streamed.

Values are read at the paths in the system's TOML file; without a path, by the usual names of the fields.
"""

import codecs
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from exhibit.evaluation.servers import shapes
from exhibit.evaluation.servers.system import ReplyPart, System
from exhibit.storage.http import Response
from exhibit.storage.http_policy import STREAMED, Event, HttpError, Secrets, read_events, read_texts

_CONTEXTS = sorted(
    {path for shape in shapes.SHAPES for path in shape.passages}, key=lambda path: (-path.count("."), path)
)
"""Paths of passages in an event, the longest first: `context.data_points` is inside `context`."""
_KEPT = 3
"""The number of a stream's events that are kept for a description of it."""


class NoAnswerError(HttpError):
    """An error: a reply has no answer although one is expected."""

    def __init__(self, message: str, reply: Any, *, blank: bool) -> None:
        super().__init__(message)
        self.reply = reply
        self.blank = blank
        """Whether the reply has the field of the answer, but without text."""


@dataclass
class Read:
    """The parts of a server's reply, as far as they were recognised."""

    raw: Any = None
    answer: str | None = None
    passages: Any = None
    """The passages in the server's own form; None where there are none."""
    stages: dict[str, list[Any]] = field(default_factory=dict)
    """The lists that the reply has for its stages: `retrieved`, `reranked`, `context`."""
    shape: str = ""
    pages_from: int = 1
    usage: dict[str, float] = field(default_factory=dict)
    first_token: float | None = None
    selected: int | None = None
    """The number of passages that the answer was made from, where it is known."""
    seconds: float | None = None
    """The seconds until the answer, where the exchange included further requests."""
    blank: bool = False
    """Whether the reply has the field of an answer."""


class ReplyReader:
    """A reader for the replies of one server."""

    def __init__(self, system: System, secrets: Secrets, *, stream: bool = False) -> None:
        """Prepare to read a server's replies; the system's TOML file gives the paths of the answer and passages.

        With `stream`, a body that is not one JSON value is read as a stream of JSON lines.
        """
        self._reply, self._stream, self._secrets, self._asked_stream = system.reply, system.stream, secrets, stream
        self.answers: bool | None = None
        """Whether the server answers, or only retrieves; None until a reply has shown it."""
        self._ends = False
        """Whether the server marks the end of a stream; then a stream without the mark is incomplete."""

    def read(self, response: Response) -> Read:
        """Return the answer, the passages and the usage in a response; raise HttpError if the response is invalid."""
        began = time.monotonic()
        form, streamed = self._stream.format, response.kind in STREAMED
        if streamed and form != "text":
            return self._read_event_stream(read_events(response.lines()), began)
        if form == "parts" and response.kind != "application/json":
            return self._read_event_stream(self._read_parts(response), began)
        if form == "text" and response.kind != "application/json":  # the answer's text only, or events of it
            texts = (
                read_texts(response.lines())
                if streamed
                else codecs.iterdecode(response.read_parts(), "utf-8", "replace")
            )
            return self._read_event_stream((Event("", text) for text in texts), began)
        data = response.read()
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            if self._asked_stream and data.strip():  # lines of JSON with another content type
                return self._read_event_stream(read_events(data.decode("utf-8", "replace").split("\n")), began)
            raise make_json_error(data, self._secrets) from None
        return self.read_whole(reply)

    # ---------------------------------------------------------------- a whole reply

    def read_whole(self, reply: Any) -> Read:
        """Return the answer, the passages and the usage data of a reply that arrived as a whole, not as a stream."""
        self.check(reply)
        paths = self._reply
        shape = shapes.recognise(reply) if paths.answer is None or paths.passages is None else None
        inner = shapes.unwrap(reply) if shape or paths.unwrap else reply
        read = Read(reply, shape=shape.name if shape and paths.answer is None else "")
        read.pages_from = shape.pages_from if shape else paths.pages_from
        answers = paths.answer if paths.answer is not None else shape.answers if shape else ()
        contexts = paths.passages if paths.passages is not None else shape.passages if shape else ()
        whole = reply if paths.answer is not None and not paths.unwrap else inner
        read.answer = _find_words(answers, whole) or (_find_words(answers, reply) if paths.unwrap else None)
        source = reply if paths.passages is not None and whole is reply else inner
        read.passages, read.stages = self.passages(contexts, source), self._read_stage_lists(contexts, source)
        read.usage = self._read_spent(reply) or shapes.read_usage(inner) or shapes.read_usage(reply)
        read.blank = any(shapes.search(path, whole) is not None for path in answers if path)
        return self._finish(read)

    def passages(self, paths: Iterable[str], reply: Any) -> Any:
        """Return the value at the first of the paths where the reply has passages.

        The fields of the passages are renamed as the system's TOML file says.
        """
        return self._rename_fields(shapes.find_list([path for path in paths if path], reply))

    def _read_stage_lists(self, paths: Iterable[str], reply: Any) -> dict[str, list[Any]]:
        """Return the passage lists of a reply by stage; the keys are `retrieved`, `reranked` and `context`.

        A list that is already read as the reply's passages, at one of `paths`, is left out.
        """
        taken = shapes.find_list([path for path in paths if path], reply)
        named = {name: getattr(self._reply, name) for name in shapes.STAGE_LISTS}
        return {name: self._rename_fields(held) for name, held in shapes.read_stage_lists(reply, taken, named).items()}

    def _rename_fields(self, held: Any) -> Any:
        if isinstance(held, list) and self._reply.fields:
            return [self._rename_passage(one) for one in held]
        if isinstance(held, Mapping) and self._reply.fields:
            return {key: self._rename_passage(one) for key, one in held.items()}
        return held

    def _rename_passage(self, passage: Any) -> Any:
        if not isinstance(passage, Mapping):
            return passage
        named = {name: shapes.search(path, passage) for name, path in self._reply.fields.items()}
        return {**passage, **{name: value for name, value in named.items() if value is not None}}

    def _read_spent(self, reply: Any) -> dict[str, float]:
        spent = {name: shapes.read_number(shapes.search(path, reply)) for name, path in self._reply.usage.items()}
        return {name: number for name, number in spent.items() if number}

    def check(self, reply: Any) -> None:
        """Raise an error if the reply itself reports one."""
        error = shapes.search(self._reply.error, reply) if self._reply.error else None
        if not error and isinstance(reply, Mapping):
            error = reply.get("error")
        if error:
            refused = bool(self._reply.refused) and shapes.search(self._reply.refused, reply)
            raise self._make_error(error, status=401 if refused else None)

    def _make_error(self, error: Any, *, transient: bool = False, status: int | None = None) -> HttpError:
        words = self._secrets.words(error if isinstance(error, str) else json.dumps(error))
        return HttpError(f"the server reports an error: {words}", transient=transient, status=status)

    # ---------------------------------------------------------------- a stream

    def _read_event_stream(self, events: Iterable[Event], began: float) -> Read:
        read = Read([], shape="a stream" if self._reply.answer is None else "", pages_from=self._reply.pages_from)
        pieces: list[tuple[str, str]] = []
        ended, keyed = False, self._stream
        answers = self._choose_paths(keyed.answer, self._reply.answer, shapes.NAMES["piece"])
        contexts = self._choose_paths(keyed.passages, self._reply.passages, _CONTEXTS)
        auto = keyed.passages is None and self._reply.passages is None
        for name, event, done in events:
            ended = ended or done or bool(keyed.end and shapes.search(keyed.end, event))
            if done:
                continue
            error = (event if name == "error" else None) or (shapes.search(keyed.error, event) if keyed.error else None)
            if error:
                raise self._make_error(error, transient=True)
            self.check(event)
            if len(read.raw) < _KEPT:
                read.raw.append(event)
            kind = _find_kind(name, event)
            if (piece := _find_piece(event, answers)) and _has_answer_part(kind, keyed.events):
                pieces.append((kind, piece))
                if read.first_token is None and piece.strip():
                    read.first_token = time.monotonic() - began
            passages = self._read_event_passages(kind, event, contexts, auto=auto)
            read.stages |= self._read_stage_lists(contexts, shapes.unwrap(event) if auto else event)
            # servers repeat an empty default in every later event
            if passages and (not read.passages or _count_passages(passages) > _count_passages(read.passages)):
                read.passages = passages
            spent = shapes.unwrap(event) if auto else shapes.search(keyed.usage, event)
            read.usage = {**read.usage, **(self._read_spent(event) or shapes.read_usage(spent))}
        words = _join_pieces(pieces)
        read.answer, read.blank = words if words.strip() else None, bool(pieces)
        return self._finish(read, ended=ended)

    def _read_event_passages(self, kind: str, event: Any, contexts: list[str], *, auto: bool) -> Any:
        """Return the passages of a stream event; an event with a name such as `sources` may itself be the list."""
        if auto and isinstance(event, list) and kind in shapes.NAMES["citing"]:
            return event
        return self.passages(contexts, shapes.unwrap(event) if auto else event)

    @staticmethod
    def _choose_paths(own: Iterable[str] | None, whole: Iterable[str] | None, usual: Iterable[str]) -> list[str]:
        """Return the paths to read in a stream event.

        They are the paths for streams (`own`); if these are not set, the paths for replies that are not streamed
        (`whole`); if these are not set either, the `usual` paths.
        """
        return [path for path in (own if own is not None else whole if whole is not None else usual) if path]

    def _read_parts(self, response: Response) -> Iterator[Event]:
        """Yield an event for each line of the form LETTER:JSON; raise HttpError for any other line."""
        for line in response.lines():
            letter, sign, text = line.partition(":")
            if not line.strip():
                continue
            try:
                if not sign or len(letter) > 1:
                    raise ValueError
                yield Event("", {letter: json.loads(text)})
            except (ValueError, RecursionError):
                words = self._secrets.words(line[:200])
                raise HttpError(f"a line of the stream does not have the form LETTER:JSON: {words}") from None

    # ---------------------------------------------------------------- the finished reply

    def _finish(self, read: Read, *, ended: bool | None = None) -> Read:
        """Return a reply after final checks; raise an error if its answer is missing or its stream is incomplete."""
        if ended:
            self._ends = True
        elif ended is False and self._ends:
            raise HttpError("the reply is incomplete: its stream has no end mark", transient=True)
        if read.answer is None:
            silent = self._reply.answer == ("",) or (bool(read.passages) and not self.answers)
            if read.blank or not silent:
                path = self._reply.answer[0] if self._reply.answer and not ended else ""
                where = read.raw[0] if ended is not None and read.raw else read.raw
                asked = f" at {path}" if len(self._reply.answer or ()) == 1 and path else ""
                raise NoAnswerError(
                    f"no answer in the reply{asked}; its form is {shapes.describe(where)}", where, blank=read.blank
                )
            return read
        if self._reply.failed and self._reply.failed in read.answer:
            raise self._make_error(read.answer[:200], transient=True)
        if self._reply.selected and read.passages:
            read.selected = len(read.passages)
        if self._reply.citations and read.passages:
            read.answer = _rank_citations(read.answer, read.passages, self._reply)
        return read


def make_json_error(data: bytes, secrets: Secrets) -> HttpError:
    """Return the error for a body that is not JSON."""
    return HttpError(f"the reply is not JSON: {secrets.words(data)}" if data.strip() else "the reply is empty")


def _find_words(paths: Iterable[str], reply: Any) -> str | None:
    chosen = [path for path in paths if path]
    return reply if isinstance(reply, str) and reply.strip() and chosen else shapes.find_words(chosen, reply)


def _find_kind(name: str, event: Any) -> str:
    """Return the kind of an event: its SSE name (`event:`) or, without one, its field `type`."""
    own = shapes.first_of(event, "kind", str) if isinstance(event, Mapping) else None
    return (name if name and name != "message" else own or name).casefold()


def _has_answer_part(kind: str, events: tuple[str, ...]) -> bool:
    """Return whether an event of a streamed reply contains a part of the answer.

    `kind` is the event's kind. If the system's TOML file lists such kinds (`events`), the list decides.
    Otherwise every kind counts, except kinds that are known to have other content, such as citations.
    """
    if events:
        return kind in {event.casefold() for event in events}
    return kind not in {*shapes.NAMES["other"], *shapes.NAMES["citing"]}


def _join_pieces(pieces: list[tuple[str, str]]) -> str:
    """Return the answer of a stream: the joined texts of its events.

    If some events have a name that means an answer, only these are joined. A last event that repeats the whole
    answer is left out.
    """
    named = [text for kind, text in pieces if kind in shapes.NAMES["answering"]]
    texts = named or [text for _, text in pieces]
    before = "".join(texts[:-1])
    # many servers end with an event that repeats the whole answer
    return before if len(texts) > 1 and before.strip() == texts[-1].strip() else "".join(texts)


def _find_piece(event: Any, paths: list[str]) -> str | None:
    if isinstance(event, str):
        return event if paths else None
    values = (shapes.search(path, event) for path in paths)
    return next((text for text in values if isinstance(text, str) and text), None)


def _count_passages(passages: Any) -> int:
    return len(passages) if isinstance(passages, list | Mapping | str) else 0


def _rank_citations(answer: str, passages: Any, reply: ReplyPart) -> str:
    """Return an answer in which each citation is the rank of the cited passage, such as `[1]`.

    Some systems cite a passage by its key, or count passages from 0.
    """
    keys = [str(key) for key in (passages if isinstance(passages, Mapping) else range(len(passages)))]
    marks = "|".join(re.escape(mark).replace(r"\{n\}", r"(\d+)") for mark in reply.citations)

    def rank(mark: re.Match[str]) -> str:
        number = next(group for group in mark.groups() if group is not None)
        return f"[{keys.index(number) + 1}]" if number in keys else mark[0]

    return re.sub(marks, rank, answer)
