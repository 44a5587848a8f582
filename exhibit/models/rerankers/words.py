"""A reranker without a neural network: it scores passages by BM25 on the question's words.

It is a baseline for other rerankers. A question word that few of the passages contain counts more.
"""

from collections import Counter
from collections.abc import Sequence
from math import log

from exhibit.law.language import search_terms
from exhibit.schemas.errors import ToolkitError

_K1, _B = 1.2, 0.75  # the usual values for BM25


LOCAL = True


def open(argument: str | None) -> "WordReranker":
    """Return the reranker, which has no options."""
    if argument:
        raise ToolkitError(f"words:{argument}: the reranker words takes no argument; remove {argument!r}")
    return WordReranker()


class WordReranker:
    """A reranker that scores by BM25; the rarity of a word is computed from the passages of one call."""

    name = "words"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return the BM25 score of each passage, in order."""
        counts = [Counter(search_terms(passage)) for passage in passages]
        mean = sum(map(Counter.total, counts)) / max(1, len(counts)) or 1.0
        scores = [0.0] * len(passages)
        for term in dict.fromkeys(search_terms(question)):  # in order: the sum of floats depends on it
            holders = sum(term in terms for terms in counts)
            rarity = log(1 + (len(counts) - holders + 0.5) / (holders + 0.5))
            for place, terms in enumerate(counts):
                times = terms[term]
                scores[place] += rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * terms.total() / mean))
        return scores
