"""The stages of the seed's recipe, each a small step that a setting switches on."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from exhibit.rag.config import Config
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit
from exhibit.rag.retrieval.rerank import rerank
from exhibit.rag.retrieval.state import Parts, Retrieved, State, Tokens


def choose_documents(state: State, index: Index, config: Config) -> None:
    """Keep the best documents, judged by their passages among the first candidates; rank again within them."""
    if not config.document_limit or not len(state.keys):
        return
    first = state.keys[: config.candidates * config.k]
    scores: dict[int, list[float]] = defaultdict(list)
    for number, score in zip(index.document_numbers(first), state.scores, strict=False):
        scores[int(number)].append(float(score))
    judged = {
        number: config.document_max * max(cosines) + config.document_mean * float(np.mean(cosines))
        for number, cosines in scores.items()
    }
    best = sorted(judged, key=lambda number: (-judged[number], number))[: config.document_limit]
    state.trace["documents"] = {index.document(number).filename: round(judged[number], 4) for number in best}
    if config.layer_documents or config.layer_sections:  # what the layers above left out stays out
        kept = np.isin(index.document_numbers(state.keys), best)
        state.keys, state.scores = state.keys[kept], state.scores[kept]
        return
    [scores_within], [keys_within] = index.store("chunk").search(
        state.vector[None], len(state.keys), within=index.chunk_keys(best)
    )
    kept = keys_within >= 0
    state.keys, state.scores = keys_within[kept], scores_within[kept]


def finish(
    question: str,
    hits: list[Hit],
    parts: Parts,
    trace: dict[str, Any],
    *,
    reranked: bool = False,
    confidence: float | None = None,
) -> Retrieved:
    """Return the ranking, looked at a second time if there is a reranker, and what an answer is made from.

    `reranked` says that the second look has been taken. Where the confidence is below the config's, an answer is made
    from nothing, and so is a refusal, whoever writes it; but for the reader, which decides with that confidence itself.
    """
    config = parts.config
    if parts.reranker is not None and not reranked:
        hits = rerank(question, hits, parts.reranker, first=config.rerank)
        trace["reranked"] = {"by": parts.reranker.name, "passages": min(config.rerank, len(hits))}
    near = near_the_best(hits[: config.candidates * config.k], config)
    fitting = within_budget(near, config, parts.tokens)
    selected = fitting[: config.k]
    unlikely = confidence is not None and confidence < (config.refuse_below or 0.0)
    if unlikely and not config.reads:
        selected = []
    trace["selected"] = {"near": len(near), "within budget": len(fitting), "k": len(selected)}
    return Retrieved(question, tuple(hits[: config.depth]), tuple(selected), trace, confidence)


def near_the_best(hits: list[Hit], config: Config) -> list[Hit]:
    """Drop passages that score lower than the best by more than the threshold, but keep so many at least."""
    if config.threshold is None or not hits:
        return hits
    least = hits[0].score - config.threshold
    return [hit for place, hit in enumerate(hits) if hit.score >= least or place < config.min_chunks]


def within_budget(hits: list[Hit], config: Config, tokens: Tokens) -> list[Hit]:
    """Keep passages from the front while they fit; the first one always does."""
    kept: list[Hit] = []
    spent = 0
    for hit in hits:
        spent += tokens(hit.text)
        if kept and spent > config.budget:
            break
        kept.append(hit)
    return kept
