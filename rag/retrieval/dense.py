"""Chunks by one kind of evidence, their vectors or their words: of any document, or below the nearest summaries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exhibit.law.language import asked_terms
from exhibit.models.protocols import Vectors
from exhibit.rag.config import Config
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit, Keys, section_key, section_keys
from exhibit.rag.retrieval.stages import Parts, Retrieved, State, choose_documents, finish


def retrieve_dense(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return what is found for each question, in order."""
    config = parts.config
    depth = max(config.depth, config.candidates * config.k)
    if config.method != "dense":
        return [_by_words(question, depth, parts) for question in questions]
    vectors = parts.embedder.embed(questions, role="query")
    if config.layer_documents or config.layer_sections:
        found = [_below_layers(vector, depth, parts) for vector in vectors]
    else:
        found = list(
            zip(
                *parts.index.store("chunk").search(vectors, depth, within=parts.chunk_keys),
                [{}] * len(vectors),
                strict=True,
            )
        )
    results = []
    for question, vector, (scores, keys, trace) in zip(questions, vectors, found, strict=True):
        state = State(question, vector, keys[keys >= 0], scores[keys >= 0], {**trace})
        state.trace["search"] = {"layer": "chunk", "depth": depth, "found": len(state.keys)}
        choose_documents(state, parts.index, config)
        results.append(_finished(state, parts))
    return results


def _by_words(question: str, depth: int, parts: Parts) -> Retrieved:
    words = parts.index.lexicon.chunks
    terms, within = asked_terms(question), parts.chunk_keys
    scores, keys = words.search(terms, depth if within is None else len(words), method=parts.config.method)
    if within is not None:
        kept = np.isin(keys, within)
        scores, keys = scores[kept][:depth], keys[kept][:depth]
    state = State(question, np.zeros(0, np.float32), keys, scores)
    state.trace["search"] = {"method": parts.config.method, "depth": depth, "found": len(keys)}
    return _finished(state, parts)


def _below_layers(vector: Vectors, depth: int, parts: Parts) -> tuple[Vectors, Keys, dict[str, object]]:
    """Return the nearest chunks below the nearest sections of the nearest documents, and what was nearest."""
    index, config = parts.index, parts.config
    numbers = np.array(index.numbers if parts.only is None else parts.only, np.int64)
    trace: dict[str, object] = {}
    if config.layer_documents:
        _, [near] = index.store("document").search(vector[None], config.layer_documents, within=numbers)
        numbers = near[near >= 0]
        trace["documents layer"] = [index.document(int(number)).filename for number in numbers]
    keys = index.chunk_keys(numbers)
    if config.layer_sections:
        keys = _below_sections(vector, numbers, keys, index, config)
        trace["sections layer"] = {"chunks": len(keys)}
    [scores], [nearest] = index.store("chunk").search(vector[None], depth, within=keys)
    return scores, nearest, trace


def _below_sections(vector: Vectors, numbers: Keys, keys: Keys, index: Index, config: Config) -> Keys:
    """Return those of the chunks that stand in the nearest sections of some documents."""
    every = [section_keys(int(number), len(index.document(int(number)).sections)) for number in np.sort(numbers)]
    within = np.concatenate([np.zeros(0, np.int64), *every])
    _, [near] = index.store("section").search(vector[None], config.layer_sections, within=within)
    rows = index.table[np.searchsorted(index.table[:, 0], keys)]
    chosen: Keys = keys[np.isin(section_key(rows[:, 1], np.maximum(rows[:, 5], 0)), near)]
    return chosen


def _finished(state: State, parts: Parts) -> Retrieved:
    hits = [_hit(parts.index, int(key), float(score)) for key, score in zip(state.keys, state.scores, strict=True)]
    return finish(state.question, hits, parts, state.trace)


def _hit(index: Index, key: int, score: float) -> Hit:
    chunk = index.chunk(key)
    return Hit(chunk, score, index.text(chunk))
