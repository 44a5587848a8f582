"""The definitions of other projects, where they differ from ours (`--set parity=seed` and `parity=squad`).

The published character metrics of LegalBench-RAG are in `retrieval`, beside ours.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable
from math import log2

from exhibit.evaluation.answer_words import compute_f1, without_citations
from exhibit.evaluation.metrics import Case, list_gold_texts
from exhibit.law.refusals import is_refusal

_APART = re.compile(
    r"[;@#$%&?!()\[\]{}<>\"“”‘’«»„`*]|--+|\.{3}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?=\s|$)|n't\b|\.(?=\s|$)"
)
"""The punctuation that NLTK's word tokenizer separates from a word; a full stop counts as the end of a sentence."""
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

# ---------------------------------------------------------------- the seed project


def split_seed_words(text: str) -> list[str]:
    """Return the lower-cased tokens of NLTK's tokenizer that consist of letters and digits only."""
    return [word for word in _APART.sub(" ", text.lower()).split() if word.isalnum()]


def match_seed(case: Case, k: int) -> tuple[list[list[int]], int]:
    """Return, for each of the first k passages, the indexes of the golds that match it, and the number of golds.

    Two texts match if one contains the other, ignoring case: a single word is enough.
    """

    def matches(passage: str, gold: str) -> bool:
        text, other = passage.strip().lower(), gold.strip().lower()
        return text in other or other in text

    golds = list_gold_texts(case)
    passages = [passage.text for passage in case.reply.passages[:k]]
    return [[i for i, gold in enumerate(golds) if matches(passage, gold)] for passage in passages], len(golds)


def score_seed_ndcg(case: Case, k: int) -> float | None:
    """Return nDCG in which every passage that matches any gold gains, so that the value can exceed 1."""
    matched, golds = match_seed(case, k)
    gained = [rank for rank, golds_there in enumerate(matched) if golds_there]
    return _sum_discounts(gained) / _sum_discounts(range(min(golds, k))) if golds else None


def _sum_discounts(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 2) for rank in ranks)


# ---------------------------------------------------------------- SQuAD 2.0


def split_squad_words(text: str) -> list[str]:
    """Return the words that SQuAD compares: lower-cased, without ASCII punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def make_squad_prediction(answer: str) -> str:
    """Return an answer as SQuAD's metric expects it: without citations, and empty where the answer is a refusal."""
    return "" if is_refusal(answer) else without_citations(answer)


def score_squad(case: Case, *, exact: bool) -> float:
    """Return SQuAD's exact match or F1, the best over the gold texts or, without gold texts, the expected answer.

    For an impossible question the answer must be empty.
    """
    predicted = split_squad_words(make_squad_prediction(case.reply.answer or ""))
    golds = [] if case.is_impossible else list_gold_texts(case) or [case.truth]
    expected = [words for gold in golds if (words := split_squad_words(gold))] or [[]]
    return max(float(predicted == words) if exact else _score_f1(predicted, words) for words in expected)


def _score_f1(predicted: list[str], expected: list[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    return compute_f1((Counter(predicted) & Counter(expected)).total(), len(predicted), len(expected))
