"""Rerankers, one file each: they score a question and a passage together, which is slower than retrieval."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Reranker(Protocol):
    """A reranker. A module in `models/rerankers/` has the function `open(argument: str | None) -> Reranker`.

    With the optional number `retrieval_weight`, the retrieval score times this number is added to the reranker's score,
    after both are standardised. The optional method `confidence(scores)` returns the probability that a passage
    answers the question.
    """

    name: str

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return a score for each passage, in order; higher is better, on any scale."""


def estimate_confidence(reranker: Reranker, scores: Sequence[float]) -> float | None:
    """Return the probability that one of the scored passages answers the question; None if it is unknown."""
    confidence: Callable[[Sequence[float]], float] | None = getattr(reranker, "confidence", None)
    return confidence(scores) if confidence is not None and len(scores) else None
