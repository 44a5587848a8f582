"""Rerankers by name: a second, slower look at the first passages, question and passage together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """A module in `rag/rerankers/` has `open(argument: str | None) -> Reranker`."""

    name: str

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return how well each passage answers, in order; higher is better, on any scale."""
