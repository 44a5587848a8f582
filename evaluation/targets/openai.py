"""OpenAI's interfaces and servers like them: `--target openai --target-model NAME --target-key OPENAI_API_KEY`.

Made from OpenAI's API reference (responses, chat completions, files, vector stores). Responses search a vector store
with the tool `file_search`, whose results are the passages. Chat completions (`--target-api chat`) are asked of servers
that do their own retrieval and give citations beside the message. Documents go into a vector store named after the
dataset; `--target-collection` names another, or one by its id (`vs_…`).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._server import Read, Server
from exhibit.evaluation.targets._server_settings import CorpusSettings
from exhibit.evaluation.targets._shapes import first_list, search
from exhibit.evaluation.targets._stores import VectorStore
from exhibit.evaluation.targets._templates import messages
from exhibit.evaluation.targets._usage import read_usage
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline, HttpError

_CITATIONS = (
    "choices[0].message.context.citations", "choices[0].delta.context.citations", "citations.results", "citations",
    "choices[0].message.citations", "context.data_points.text", "context", "documents", "sources", "search_results",
)  # fmt: skip
"""Where servers of this kind give passages."""
_RESULTS = "output[?type=='file_search_call'].results[]"
_CITED = "output[?type=='message'].content[].annotations[] | [?type=='file_citation']"
_SAID = "output[?type=='message'].content[] | [?type=='output_text'].text"


class OpenAISettings(CorpusSettings):
    """What such a server can be told; `parameters` are further fields of a request."""

    model: str = Field("", description="the model")
    api: Literal["responses", "chat"] = Field("responses", description="responses, or chat: /chat/completions")
    stream: bool = Field(False, description="ask for a stream")
    depth: int = Field(50, ge=1, le=1000, description="passages asked of a search")


SETTINGS = OpenAISettings


def open(argument: str | None, options: TargetOptions, settings: OpenAISettings) -> OpenAI:
    """Return a model's server."""
    if not settings.model:
        raise ToolkitError("--target openai needs --target-model NAME")
    return OpenAI(settings.url or argument or "https://api.openai.com/v1", options, settings)


class OpenAI(Server):
    """A server with OpenAI's interfaces."""

    system = "openai"
    example = "https://api.openai.com/v1"

    def __init__(self, address: str, options: TargetOptions, settings: OpenAISettings) -> None:
        super().__init__(address, options, settings)
        self._told = settings
        self._stores: dict[str, str] = {}
        """Ids of vector stores by their names."""

    def collection(self, dataset: Dataset) -> str:
        """Return the vector store's name; empty where none is searched."""
        brings = self._brings or self._options.skip_ingestion or self._options.delete_collection
        return self._told.collection or (dataset.name if brings else "")

    def library(self, collection: str) -> VectorStore | None:
        """Return a vector store, which only responses search."""
        return VectorStore(self, collection) if self._told.api == "responses" and collection else None

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask the model."""
        said = [*messages(case), {"role": "user", "content": case.question}]
        if self._told.api == "chat":
            return self._chat(said, deadline)
        body = {"model": self._told.model, "input": said, "stream": self._told.stream}
        if collection:
            tool = {"type": "file_search", "vector_store_ids": [self._store(collection, deadline)]}
            body |= {"tools": [{**tool, "max_num_results": min(50, self._told.depth)}]}
            body |= {"include": ["file_search_call.results"]}
        return self._response({**body, **self._told.parameters}, deadline)

    def _store(self, collection: str, deadline: Deadline) -> str:
        if collection not in self._stores:
            store = VectorStore(self, collection).find(deadline)
            if store is None:
                raise HttpError(f"no vector store is named {collection!r}; give one with --target-collection")
            self._stores[collection] = store
        return self._stores[collection]

    def _response(self, body: Any, deadline: Deadline) -> Read:
        read, ended = Read([]), False
        with self.send("/v1/responses", body, deadline=deadline) as response:
            if not self.streamed(response):
                return self._whole(read, self.parse(response.read()))
            for event in self.events(response):
                kind = str(search("type", event.data) or event.name)
                if len(read.raw) < 3:
                    read.raw.append(event.data)
                if kind == "response.output_text.delta":
                    read.add(search("delta", event.data))
                elif kind in ("response.completed", "response.incomplete"):
                    ended = True
                    first, read.answer = read.answer, None
                    self._take(read, search("response", event.data))
                    read.answer = first or read.answer
                elif kind in ("response.failed", "error"):
                    words = search("response.error.message", event.data) or search("message", event.data)
                    raise HttpError(f"the server reports an error: {self._wire.secrets.words(str(words))}")
        return self.finish(read, ended=ended)

    def _whole(self, read: Read, reply: Any) -> Read:
        read.raw = reply
        self._take(read, reply)
        return self.finish(read, ended=None)

    def _take(self, read: Read, reply: Any) -> None:
        """Read a response: what was said, found and spent; where results are not told, the files that are cited."""
        read.answer = "".join(search(_SAID, reply) or []) or search("output_text", reply)
        read.passages = search(_RESULTS, reply) or search(_CITED, reply) or None
        read.usage = read_usage(reply)

    def _chat(self, said: list[dict[str, str]], deadline: Deadline) -> Read:
        body: dict[str, Any] = {"model": self._told.model, "messages": said, "stream": self._told.stream}
        if self._told.stream:
            body["stream_options"] = {"include_usage": True}
        read, ended = Read([]), False
        with self.send("/v1/chat/completions", {**body, **self._told.parameters}, deadline=deadline) as response:
            read.whole = not self.streamed(response)
            for reply in self.replies(response):
                if len(read.raw) < 3:
                    read.raw.append(reply)
                read.add(search("choices[0].message.content", reply) or search("choices[0].delta.content", reply))
                cited = first_list(_CITATIONS, reply)
                read.passages = read.passages or cited
                read.usage = {**read.usage, **read_usage(reply)}
                # the end of a stream is an event without data
                ended = ended or reply is None or bool(search("choices[0].finish_reason", reply))
        return self.finish(read, ended=None if read.whole else ended)
