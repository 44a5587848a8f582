"""A Haystack pipeline behind Hayhooks: `--target haystack --target-pipeline rag`.

Made from the API reference of Hayhooks and the server of its package 2.1. A pipeline is run at `/PIPELINE/run` with the
fields that it takes (`--target-input`), and gives what its components or its wrapper return. With `--target-chat` it is
asked at `/v1/chat/completions`, which takes conversations and streams. A streamed run is the answer's words alone.
Files go to a pipeline of their own, `--target-ingest-pipeline`; Hayhooks has no list of what a pipeline holds, so what
was sent is taken to be in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._server import Known, Read, Server
from exhibit.evaluation.targets._server_settings import ServerSettings, read_template
from exhibit.evaluation.targets._shapes import first_list, first_words, recognise, search, unwrap
from exhibit.evaluation.targets._templates import fill, messages
from exhibit.evaluation.targets._usage import read_usage
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline, HttpError, Response, read_texts

_ANSWERS = (
    "answers[0].data", "answers[0].answer", "replies[0].content[0].text", "replies[0].content", "replies[0].text",
    "replies[0]", "answer", "reply", "result", "choices[0].message.content",
)  # fmt: skip
_PASSAGES = ("documents", "answers[0].documents", "sources", "choices[0].message.documents", "references")


class HaystackSettings(ServerSettings):
    """What Hayhooks can be told."""

    pipeline: str = Field("", description="the pipeline that answers")
    input: dict[str, Any] = Field(
        {"query": "{question}"},
        description="what it takes, as JSON: {question}, {history}; of LangServe {question} alone is a bare text",
    )
    chat: bool = Field(False, description="ask /v1/chat/completions, which takes conversations")
    stream: bool = Field(False, description="ask for a stream")
    ingest_pipeline: str = Field("", description="the pipeline that takes files")

    @field_validator("input", mode="before")
    @classmethod
    def _input(cls, value: Any) -> Any:
        return read_template(value) if isinstance(value, str) else value


SETTINGS = HaystackSettings


def open(argument: str | None, options: TargetOptions, settings: HaystackSettings) -> Haystack:
    """Return a pipeline."""
    if not settings.pipeline:
        raise ToolkitError("--target haystack needs the name of the pipeline that answers: --target-pipeline rag")
    return Haystack(settings.url or argument or "http://localhost:1416", options, settings)


class Haystack(Server):
    """A pipeline."""

    system = "haystack"
    example = "http://localhost:1416"

    def __init__(self, address: str, options: TargetOptions, settings: HaystackSettings) -> None:
        super().__init__(address, options, settings)
        self._told = settings

    @property
    def known(self) -> Known:
        """What the probe is told: whether a run has a place for a conversation."""
        return Known(None if self._told.chat else self._told.input)

    def library(self, collection: str) -> Indexing | None:
        """Return the pipeline that takes files, where one is named."""
        return Indexing(self, self._told.ingest_pipeline) if self._told.ingest_pipeline else None

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Run the pipeline."""
        path = f"/{self._told.pipeline}/run"
        body = fill({**self._told.input, **self._told.parameters}, case, {})
        if self._told.chat:
            path = "/v1/chat/completions"
            said = [*messages(case), {"role": "user", "content": case.question}]
            body = {
                "model": self._told.pipeline,
                "messages": said,
                "stream": self._told.stream,
                **self._told.parameters,
            }
        with self.send(path, body, deadline=deadline) as response:
            if response.kind == "application/json":
                return self._whole(self.parse(response.read()))
            return self._chunks(response) if self._told.chat else self._words(response)

    def _whole(self, reply: Any) -> Read:
        inner = unwrap(reply)
        shape = recognise(reply)
        answers = (*_ANSWERS, *(shape.answers if shape else ()))
        read = Read(reply, usage=read_usage(inner) or read_usage(reply))
        read.answer = inner if isinstance(inner, str) else first_words(answers, inner) or first_words(answers, reply)
        read.passages = first_list(_PASSAGES, inner)
        return self.finish(read, ended=None, silent=bool(read.passages))

    def _chunks(self, response: Response) -> Read:
        """Read the stream of a chat."""
        read, ended = Read([]), False
        for event in self.events(response):
            if len(read.raw) < 3:
                read.raw.append(event.data)
            read.add(search("choices[0].delta.content", event.data))
            read.usage = {**read.usage, **read_usage(event.data)}
            ended = ended or event.done or bool(search("choices[0].finish_reason", event.data))
        return self.finish(read, ended=ended)

    def _words(self, response: Response) -> Read:
        """Read the stream of a run: the words of the answer, as events or bare."""
        read = Read()
        if self.streamed(response):
            for text in read_texts(response.lines()):
                read.add(text)
        else:
            for part in response.parts():
                # where a part ends in the middle of a letter the letter is lost; the answer is read again, whole, below
                read.raw = (read.raw or b"") + part
                read.add(part.decode("utf-8", "ignore"))
            read.answer = (read.raw or b"").decode("utf-8", "replace") or None
            read.raw = None
        return self.finish(read, ended=None)


class Indexing:
    """A pipeline that takes files."""

    def __init__(self, server: Server, pipeline: str) -> None:
        self._server, self._pipeline = server, pipeline

    def listed(self, deadline: Deadline) -> None:
        """Return nothing, after a look whether the pipeline is there: it has no list."""
        self._server.fetch(f"/status/{self._pipeline}", deadline=deadline, method="GET")

    def create(self, deadline: Deadline) -> None:
        """Do nothing: the pipeline is there."""

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Run the pipeline on a file; it answers when the file is in."""
        self._server.upload(f"/{self._pipeline}/run", {"files": (name, path.read_bytes())}, deadline=deadline)

    def start(self, deadline: Deadline) -> None:
        """Do nothing: files are read as they come."""

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Refuse: no interface does it."""
        raise HttpError("Hayhooks cannot delete documents; leave out --force-ingestion and --delete-collection")
