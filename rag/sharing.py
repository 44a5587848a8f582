"""Questions shared out among processes: each opens the index for itself, and is sent questions that are embedded.

So one process has the embedding model and its budget, and the rest of the work, which is Python's, runs on all
processors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from exhibit.models.protocols import Role, Vectors
from exhibit.models.token_counts import counter_for
from exhibit.rag.answerers import open_answerer
from exhibit.rag.assemble import assemble
from exhibit.rag.config import Config
from exhibit.rag.index import Index, open_index
from exhibit.rag.protocols import Answer, Context
from exhibit.rag.retrieval.routed import Prepared, retrieve_prepared
from exhibit.rag.retrieval.state import Parts, Retrieved
from exhibit.schemas.errors import ToolkitError


class Timed(NamedTuple):
    """A question with what was found for it, what was answered, and the seconds that it took."""

    retrieved: Retrieved
    context: Context
    answer: Answer
    seconds: float


@dataclass(frozen=True)
class Embedded:
    """A few questions on their way to another process."""

    prepared: Prepared

    def __str__(self) -> str:
        """Return what an error calls it."""
        queries = self.prepared.queries
        return f"{len(queries)} questions from {queries[0].question[:80]!r}"

    def parts(self, size: int) -> list[Embedded]:
        """Return the same questions, so many at a time."""
        queries, vectors, imagined = self.prepared
        windows = [slice(start, start + size) for start in range(0, len(queries), size)]
        return [Embedded(Prepared(queries[window], vectors[window], imagined[window])) for window in windows]


@dataclass(frozen=True)
class Answering:
    """The work of one process on a few questions: picklable, so that any engine can run it."""

    folder: Path
    seal: str
    """Which state of the index is meant: a process that has another one open opens it anew."""
    config: str
    """The settings of the search, as JSON."""

    def __call__(self, embedded: Embedded) -> list[Timed]:
        """Return what is found and answered for each question, in order."""
        parts = _parts(self.folder, self.seal, self.config)
        began = time.monotonic()
        results = retrieve_prepared(embedded.prepared, parts)
        searched = (time.monotonic() - began) / len(results)
        return [self._answer(retrieved, parts, searched) for retrieved in results]

    def _answer(self, retrieved: Retrieved, parts: Parts, searched: float) -> Timed:
        began = time.monotonic()
        context = assemble(
            retrieved.question,
            retrieved.selected,
            summaries=summaries(retrieved, parts.index),
            budget=parts.config.budget,
            tokens=parts.tokens,
        )
        answer = open_answerer(parts.config).answer(retrieved.question, context)
        return Timed(retrieved, context, answer, searched + time.monotonic() - began)


def can_share(config: Config) -> bool:
    """Return whether other processes can search as this one does: the index is in files, and no model reads passages.

    A model would be opened by each of them, and keeps all processors busy from one.
    """
    in_files = config.store.partition(":")[0] == "faiss"
    no_model = config.reranker == "none" and config.llm == "none" and not config.reads
    return config.routing and in_files and not config.imagine and no_model


def summaries(retrieved: Retrieved, index: Index) -> dict[str, str]:
    """Return the summaries of the documents that a question's passages come from."""
    names = {hit.chunk.document for hit in retrieved.selected}
    return {name: index.entry(name).summary for name in sorted(names)}


@dataclass
class _Elsewhere:
    """The embedder's place in a process that embeds nothing."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - as all embedders
        raise ToolkitError(f"{self.name} is open in another process; questions come embedded")


@lru_cache(maxsize=1)
def _parts(folder: Path, seal: str, settings: str) -> Parts:
    config = Config.model_validate_json(settings)
    index = open_index(folder, config, seal=seal)
    return Parts(index, _Elsewhere(index.embedder, index.dimensions), config, counter_for(None))
