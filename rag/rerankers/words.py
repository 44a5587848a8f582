"""The question's words in the passage, rare ones first: no model, no network; what others are measured against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from exhibit.law.words import search_terms
from exhibit.rag.lexicon.bm25 import Words
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None) -> WordReranker:
    """Return it; there is nothing to choose."""
    if argument:
        raise ToolkitError(f"words:{argument}: this reranker takes no argument")
    return WordReranker()


class WordReranker:
    """BM25 among the passages that it is given."""

    name = "words"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return BM25 of each passage, in order."""
        words = Words()
        words.add(range(len(passages)), passages)
        scores: list[float] = words.scores(sorted(set(search_terms(question))), np.arange(len(passages))).tolist()
        return scores
