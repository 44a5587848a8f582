"""RAGFlow: `--target ragflow --target-assistant ID --target-key VARIABLE`.

Made from RAGFlow's HTTP API reference (0.20 to 1.0) and its SDK. A chat assistant is asked at its OpenAI-compatible
interface, which takes whole conversations, with `extra_body.reference`: the chunks are in the message, or in the last
event of a stream. Without an assistant `/api/v1/retrieval` is asked, and only retrieval is measured. Documents go into
a dataset of RAGFlow that is named after ours; an assistant must be told in RAGFlow to use it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import Field

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._ingestion import Held
from exhibit.evaluation.targets._server import Read, Server
from exhibit.evaluation.targets._server_settings import CorpusSettings
from exhibit.evaluation.targets._shapes import describe, items_at, search
from exhibit.evaluation.targets._templates import messages
from exhibit.evaluation.targets._usage import read_usage
from exhibit.storage.http import Deadline, HttpError

_MARK = re.compile(r"\[ID:\s?(\d+)\]|##(\d+)\$\$")
"""A citation in an answer, as newer and older versions write it; they count from 0."""
_PATHS = ("/api/v1/openai/{}/chat/completions", "/api/v1/chats_openai/{}/chat/completions")
"""Where an assistant is asked: from 0.25 on, and before."""
_PAGE = 100
"""The largest page that lists have."""


class RagflowSettings(CorpusSettings):
    """What RAGFlow can be told; `parameters` are further fields of a request."""

    assistant: str = Field("", description="the id of the chat assistant that answers; none: only retrieval")
    stream: bool = Field(False, description="ask for a stream")
    depth: int = Field(50, ge=1, le=1000, description="passages asked of a search")


SETTINGS = RagflowSettings


def open(argument: str | None, options: TargetOptions, settings: RagflowSettings) -> Ragflow:
    """Return the server at an address."""
    return Ragflow(settings.url or argument or "http://localhost:9380", options, settings)


class Ragflow(Server):
    """A RAGFlow server."""

    system = "ragflow"
    example = "http://localhost:9380"

    def __init__(self, address: str, options: TargetOptions, settings: RagflowSettings) -> None:
        super().__init__(address, options, settings)
        self._told = settings
        self._path = _PATHS[0]
        self._ids: dict[str, str] = {}
        """Ids of RAGFlow's datasets by their names."""

    def check(self, reply: Any) -> None:
        """Raise the error that a reply reports, which comes with status 200 and a code of its own."""
        super().check(reply)
        code = search("code", reply)
        if isinstance(code, int) and code != 0:
            words = self._wire.secrets.words(str(search("message", reply) or f"code {code}"))
            status = 401 if code in (108, 109) else code if code in (401, 403, 404, 405) else None
            raise HttpError(f"the server reports an error: {words}", status=status)

    def library(self, collection: str) -> Datasets:
        """Return a dataset of RAGFlow."""
        return Datasets(self, collection)

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask the assistant, or search."""
        if not self._told.assistant:
            return self._search(case, deadline, collection)
        body = {
            "model": "model",
            "messages": [*messages(case), {"role": "user", "content": case.question}],
            "stream": self._told.stream,
            "extra_body": {"reference": True},
            **self._told.parameters,
        }
        try:
            return self._ask(self._path, body, deadline)
        except HttpError as error:
            if error.status not in (404, 405) or self._path == _PATHS[1]:
                raise
        self._path = _PATHS[1]
        return self._ask(self._path, body, deadline)

    def _ask(self, path: str, body: Any, deadline: Deadline) -> Read:
        read, ended, keys = Read([]), False, list[str]()
        with self.send(path.format(quote(self._told.assistant)), body, deadline=deadline) as response:
            read.whole = not self.streamed(response)
            for reply in self.replies(response):
                if len(read.raw) < 3:
                    read.raw.append(reply)
                message = search("choices[0].message || choices[0].delta", reply)
                read.add(search("content", message))
                told = search("reference.chunks || reference", message) or search(
                    "reference.chunks || reference", reply
                )
                if told:
                    keys, read.passages = _chunks(told)
                read.usage = {**read.usage, **read_usage(reply)}
                # the end of a stream is an event without data
                ended = ended or reply is None or bool(search("choices[0].finish_reason", reply))
        if read.answer and keys:
            read.answer = _MARK.sub(lambda mark: _rank(mark, keys), read.answer)
        return self.finish(read, ended=None if read.whole else ended)

    def _search(self, case: Case, deadline: Deadline, collection: str) -> Read:
        if collection not in self._ids:
            self._ids[collection] = Datasets(self, collection).find(deadline) or ""
        if not self._ids[collection]:
            raise HttpError(f"no dataset of RAGFlow is named {collection!r}; give one with --target-collection")
        body = {"question": case.question, "dataset_ids": [self._ids[collection]], "page_size": self._told.depth}
        reply = self.fetch("/api/v1/retrieval", {**body, **self._told.parameters}, deadline=deadline)
        _, passages = _chunks(items_at("data.chunks", reply))
        return self.finish(Read(reply, passages=passages), ended=None, silent=True)


def _chunks(told: Any) -> tuple[list[str], list[Any]]:
    """Return the numbers that an answer cites chunks by, and the chunks with their pages."""
    if not isinstance(told, Mapping | list):
        raise HttpError(f"the chunks of the reply are no list: {describe(told)}")
    held = list(told.items()) if isinstance(told, Mapping) else list(enumerate(told))
    return [str(key) for key, _ in held], [_passage(chunk) for _, chunk in held]


def _passage(chunk: Any) -> Any:
    page = search("positions[0][0]", chunk)
    name = search("document_name || document_keyword || doc_name", chunk)
    return {"text": search("content", chunk), "filename": name, "score": search("similarity", chunk), "page": page}


def _rank(mark: re.Match[str], keys: list[str]) -> str:
    number = mark[1] or mark[2]
    return f"[{keys.index(number) + 1}]" if number in keys else mark[0]


class Datasets:
    """A dataset of RAGFlow, by its name."""

    def __init__(self, server: Server, name: str) -> None:
        self._server, self._name = server, name
        self._id = ""
        self._sent: list[str] = []

    def _call(self, path: str, deadline: Deadline, body: Any = None, method: str = "GET") -> Any:
        return self._server.fetch(f"/api/v1/datasets{path}", body, deadline=deadline, method=method)

    def _pages(self, path: str, where: str, deadline: Deadline) -> Iterator[Any]:
        for page in itertools.count(1):
            told = items_at(where, self._call(f"{path}?page={page}&page_size={_PAGE}", deadline))
            yield from told
            if len(told) < _PAGE:
                return

    def find(self, deadline: Deadline) -> str | None:
        """Return its id, None where there is none of this name; RAGFlow calls asking for such a name an error."""
        if not self._id:
            named = (one for one in self._pages("", "data", deadline) if search("name", one) == self._name)
            self._id = str(search("id", next(named, None)) or "")
        return self._id or None

    def listed(self, deadline: Deadline) -> Mapping[str, Held] | None:
        """Return the documents and how far they are parsed."""
        if self.find(deadline) is None:
            return None
        held = {}
        for one in self._pages(f"/{self._id}/documents", "data.docs", deadline):
            state = str(search("run", one) or "").upper()
            bad = state in ("FAIL", "CANCEL", "4", "2")
            why = str(search("progress_msg", one) or "it could not be parsed") if bad else ""
            held[str(search("name", one))] = Held(ready=state in ("DONE", "3"), error=why)
        return held

    def create(self, deadline: Deadline) -> None:
        """Make the dataset."""
        self._id = str(search("data.id", self._call("", deadline, {"name": self._name}, "POST")))

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Upload a file."""
        files = {"file": (name, path.read_bytes())}
        told = self._server.upload(f"/api/v1/datasets/{self._id}/documents", files, deadline=deadline)
        self._sent += [str(id) for id in items_at("data[].id", told)]

    def start(self, deadline: Deadline) -> None:
        """Have the files parsed."""
        if self._sent:
            self._call(f"/{self._id}/chunks", deadline, {"document_ids": self._sent}, "POST")

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Delete the dataset."""
        if self.find(deadline) is not None:
            self._call("", deadline, {"ids": [self._id]}, "DELETE")
            self._id = ""
