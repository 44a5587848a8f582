"""The first passages in a new order: a reranker reads each with the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.rerankers import Reranker
from rag.retrieval.passages import Passage


def rerank(
    question: str, passages: Sequence[Passage], texts: Sequence[str], reranker: Reranker, *, first: int = 32
) -> list[Passage]:
    """Return the passages with the `first` ones by the reranker's score, equals as they were; the rest as it was.

    Scores stay in the order that they had, so that they fall from first to last as every ranking's do: a
    reranker's scale has nothing in common with that of the passages behind it.
    """
    head = list(passages[:first])
    scores = reranker.score(question, texts[:first])
    order = sorted(range(len(head)), key=lambda at: -scores[at])
    moved = [replace(head[at], score=place.score) for place, at in zip(head, order, strict=True)]
    return [*moved, *passages[first:]]
