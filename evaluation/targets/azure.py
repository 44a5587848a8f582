"""Azure's search-openai-demo, and a search index asked directly: `--target azure`, `--target-index NAME`.

Made from the demo's docs/http_protocol.md and its backend, and from the REST reference of Azure AI Search. The demo is
asked at `/chat` or `/ask`, streamed at `/chat/stream` as lines of JSON; `parameters` are its `context`, such as
`{"overrides": {"top": 5}}`. Files go to `/upload`, which the demo has where users log in. With an index, its
`docs/search` is asked, and only retrieval is measured; `parameters` are then those of the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._ingestion import Held
from exhibit.evaluation.targets._server import Read, Server
from exhibit.evaluation.targets._server_settings import ServerSettings
from exhibit.evaluation.targets._shapes import first_list, items_at, search
from exhibit.evaluation.targets._templates import messages
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline

_VERSION = "2024-07-01"
"""Of the search service's interface: the first stable one with what is used here that is still served."""
_DATA = ("context.data_points.text", "context.data_points.images", "context.data_points", "data_points")


class AzureSettings(ServerSettings):
    """What the demo, or a search service, can be told."""

    route: Literal["chat", "ask"] = Field("chat", description="the demo's /chat or /ask")
    stream: bool = Field(False, description="ask for a stream")
    index: str = Field("", description="ask this index of a search service, not the demo")
    depth: int = Field(50, ge=1, le=1000, description="passages asked of a search")


SETTINGS = AzureSettings


def open(argument: str | None, options: TargetOptions, settings: AzureSettings) -> Azure:
    """Return the demo, or an index."""
    if settings.stream and (settings.route == "ask" or settings.index):
        raise ToolkitError("--target-stream: the demo streams /chat alone; leave out --target-route and --target-index")
    kind = AzureIndex if settings.index else Azure
    return kind(settings.url or argument or "http://localhost:50505", options, settings)


class Azure(Server):
    """The demo."""

    system = "azure"
    example = "http://localhost:50505"

    def __init__(self, address: str, options: TargetOptions, settings: AzureSettings) -> None:
        super().__init__(address, options, settings)
        self._told = settings

    def library(self, collection: str) -> Uploads | None:
        """Return the files of the user whose token is sent."""
        return Uploads(self)

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask the demo."""
        body = {
            "messages": [*messages(case), {"content": case.question, "role": "user"}],
            "context": dict(self._told.parameters),
            "session_state": case.session,
        }
        path = "/chat/stream" if self._told.stream and self._told.route == "chat" else f"/{self._told.route}"
        read = Read([])
        with self.send(path, body, deadline=deadline) as response:
            read.whole = not self.streamed(response)
            for reply in self.replies(response):
                self._take(read, reply)
        return self.finish(read, ended=None)

    def _take(self, read: Read, reply: Any) -> None:
        if len(read.raw) < 3:
            read.raw.append(reply)
        read.add(search("message.content", reply) or search("delta.content", reply))
        told = first_list(_DATA, reply)
        if told and not read.passages:
            read.passages = told
        # each step of the demo's work tells its own; later events repeat the earlier steps
        steps = search("context.thoughts[].props.token_usage", reply) or []
        spent = {
            "tokens_in": sum(float(step.get("prompt_tokens") or 0) for step in steps),
            "tokens_out": sum(float(step.get("completion_tokens") or 0) for step in steps),
        }
        read.usage = {**read.usage, **{name: number for name, number in spent.items() if number}}


class AzureIndex(Azure):
    """An index of a search service."""

    key_header = ("api-key", "{}")
    example = "https://NAME.search.windows.net"

    def library(self, collection: str) -> None:
        """Return nothing: what an index holds are passages, and how documents become such is not its own affair."""

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Search the index."""
        body = {"search": case.question, "top": self._told.depth, **self._told.parameters}
        path = f"/indexes/{quote(self._told.index)}/docs/search?api-version={_VERSION}"
        reply = self.fetch(path, body, deadline=deadline)
        scored = [
            {**hit, "score": hit.get("@search.rerankerScore") or hit.get("@search.score")}
            for hit in items_at("value", reply)
            if isinstance(hit, Mapping)
        ]
        return self.finish(Read(reply, passages=scored), ended=None, silent=True)


class Uploads:
    """The files that a user of the demo has uploaded."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def listed(self, deadline: Deadline) -> Mapping[str, Held]:
        """Return their names: the demo answers an upload when the file is in its index."""
        names = self._server.fetch("/list_uploaded", deadline=deadline, method="GET") or []
        return {str(name): Held() for name in names}

    def create(self, deadline: Deadline) -> None:
        """Do nothing: every user has a place for files."""

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Upload a file, which is read before the demo answers."""
        self._server.upload("/upload", {"file": (name, path.read_bytes())}, deadline=deadline)

    def start(self, deadline: Deadline) -> None:
        """Do nothing: files are read as they come."""

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Delete files one by one."""
        there = self.listed(deadline)
        for name in names:
            if name in there:
                self._server.fetch("/delete_uploaded", {"filename": name}, deadline=deadline)
