"""A LlamaIndex chat server: `--target llamaindex --target-url http://localhost:8000`.

Made from the package llama-index-server 0.1 and the servers that create-llama writes. `/api/chat` streams lines of a
number and JSON: `0:` words, `8:` a list with what goes with them (`sources` and their nodes), `3:` an error, `d:` the
end; servers in TypeScript send the same as server-sent events with types. Older servers answer whole at
`/api/chat/request` (`--target-whole`). Such a server has its documents in a folder of its own: no interface takes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from exhibit.evaluation.cases import Case
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._server import Read, Server
from exhibit.evaluation.targets._server_settings import ServerSettings
from exhibit.evaluation.targets._shapes import first_list, first_words, search
from exhibit.evaluation.targets._templates import messages
from exhibit.evaluation.targets._usage import read_usage
from exhibit.storage.http import Deadline, HttpError, Response

_ANSWERS = ("result.content", "response.response", "response", "answer", "message.content", "text")
_NODES = ("nodes", "source_nodes", "sources", "data.nodes")
_SOURCES = ("sources", "data-sources", "source_nodes")


class LlamaIndexSettings(ServerSettings):
    """What a chat server can be told; `parameters` are the `data` of a request."""

    whole: bool = Field(False, description="ask /api/chat/request, which older servers have and which does not stream")


SETTINGS = LlamaIndexSettings


def open(argument: str | None, options: TargetOptions, settings: LlamaIndexSettings) -> LlamaIndex:
    """Return the server at an address."""
    return LlamaIndex(settings.url or argument or "http://localhost:8000", options, settings)


class LlamaIndex(Server):
    """A chat server."""

    system = "llamaindex"
    example = "http://localhost:8000"

    def __init__(self, address: str, options: TargetOptions, settings: LlamaIndexSettings) -> None:
        super().__init__(address.removesuffix("/").removesuffix("/api/chat"), options, settings)
        self._told = settings

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask the server."""
        said = [*messages(case), {"role": "user", "content": case.question}]
        # the newest servers want a name of the conversation, in these letters; older ones pass over it
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", f"{collection}-{case.session or case.id}")
        body: dict[str, Any] = {"id": name, "messages": said}
        if self._told.parameters:
            body["data"] = dict(self._told.parameters)
        read, ended = Read([]), False
        with self.send("/api/chat/request" if self._told.whole else "/api/chat", body, deadline=deadline) as response:
            if response.kind == "application/json":
                reply = self.parse(response.read())
                read.raw, read.usage = reply, read_usage(reply)
                read.answer, read.passages = first_words(_ANSWERS, reply), first_list(_NODES, reply)
                return self.finish(read, ended=None)
            for kind, data in self._parts(response):
                if len(read.raw) < 3:
                    read.raw.append({kind: data})
                ended = self._take(read, kind, data) or ended
        return self.finish(read, ended=ended)

    def _parts(self, response: Response) -> Iterator[tuple[str, Any]]:
        """Yield the parts of a stream, each with the mark of its kind."""
        if self.streamed(response):
            for event in self.events(response):
                yield ("finish" if event.done else str(search("type", event.data))), event.data
            return
        for line in response.lines():
            kind, sign, text = line.partition(":")
            if not line.strip():
                continue
            try:
                if not sign or len(kind) > 1:
                    raise ValueError
                yield kind, json.loads(text)
            except (ValueError, RecursionError):
                words = self._wire.secrets.words(line[:200])
                raise HttpError(f"a line of the stream is not one of a chat server: {words}") from None

    def _take(self, read: Read, kind: str, data: Any) -> bool:
        """Add one part; return whether it ends the stream."""
        if kind in ("3", "error"):
            words = self._wire.secrets.words(json.dumps(search("errorText", data) or data))
            raise HttpError(f"the server reports an error: {words}", transient=True)
        if kind == "0":
            read.add(data)
        elif kind == "text-delta":
            read.add(search("delta", data))
        elif kind in ("2", "8"):
            for one in data if isinstance(data, list) else [data]:
                self._take(read, str(search("type", one)), one)
        elif kind in _SOURCES:
            told = first_list(("data.nodes", "nodes"), data)
            read.passages = told or read.passages
        elif kind in ("d", "e", "finish"):
            read.usage = {**read.usage, **read_usage(data)}
            return True
        return False
