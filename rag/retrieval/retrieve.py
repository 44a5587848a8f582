"""Batches of questions to ranked passages: one search, deep enough for metrics; then what an answer may use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag.config import Config
from rag.index import Index
from rag.retrieval.routed import retrieve_routed
from rag.retrieval.stages import Tokens, choose_documents, select
from rag.retrieval.state import Retrieved, State
from rag.seams import Embedder, Hit

_BATCH = 256
"""Questions searched at once: enough for matrix products, few enough that scores stay small in memory."""


def retrieve(
    questions: Sequence[str], index: Index, embedder: Embedder, config: Config, *, tokens: Tokens
) -> list[Retrieved]:
    """Return what is found for each question, in order; a blank question finds nothing."""
    found: list[Retrieved] = []
    way = retrieve_routed if config.routing else retrieve_dense
    for start in range(0, len(questions), _BATCH):
        found += way(questions[start : start + _BATCH], index, embedder, config, tokens=tokens)
    return found


def retrieve_dense(
    questions: Sequence[str], index: Index, embedder: Embedder, config: Config, *, tokens: Tokens
) -> list[Retrieved]:
    """Return the nearest chunks of any document, or of the best few; a blank question finds nothing."""
    asked = [position for position, question in enumerate(questions) if question.strip()]
    results = [Retrieved(question, (), (), {"search": "blank question"}) for question in questions]
    if not asked or not len(index):
        return results
    vectors = embedder.embed([questions[position] for position in asked], role="query")
    depth = max(config.depth, config.candidates * config.k)
    scores, keys = index.store("chunk").search(vectors, depth)
    for row, position in enumerate(asked):
        kept = keys[row] >= 0
        state = State(questions[position], vectors[row], keys[row][kept], scores[row][kept])
        state.trace["search"] = {"layer": "chunk", "depth": depth, "found": int(np.sum(kept))}
        choose_documents(state, index, config)
        results[position] = _finish(state, index, config, tokens)
    return results


def _finish(state: State, index: Index, config: Config, tokens: Tokens) -> Retrieved:
    hits = [_hit(index, int(key), float(score)) for key, score in zip(state.keys, state.scores, strict=True)]
    selected, state.trace["selected"] = select(hits, config, tokens)
    return Retrieved(state.question, tuple(hits[: config.depth]), tuple(selected), state.trace)


def _hit(index: Index, key: int, score: float) -> Hit:
    chunk = index.chunk(key)
    return Hit(chunk, score, index.text(chunk))
