"""Rerankers, one file each: they score a question and a passage together, which is slower than retrieval."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Reranker(Protocol):
    """A reranker, which scores passages for a question.

    A module in `models/rerankers/` has the function `open(argument: str | None) -> Reranker`. Passages are
    sorted by the reranker's score. If the reranker has a number `retrieval_weight`, the retrieval score times
    this number is added to it; both scores are standardised first. A reranker may also have a method
    `confidence(scores) -> float`: the probability that one of the scored passages answers the question.
    """

    name: str

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return a score for each passage, in order; higher is better, on any scale."""


def find_retrieval_weight(reranker: Reranker) -> float | None:
    """Return the weight of the retrieval score in the sum with a reranker's score; None if they are not added."""
    weight: float | None = getattr(reranker, "retrieval_weight", None)
    return weight


def estimate_confidence(reranker: Reranker, scores: Sequence[float]) -> float | None:
    """Return the probability that at least one of the scored passages answers the question; None if it is unknown."""
    tell: Callable[[Sequence[float]], float] | None = getattr(reranker, "confidence", None)
    return tell(scores) if tell is not None and len(scores) else None
