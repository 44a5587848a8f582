"""A LangChain runnable behind LangServe: `--target langserve --target-url http://localhost:8000/rag`.

Made from LangServe's README and the server of its package 0.3. The runnable is asked at `/invoke`, or streamed at
`/stream`: events named `data`, then one named `end`. A retrieval chain gives `answer` and `context`; a chain of another
kind a text, a message, or the fields of RetrievalQA. What the chain takes is said with `--target-input`; `parameters`
are its `config`. LangServe has no interface for documents.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._server import Known, Read, Server
from exhibit.evaluation.targets._server_settings import ServerSettings, read_template
from exhibit.evaluation.targets._shapes import first_list, first_words, search
from exhibit.evaluation.targets._templates import fill
from exhibit.evaluation.targets._usage import read_usage
from exhibit.storage.http import Deadline, HttpError

_ANSWERS = ("answer", "result", "output_text", "response", "output", "content", "kwargs.content")
_PASSAGES = ("context", "source_documents", "documents")
_ROLES = {"user": "human", "assistant": "ai"}


class LangServeSettings(ServerSettings):
    """What a runnable can be told."""

    input: Any = Field(
        {"input": "{question}", "chat_history": "{history}"},
        description="what it takes, as JSON: {question}, {history}; of LangServe {question} alone is a bare text",
    )
    stream: bool = Field(False, description="ask for a stream")

    @field_validator("input", mode="before")
    @classmethod
    def _input(cls, value: Any) -> Any:
        if not isinstance(value, str) or value.strip() == "{question}":
            return value
        return read_template(value)


SETTINGS = LangServeSettings


def open(argument: str | None, options: TargetOptions, settings: LangServeSettings) -> LangServe:
    """Return the runnable at an address."""
    return LangServe(settings.url or argument or "", options, settings)


class LangServe(Server):
    """A runnable."""

    system = "langserve"
    example = "http://localhost:8000/rag, the path of the runnable"
    key_header = ("x-api-key", "{}")

    def __init__(self, address: str, options: TargetOptions, settings: LangServeSettings) -> None:
        super().__init__(address.removesuffix("/invoke").removesuffix("/stream"), options, settings)
        self._told = settings

    @property
    def known(self) -> Known:
        """What the probe is told: whether the input has a place for a conversation."""
        return Known(self._told.input)

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Call the runnable."""
        body = {"input": _messages(fill(self._told.input, case, {})), "config": dict(self._told.parameters)}
        # LangChain's loaders count pages from 0
        read, ended = Read([], pages_from=0), False
        with self.send("/stream" if self._told.stream else "/invoke", body, deadline=deadline) as response:
            read.whole = not self.streamed(response)
            if read.whole:
                reply = self.parse(response.read())
                self._take(read, reply.get("output") if isinstance(reply, dict) and "output" in reply else reply)
                return self.finish(read, ended=None)
            for event in self.events(response):
                if event.name == "error":
                    words = self._wire.secrets.words(str(search("message", event.data)))
                    raise HttpError(f"the server reports an error: {words}", transient=True)
                ended = ended or event.done
                if event.name != "metadata" and not event.done:
                    self._take(read, event.data)
        return self.finish(read, ended=ended)

    def _take(self, read: Read, output: Any) -> None:
        if len(read.raw) < 3:
            read.raw.append(output)
        if isinstance(output, str):
            read.add(output)
            return
        words = first_words(_ANSWERS, output)
        # a piece of a stream may be a space
        piece = words if words is not None else search("answer", output) or search("content", output)
        read.add(piece if isinstance(piece, str) else first_words(_ANSWERS, search("answer", output)))
        told = first_list(_PASSAGES, output)
        if told and not read.passages:
            read.passages = [_document(one) for one in told] if isinstance(told, list) else told
        read.usage = {**read.usage, **read_usage(output), **read_usage(search("answer", output))}


def _document(given: Any) -> Any:
    """Return a document as it is, or out of LangChain's own serialisation."""
    return search("kwargs", given) if search("lc", given) is not None else given


def _messages(value: Any) -> Any:
    """Return an input whose messages have LangChain's types."""
    if isinstance(value, dict):
        if set(value) == {"role", "content"}:
            return {"type": _ROLES.get(value["role"], value["role"]), "content": value["content"]}
        return {key: _messages(held) for key, held in value.items()}
    return [_messages(held) for held in value] if isinstance(value, list) else value
