"""The question's words in the passage, rare ones first: no model, no network; what others are measured against."""

from collections import Counter
from collections.abc import Sequence
from math import log

from exhibit.law.language import search_terms
from exhibit.schemas.errors import ToolkitError

_K1, _B = 1.2, 0.75  # the values BM25 is usually given


LOCAL = True


def open(argument: str | None) -> "WordReranker":
    """Return it; there is nothing to choose."""
    if argument:
        raise ToolkitError(f"words:{argument}: this reranker takes no argument")
    return WordReranker()


class WordReranker:
    """BM25 among the passages that it is given."""

    name = "words"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return BM25 of each passage, in order."""
        counts = [Counter(search_terms(passage)) for passage in passages]
        mean = sum(map(Counter.total, counts)) / max(1, len(counts)) or 1.0
        scores = [0.0] * len(passages)
        for term in set(search_terms(question)):
            holders = sum(term in terms for terms in counts)
            rarity = log(1 + (len(counts) - holders + 0.5) / (holders + 0.5))
            for place, terms in enumerate(counts):
                times = terms[term]
                scores[place] += rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * terms.total() / mean))
        return scores
