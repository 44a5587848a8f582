"""The nearest chunks of any document, or of the best few: one search by meaning alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit
from exhibit.rag.retrieval.stages import choose_documents, finish
from exhibit.rag.retrieval.state import Parts, Retrieved, State


def retrieve_dense(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return what is found for each question, in order."""
    index, config = parts.index, parts.config
    vectors = parts.embedder.embed(questions, role="query")
    depth = max(config.depth, config.candidates * config.k)
    scores, keys = index.store("chunk").search(vectors, depth)
    results = []
    for row, question in enumerate(questions):
        kept = keys[row] >= 0
        state = State(question, vectors[row], keys[row][kept], scores[row][kept])
        state.trace["search"] = {"layer": "chunk", "depth": depth, "found": int(np.sum(kept))}
        choose_documents(state, index, config)
        hits = [_hit(index, int(key), float(score)) for key, score in zip(state.keys, state.scores, strict=True)]
        results.append(finish(question, hits, parts, state.trace))
    return results


def _hit(index: Index, key: int, score: float) -> Hit:
    chunk = index.chunk(key)
    return Hit(chunk, score, index.text(chunk))
