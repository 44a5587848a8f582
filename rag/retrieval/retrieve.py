"""Batches of questions to ranked passages, deep enough for metrics; and what an answer may use."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.rag.retrieval.dense import retrieve_dense
from exhibit.rag.retrieval.routed import retrieve_routed
from exhibit.rag.retrieval.state import Parts, Retrieved

_BATCH = 256
"""Questions searched at once: enough for matrix products, few enough that scores stay small in memory."""


def retrieve(questions: Sequence[str], parts: Parts) -> list[Retrieved]:
    """Return what is found for each question, in order; a blank question finds nothing."""
    results = [Retrieved(question, (), (), {"search": "blank question"}) for question in questions]
    asked = [position for position, question in enumerate(questions) if question.strip()]
    if not len(parts.index) or parts.only == ():
        return results
    way = retrieve_routed if parts.config.routing else retrieve_dense
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        for position, one in zip(batch, way([questions[position] for position in batch], parts), strict=True):
            results[position] = one
    return results
