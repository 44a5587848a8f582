"""Any RAG server that takes JSON: `--target-url`, with JMESPath for where its answer and its passages are.

Without a request template it is asked as chat servers are: `{"messages": […], "stream": false, "context": parameters}`.
In a template `{question}`, `{history}`, `{session}` and `{parameters}` are filled in; `"{history}"` in a list becomes
the messages before the question. Without paths a reply is known by its fields (`_shapes`). It is JSON, or, streamed,
lines of JSON (`data: ` in front or not) whose answers are joined.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import BaseModel, ConfigDict, Field, field_validator

from evaluation.cases import Case, Reply
from evaluation.datasets import Dataset
from evaluation.targets import Asked, Ingestion, TargetOptions, count_only
from evaluation.targets._asking import ask_all
from evaluation.targets._passages import Names, read_passages
from evaluation.targets._probing import probe_server
from evaluation.targets._secrets import Secrets, plain_address, secrets_in
from evaluation.targets._shapes import SHAPES, describe, first_list, first_words, recognise, search, unwrap
from evaluation.targets._templates import CHAT, fill
from evaluation.targets._usage import read_usage
from evaluation.targets._wire import Deadline, ReplyError, Wire
from schemas.errors import ToolkitError

_STREAMED = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-lines")
PARTS = ("delta.content", "choices[0].delta.content", "choices[0].message.content", "message.content", "answer",
         "response", "result", "token", "content", "text")  # fmt: skip
"""Where an event of a stream may have a piece of the answer."""
_CONTEXTS = sorted({path for shape in SHAPES for path in shape.passages}, key=lambda path: (-path.count("."), path))
"""Where an event may have passages, the longest paths first: `context` is what `context.data_points` is inside of."""


class HttpSettings(BaseModel):
    """What a server is asked and how it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("", description="where questions are posted as JSON")
    request: Any = Field(
        None, description="the body, as JSON or a file with it: {question}, {history}, {session}, {parameters}"
    )
    parameters: dict[str, Any] = Field({}, description="JSON that {parameters} of the request stands for")
    header: dict[str, str] = Field({}, description="NAME=VARIABLE: a header, from the environment; repeat")
    response_answer_jmespath: str | None = Field(
        None, description="where the answer is; default: known by the reply's fields; '' = there is none"
    )
    response_context_jmespath: str | None = Field(
        None, description="where the passages are; default: known by the reply's fields; '' = there are none"
    )
    stream: bool = Field(False, description="ask for a stream of JSON lines")

    @field_validator("header", mode="before")
    @classmethod
    def _variables(cls, value: Any) -> Any:
        return (
            dict(map(_pair, [value] if isinstance(value, str) else value)) if not isinstance(value, Mapping) else value
        )

    @field_validator("request", "parameters", mode="before")
    @classmethod
    def _template(cls, value: Any) -> Any:
        return _read_template(value) if isinstance(value, str) else value

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


def _pair(told: Any) -> tuple[str, str]:
    name, sign, variable = str(told).partition("=")
    if not sign or not name.strip():
        raise ValueError(f"{told!r} is not NAME=VARIABLE, such as Authorization=TOKEN")
    return name.strip(), variable.strip()


def _read_template(value: str) -> Any:
    text = value
    if not value.lstrip().startswith(("{", "[")):
        try:
            text = Path(value).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{value}: cannot be read: {error.strerror}; give JSON, or a file with it") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error


def open(argument: str | None, options: TargetOptions, settings: HttpSettings) -> Http:
    """Return the server at `--target-url`, or at `http:URL`."""
    address = settings.url or argument or ""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolkitError(f"--target-url {address!r} is not an address; it looks like http://localhost:50505/ask")
    return Http(url, options, settings, headers_of(settings.header))


def headers_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their values from the environment; raise an error that names the variables, never a value."""
    missing = [variable for variable in variables.values() if variable not in os.environ]
    if missing:
        raise ToolkitError(f"--target-header: the environment has no {', '.join(sorted(missing))}")
    values = {name: os.environ[variable] for name, variable in variables.items()}
    odd = [variables[name] for name, value in values.items() if not (value.isprintable() and value.isascii())]
    if odd:
        raise ToolkitError(f"--target-header: {', '.join(sorted(set(odd)))} cannot be sent: not printable ASCII")
    return values


class NoAnswerError(ReplyError):
    """A reply without an answer where one was looked for."""

    def __init__(self, message: str, reply: Any, *, blank: bool) -> None:
        super().__init__(message)
        self.reply = reply
        self.blank = blank
        """Whether there is a place for it, with no words in it."""


@dataclass
class Read:
    """What a server replied, as far as it was understood."""

    raw: Any = None
    answer: str | None = None
    passages: Any = None
    """As the server writes them; None where it has none."""
    shape: str = ""
    pages_from: int = 1
    usage: dict[str, float] = field(default_factory=dict)
    first_token: float | None = None


class Http:
    """A server; every failure is a reply with an error, and nothing else stops."""

    exact = False

    def __init__(self, url: httpx.URL, options: TargetOptions, settings: HttpSettings, headers: dict[str, str]) -> None:
        self._url = str(url.copy_with(username=None, password=None))
        # an address may carry a password or a key
        self.name = f"http:{plain_address(str(url))}"
        self.settings = settings
        self._options = options
        secrets = Secrets([*headers.values(), *secrets_in(str(url), [settings.parameters, settings.request])])
        if url.userinfo:
            headers = {"Authorization": f"Basic {b64encode(url.userinfo).decode('ascii')}", **headers}
        self._wire = Wire(headers, connections=options.threads, secrets=secrets)
        self._probed = False
        self._answers: bool | None = None
        """Whether it answers, or only retrieves; None until the probe has seen it."""

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask a question or two, once for the whole run."""
        if self._probed:
            return []
        self._probed = True
        notes, self._answers = probe_server(self.name, cases, self.exchange, self.settings, self._options)
        return notes

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Say what the corpus is; the server has its own copy."""
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[Asked]:
        """Yield replies as they come, several questions being asked at once."""
        names = dataset.documents.named

        def ask_one(case: Case, deadline: Deadline) -> Reply:
            return self._reply(case, deadline, names)

        try:
            yield from ask_all(cases, ask_one, self._options)
        finally:
            self._wire.close()

    # ---------------------------------------------------------------- one question

    def _reply(self, case: Case, deadline: Deadline, names: Names) -> Reply:
        began = time.monotonic()
        read = self.exchange(case, deadline)
        seconds = time.monotonic() - began
        passages = read_passages(read.passages, names=names, pages_from=read.pages_from)
        return Reply(read.answer, passages, seconds=seconds, usage=read.usage, first_token=read.first_token)

    def body(self, case: Case) -> Any:
        """Return the request for a question."""
        template = CHAT if self.settings.request is None else self.settings.request
        if self.settings.stream and isinstance(template, Mapping) and "stream" in template:
            template = {**template, "stream": True}
        return fill(template, case, dict(self.settings.parameters))

    def exchange(self, case: Case, deadline: Deadline) -> Read:
        """Ask a question once and return what came back; raise ReplyError where that is no reply."""
        began = time.monotonic()
        with self._wire.send("POST", self._url, self.body(case), deadline=deadline) as response:
            response.check()
            if response.kind in _STREAMED:
                return self._read_events(_events(response.lines()), began)
            data = response.read()
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            if self.settings.stream and data.strip():  # lines of JSON that call themselves something else
                return self._read_events(_events(data.decode("utf-8", "replace").split("\n")), began)
            words = self._wire.secrets.words(data)
            raise ReplyError(f"the reply is not JSON: {words}" if data.strip() else "the reply is empty") from None
        return self._read(reply)

    # ---------------------------------------------------------------- what came back

    def _read(self, reply: Any) -> Read:
        self._check(reply)
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

    def _read_events(self, events: Iterable[Any], began: float) -> Read:
        read = Read([], shape="a stream")
        pieces: list[str] = []
        paths = self._paths(PARTS, self.settings.response_answer_jmespath)
        contexts = self._paths(_CONTEXTS, self.settings.response_context_jmespath)
        for event in events:
            self._check(event)
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
            if told and (not read.passages or len(told) > len(read.passages)):
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

    def _check(self, reply: Any) -> None:
        if isinstance(reply, dict) and reply.get("error"):
            words = self._wire.secrets.words(json.dumps(reply["error"]))
            raise ReplyError(f"the server reports an error: {words}")


def _piece(event: Any, paths: Sequence[str]) -> str | None:
    if isinstance(event, str):
        return event if paths else None
    found = (search(path, event) for path in paths)
    return next((text for text in found if isinstance(text, str) and text), None)


def _events(lines: Iterable[str]) -> Iterator[Any]:
    """Yield the objects of a stream: a line of JSON each, `data:` in front or not."""
    for line in lines:
        text = line.strip()
        if text.startswith("data:"):
            text = text.removeprefix("data:").strip()
        elif text.startswith((":", "event:", "id:", "retry:")):
            continue
        if not text or text == "[DONE]":
            continue
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            raise ReplyError("a line of the stream is not JSON") from None
