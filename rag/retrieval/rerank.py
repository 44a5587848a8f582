"""The first passages in a new order: a reranker reads each with the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.rerankers import Reranker
from rag.seams import Hit


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, *, first: int = 32) -> list[Hit]:
    """Return the hits with the `first` ones by the reranker's score, equals as they were; the rest as it was.

    Scores stay in the order that they had, so that they fall from first to last as every ranking's do: a
    reranker's scale has nothing in common with that of the hits behind it.
    """
    head = list(hits[:first])
    scores = reranker.score(question, [hit.text for hit in head])
    order = sorted(range(len(head)), key=lambda at: -scores[at])
    moved = [replace(head[at], score=place.score) for place, at in zip(head, order, strict=True)]
    return [*moved, *hits[first:]]
