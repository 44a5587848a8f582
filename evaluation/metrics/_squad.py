"""SQuAD 2.0's own reading of an answer: articles and punctuation aside, and no answer is an answer, too."""

from __future__ import annotations

import re
import string
from collections import Counter

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics._each import gold_texts
from exhibit.evaluation.metrics._words import f1, without_citations
from exhibit.law.citations import is_refusal

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_words(text: str) -> list[str]:
    """Return the words that are compared: lower-cased, without ASCII punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def squad_prediction(answer: str) -> str:
    """Return an answer as it is handed to SQuAD's metric: without citations, and empty where it refuses."""
    return "" if is_refusal(answer) else without_citations(answer)


def squad_golds(case: Case) -> list[str]:
    """Return what SQuAD's metric compares with: the gold's words, else the truth; nothing for an impossible row."""
    return [] if case.is_impossible else gold_texts(case) or [case.truth]


def squad_exact(answer: str, golds: list[str]) -> float:
    """Return 1 where the answer is one of the golds; without golds, where there is none."""
    predicted = squad_words(squad_prediction(answer))
    return float(any(predicted == words for words in _words(golds)))


def squad_f1(answer: str, golds: list[str]) -> float:
    """Return the best F1; where either side has no words, 1 when both have none."""
    predicted = squad_words(squad_prediction(answer))
    return max(_f1(predicted, words) for words in _words(golds))


def _words(golds: list[str]) -> list[list[str]]:
    return [words for gold in golds if (words := squad_words(gold))] or [[]]


def _f1(predicted: list[str], expected: list[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    return f1((Counter(predicted) & Counter(expected)).total(), len(predicted), len(expected))
