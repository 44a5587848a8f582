"""Rerankers, which score question and passage together, more slowly than retrieval: one file each."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Reranker(Protocol):
    """Scores passages for a question. A module in `models/rerankers/` has `open(argument: str | None) -> Reranker`.

    A reranker with a number `retrieval_weight` is combined with retrieval: the weight multiplies the retrieval score,
    and both scores are in standard deviations. Otherwise the reranker alone decides the order of the first passages. A
    reranker with `confidence(scores) -> float` estimates the probability that one of the first chunks answers.
    """

    name: str

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return a score for each passage, in order; higher is better, on any scale."""


def find_retrieval_weight(reranker: Reranker) -> float | None:
    """Return the weight of the retrieval score beside a reranker's; None if the two are not combined."""
    weight: float | None = getattr(reranker, "retrieval_weight", None)
    return weight


def estimate_confidence(reranker: Reranker, scores: Sequence[float]) -> float | None:
    """Return the probability that one of the passages with these scores answers; None if there is no estimate."""
    tell: Callable[[Sequence[float]], float] | None = getattr(reranker, "confidence", None)
    return tell(scores) if tell is not None and len(scores) else None
