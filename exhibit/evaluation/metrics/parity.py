"""The definitions of the seed project, where they differ from ours (`--set parity=seed`).

The published character metrics of LegalBench-RAG are in `retrieval`, with ours.
"""

import re
from collections.abc import Iterable
from math import log2

from exhibit.evaluation.metrics import Case, list_gold_texts

_APART = re.compile(
    r"[;@#$%&?!()\[\]{}<>\"“”‘’«»„`*]|--+|\.{3}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?=\s|$)|n't\b|\.(?=\s|$)"
)  # the punctuation that NLTK's word tokenizer separates from a word; a full stop counts as the end of a sentence


def split_seed_words(text: str) -> list[str]:
    """Return the lower-cased tokens of NLTK's tokenizer that consist of letters and digits only."""
    return [word for word in _APART.sub(" ", text.lower()).split() if word.isalnum()]


def match_seed(case: Case, k: int) -> tuple[list[list[int]], int]:
    """Return the indexes of the gold passages that match each of the first k passages, and the number of gold passages.

    Two texts match if one contains the other, ignoring case: a single word is enough.
    """

    def matches(passage: str, gold: str) -> bool:
        text, other = passage.strip().lower(), gold.strip().lower()
        return text in other or other in text

    golds = list_gold_texts(case)
    passages = [passage.text for passage in case.reply.passages[:k]]
    return [[i for i, gold in enumerate(golds) if matches(passage, gold)] for passage in passages], len(golds)


def score_seed_ndcg(case: Case, k: int) -> float | None:
    """Return an nDCG in which every passage that matches any gold adds gain, so that the value can exceed 1."""
    matched, golds = match_seed(case, k)
    gained = [rank for rank, golds_there in enumerate(matched) if golds_there]
    return _sum_discounts(gained) / _sum_discounts(range(min(golds, k))) if golds else None


def _sum_discounts(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 2) for rank in ranks)
