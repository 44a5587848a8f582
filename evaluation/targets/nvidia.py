"""NVIDIA's RAG blueprint: `--target nvidia --target-url http://localhost:8081`.

Made from the OpenAPI files of its RAG server and its ingestor, and from its own evaluation script. An answer is asked
of `/v1/generate`, which streams: the first event has the citations, every later one an empty default. `/v1/search` is
asked as well, as the citations are only the few passages that the answer was made from. Documents go to the ingestor,
into a collection named after the dataset.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import Field

from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._ingestion import Held
from exhibit.evaluation.targets._server import Read, Server
from exhibit.evaluation.targets._server_settings import CorpusSettings, parse_url
from exhibit.evaluation.targets._shapes import search
from exhibit.evaluation.targets._templates import messages
from exhibit.evaluation.targets._usage import read_usage
from exhibit.storage.http import Deadline, HttpError

_DEEPEST = 25
"""The largest `reranker_top_k` that the server takes."""
_SHARED = (
    "vdb_top_k", "vdb_endpoint", "enable_query_rewriting", "enable_reranker", "enable_filter_generator", "filter_expr",
    "embedding_model", "embedding_endpoint", "reranker_model", "reranker_endpoint", "confidence_threshold",
)  # fmt: skip
"""Settings of an answer that a search has as well."""
_FAILED = "Error from rag-server. Please check rag-server logs"
"""How an answer begins that is none: it comes with status 200."""
_MOST = 1_000_000
"""The largest `max_results` that the ingestor takes; its default would hide all files after the first thousand."""


class NvidiaSettings(CorpusSettings):
    """What the blueprint can be told; `parameters` are fields of its `Prompt`, such as `reranker_top_k`."""

    ingestor: str = Field("", description="the blueprint's ingestor (default: port 8082 of the server's host)")
    depth: int = Field(_DEEPEST, ge=0, le=_DEEPEST, description="passages asked of /search; 0 = it is not asked")


SETTINGS = NvidiaSettings


def open(argument: str | None, options: TargetOptions, settings: NvidiaSettings) -> Nvidia:
    """Return the blueprint's server."""
    return Nvidia(settings.url or argument or "http://localhost:8081", options, settings)


class Nvidia(Server):
    """A RAG server and its ingestor."""

    system = "nvidia"
    example = "http://localhost:8081"

    def __init__(self, address: str, options: TargetOptions, settings: NvidiaSettings) -> None:
        super().__init__(address, options, settings)
        self._told = settings

    def collection(self, dataset: Dataset) -> str:
        """Return the collection's name; the vector store takes letters, digits and underscores."""
        return self._told.collection or re.sub(r"\W", "_", dataset.name)

    def library(self, collection: str) -> Ingestor:
        """Return the ingestor's collection."""
        # a key that was given for one host must not go to another that nobody named
        beside = str(httpx.URL(self._url).copy_with(port=8082, path="/"))
        return Ingestor(self, str(parse_url(self._told.ingestor or beside, "http://localhost:8082")), collection)

    def exchange(self, case: Case, deadline: Deadline, collection: str) -> Read:
        """Ask for an answer, then for the ranking behind it."""
        read = self._generate(case, deadline, collection)
        read.seconds = time.monotonic() - read.began
        if self._told.depth:
            cited = [_place(one) for one in read.passages or ()]
            results = self._search(case, deadline, collection)
            read.passages = [*(read.passages or ()), *(one for one in results if _place(one) not in cited)]
        return read

    def _generate(self, case: Case, deadline: Deadline, collection: str) -> Read:
        body = {
            "messages": [*messages(case), {"role": "user", "content": case.question}],
            "use_knowledge_base": True,
            "enable_citations": True,
            "collection_names": [collection],
            **self._told.parameters,
        }
        read, ended = Read([]), False
        with self.send("/v1/generate", body, deadline=deadline) as response:
            read.whole = not self.streamed(response)
            for reply in self.replies(response):
                ended = ended or reply is None or bool(search("choices[0].finish_reason", reply))
                self._take(read, reply)
        if read.answer and _FAILED in read.answer:
            raise HttpError(f"the server reports an error: {read.answer[:200]}", transient=True)
        read.selected = len(read.passages) if read.passages else None
        return self.finish(read, ended=None if read.whole else ended)

    def _take(self, read: Read, reply: Any) -> None:
        """Add what one event tells; of a message and a delta with the same words only one counts."""
        if len(read.raw) < 3:
            read.raw.append(reply)
        read.add(search("choices[0].message.content", reply) or search("choices[0].delta.content", reply))
        results = search("citations.results", reply)
        if results and not read.passages:
            read.passages = _readable(results)
        read.usage = {**read.usage, **read_usage(reply)}

    def _search(self, case: Case, deadline: Deadline, collection: str) -> list[Any]:
        shared = {name: value for name, value in self._told.parameters.items() if name in _SHARED}
        body = {
            "query": case.question,
            "messages": messages(case),
            "collection_names": [collection],
            "reranker_top_k": self._told.depth,
            **shared,
        }
        return _readable(search("results", self.fetch("/v1/search", body, deadline=deadline)) or [])


def _readable(results: Any) -> list[Any]:
    """Return results with words: what is cut out of a page is a picture, and its description is the text."""
    readable = []
    for result in results:
        picture = search("document_type", result) not in (None, "text")
        words = search("metadata.description", result)
        readable.append({**result, "content": words or ""} if picture else result)
    return readable


def _place(result: Any) -> tuple[Any, Any]:
    return search("document_name", result), search("content", result)


class Ingestor:
    """A collection of the ingestor."""

    def __init__(self, server: Server, url: str, collection: str) -> None:
        self._server, self._url, self._collection = server, url, collection
        self._tasks: dict[str, str] = {}
        """Of files whose task is not seen to have ended."""
        self._failed: dict[str, str] = {}

    def _call(self, path: str, deadline: Deadline, body: Any = None, method: str = "GET") -> Any:
        return self._server.fetch(path, body, deadline=deadline, method=method, url=self._url)

    def listed(self, deadline: Deadline) -> Mapping[str, Held] | None:
        """Return the files that are in, those whose task is running, and those whose task failed."""
        there = search("collections[].collection_name", self._call("/v1/collections", deadline)) or []
        if self._collection not in there:
            return None
        self._look(deadline)
        path = f"/v1/documents?collection_name={quote(self._collection)}&max_results={_MOST}"
        names = search("documents[].document_name", self._call(path, deadline)) or []
        held = {Path(name).name: Held() for name in names}
        waiting = {name: Held(ready=False) for name in self._tasks}
        return {**held, **waiting, **{name: Held(error=why) for name, why in self._failed.items() if name not in held}}

    def _look(self, deadline: Deadline) -> None:
        """Learn which tasks have ended, and what they say of their files."""
        for name, task in list(self._tasks.items()):
            told = self._call(f"/v1/status?task_id={quote(task)}", deadline)
            state = str(search("state", told) or "").upper()
            if state in ("PENDING", "UNKNOWN", ""):
                continue
            del self._tasks[name]
            why = search("result.failed_documents[0].error_message", told) or search("result.message", told)
            if state == "FAILED" or search("result.failed_documents[0]", told):
                self._failed[name] = str(why or "its task failed")

    def create(self, deadline: Deadline) -> None:
        """Make the collection."""
        self._call("/v1/collection", deadline, {"collection_name": self._collection}, "POST")

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Upload a file without waiting for it to be read."""
        data = {"data": json.dumps({"collection_name": self._collection, "blocking": False})}
        files = {"documents": (name, path.read_bytes())}
        told = self._server.upload("/v1/documents", files, data, deadline=deadline, url=self._url)
        task = search("task_id", told)
        if task:
            self._tasks[name] = str(task)

    def start(self, deadline: Deadline) -> None:
        """Do nothing: files are read as they come."""

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Delete the collection."""
        self._call("/v1/collections", deadline, [self._collection], "DELETE")
