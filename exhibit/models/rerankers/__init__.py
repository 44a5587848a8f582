"""Rerankers by name: a second, slower look at the first passages, question and passage together."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Reranker(Protocol):
    """A module in `models/rerankers/` has `open(argument: str | None) -> Reranker`.

    One that has a number `retrieval_weight` as well is joined with retrieval: the retrieval's own score counts so much
    beside it, both in standard deviations. Else the first passages come in the reranker's order alone.
    One that has `confidence(scores) -> float` tells from its scores of the first chunks how likely one of them answers.
    """

    name: str

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return how well each passage answers, in order; higher is better, on any scale."""


def retrieval_weight(reranker: Reranker) -> float | None:
    """Return what the retrieval's score counts beside a reranker's; None when it is not joined."""
    weight: float | None = getattr(reranker, "retrieval_weight", None)
    return weight


def confidence(reranker: Reranker, scores: Sequence[float]) -> float | None:
    """Return how likely it is that one of the passages with these scores answers; None when it cannot tell."""
    tell: Callable[[Sequence[float]], float] | None = getattr(reranker, "confidence", None)
    return tell(scores) if tell is not None and len(scores) else None
