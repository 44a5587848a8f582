"""The first passages in a new order: a reranker reads each with the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from exhibit.models.rerankers import Reranker, retrieval_weight
from exhibit.rag.protocols import Hit


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, *, first: int = 32) -> list[Hit]:
    """Return the hits with the `first` ones by the reranker's score, equals as they were; the rest as it was.

    Scores stay in the order that they had, so that they fall from first to last as every ranking's do: a
    reranker's scale has nothing in common with that of the hits behind it.
    """
    head = list(hits[:first])
    scores = reranker.score(question, [hit.text for hit in head])
    order = order_by(scores, [hit.score for hit in head], weight=retrieval_weight(reranker))
    moved = [replace(head[at], score=place.score) for place, at in zip(head, order, strict=True)]
    return [*moved, *hits[first:]]


def order_by(judged: Sequence[float], retrieved: Sequence[float], *, weight: float | None) -> list[int]:
    """Return places, best first, by the reranker's score, joined with the retrieval's where that has a weight."""
    if not len(judged):
        return []
    scores = np.asarray(judged, np.float64)
    if weight is not None:
        scores = _standard(scores) + weight * _standard(np.asarray(retrieved, np.float64))
    return [int(at) for at in np.argsort(-scores, kind="stable")]


def _standard(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values in standard deviations from their mean; zero where they do not differ."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)
