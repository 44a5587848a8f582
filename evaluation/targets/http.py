"""Any RAG server that takes JSON: `--target-url`, with JMESPath for where its answer and its passages are.

Without a request template it is asked as chat servers are: `{"messages": […], "stream": false, "context": parameters}`.
In a template `{question}`, `{history}`, `{session}` and `{parameters}` are filled in; `"{history}"` in a list becomes
the messages before the question. Without paths a reply is known by its fields (`_shapes`). It is JSON, or, streamed,
lines of JSON (`data: ` in front or not) whose answers are joined.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import Field, field_validator

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._server import NoAnswerError, Read, Server
from exhibit.evaluation.targets._server_settings import ServerSettings, read_template
from exhibit.evaluation.targets._shapes import SHAPES, describe, first_list, first_words, recognise, search, unwrap
from exhibit.evaluation.targets._templates import CHAT, fill
from exhibit.evaluation.targets._usage import read_usage
from exhibit.storage.http import Deadline, Event, HttpError, read_events

PARTS = ("delta.content", "choices[0].delta.content", "choices[0].message.content", "message.content", "answer",
         "response", "result", "token", "content", "text")  # fmt: skip
"""Where an event of a stream may have a piece of the answer."""
_CONTEXTS = sorted({path for shape in SHAPES for path in shape.passages}, key=lambda path: (-path.count("."), path))
"""Where an event may have passages, the longest paths first: `context` is what `context.data_points` is inside of."""


class HttpSettings(ServerSettings):
    """What a server is asked and how it is read."""

    url: str = Field("", description="the server's address: of http, where questions are posted as JSON")
    request: Any = Field(
        None, description="the body, as JSON or a file with it: {question}, {history}, {session}, {parameters}"
    )
    response_answer_jmespath: str | None = Field(
        None, description="where the answer is; default: known by the reply's fields; '' = there is none"
    )
    response_context_jmespath: str | None = Field(
        None, description="where the passages are; default: known by the reply's fields; '' = there are none"
    )
    stream: bool = Field(False, description="ask for a stream of JSON lines")

    @field_validator("request", mode="before")
    @classmethod
    def _body(cls, value: Any) -> Any:
        return read_template(value) if isinstance(value, str) else value

    @field_validator("response_answer_jmespath", "response_context_jmespath")
    @classmethod
    def _path(cls, value: str | None) -> str | None:
        try:
            if value:
                jmespath.compile(value)
            return value
        except JMESPathError as error:
            raise ValueError(f"{value!r} is not JMESPath: {error}") from error


SETTINGS = HttpSettings


def open(argument: str | None, options: TargetOptions, settings: HttpSettings) -> Http:
    """Return the server at `--target-url`, or at `http:URL`."""
    return Http(settings.url or argument or "", options, settings)


class Http(Server):
    """A server; every failure is a reply with an error, and nothing else stops."""

    def __init__(self, address: str, options: TargetOptions, settings: HttpSettings) -> None:
        super().__init__(address, options, settings)
        self.settings = settings
        self._answers: bool | None = None
        """Whether it answers, or only retrieves; None until the probe has seen it."""

    @property
    def known(self) -> Any:
        """What the probe is told: where answer and passages are looked for."""
        return self.settings

    def saw(self, answers: bool) -> None:
        """Learn whether it answers: a reply without an answer is then a failure."""
        self._answers = answers

    # ---------------------------------------------------------------- one question

    def body(self, case: Case) -> Any:
        """Return the request for a question."""
        template = CHAT if self.settings.request is None else self.settings.request
        if self.settings.stream and isinstance(template, Mapping) and "stream" in template:
            template = {**template, "stream": True}
        return fill(template, case, dict(self.settings.parameters))

    def exchange(self, case: Case, deadline: Deadline, collection: str = "") -> Read:
        """Ask a question once and return what came back; raise HttpError where that is no reply."""
        began = time.monotonic()
        with self._wire.send("POST", self._url, self.body(case), deadline=deadline) as response:
            response.check()
            if self.streamed(response):
                return self._read_events(read_events(response.lines()), began)
            data = response.read()
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            if self.settings.stream and data.strip():  # lines of JSON that call themselves something else
                return self._read_events(read_events(data.decode("utf-8", "replace").split("\n")), began)
            words = self._wire.secrets.words(data)
            raise HttpError(f"the reply is not JSON: {words}" if data.strip() else "the reply is empty") from None
        return self._read(reply)

    # ---------------------------------------------------------------- what came back

    def _read(self, reply: Any) -> Read:
        self.check(reply)
        shape = recognise(reply)
        inner = unwrap(reply) if shape else reply
        paths = self._paths(shape.answers if shape else (), self.settings.response_answer_jmespath)
        contexts = self._paths(shape.passages if shape else (), self.settings.response_context_jmespath)
        given = self.settings.response_answer_jmespath is not None
        read = Read(reply, shape=shape.name if shape else "", pages_from=shape.pages_from if shape else 1)
        read.answer = first_words(paths, reply if given else inner)
        read.passages = first_list(contexts, inner if self.settings.response_context_jmespath is None else reply)
        read.usage = read_usage(inner) or read_usage(reply)
        blank = any(search(path, reply if given else inner) is not None for path in paths)
        if read.answer is None and (blank or not self._may_be_silent(read)):
            raise NoAnswerError(f"no answer {self._where()}: {describe(reply)}", reply, blank=blank)
        return read

    def _read_events(self, events: Iterable[Event], began: float) -> Read:
        read = Read([], shape="a stream")
        pieces: list[str] = []
        paths = self._paths(PARTS, self.settings.response_answer_jmespath)
        contexts = self._paths(_CONTEXTS, self.settings.response_context_jmespath)
        for event in (event.data for event in events if not event.done):
            self.check(event)
            if len(read.raw) < 3:
                read.raw.append(event)
            piece = _piece(event, paths)
            if piece:
                pieces.append(piece)
                if read.first_token is None and piece.strip():
                    read.first_token = time.monotonic() - began
            inner = unwrap(event)
            told = first_list(contexts, inner if self.settings.response_context_jmespath is None else event)
            # servers repeat an empty default in every later event
            if told and (not read.passages or _size(told) > _size(read.passages)):
                read.passages = told
            read.usage = {**read.usage, **read_usage(inner)}
        read.answer = "".join(pieces) if "".join(pieces).strip() else None
        if read.answer is None and not self._may_be_silent(read):
            told = describe(read.raw[0] if read.raw else None)
            raise NoAnswerError(f"no answer in the stream, {self._where()}: {told}", read.raw, blank=bool(pieces))
        return read

    def _paths(self, usual: Sequence[str], given: str | None) -> Sequence[str]:
        """Return the paths to try; none for an empty one, which says that there is nothing of the kind."""
        return usual if given is None else [given] if given else []

    def _where(self) -> str:
        path = self.settings.response_answer_jmespath
        return f"at {path} of the reply" if path else "in the reply"

    def _may_be_silent(self, read: Read) -> bool:
        """Return whether a reply may have passages alone: a search server's, unless it has answered before."""
        if self.settings.response_answer_jmespath is not None:
            return self.settings.response_answer_jmespath == ""
        return bool(read.passages) and not self._answers


def _size(passages: Any) -> int:
    return len(passages) if isinstance(passages, list | Mapping | str) else 0


def _piece(event: Any, paths: Sequence[str]) -> str | None:
    if isinstance(event, str):
        return event if paths else None
    values = (search(path, event) for path in paths)
    return next((text for text in values if isinstance(text, str) and text), None)
