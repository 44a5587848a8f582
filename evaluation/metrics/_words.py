"""Words as they are counted for exact match and F1: lower-cased runs of letters and digits."""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import gold_texts
from exhibit.law.citations import find_citations, is_refusal, without_places
from exhibit.law.language import word_runs

_APART = re.compile(
    r"[;@#$%&?!()\[\]{}<>\"“”‘’«»„`*]|--+|\.{3}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?=\s|$)|n't\b|\.(?=\s|$)"
)
"""What NLTK's word tokenizer parts from a word, with a full stop taken for the end of a sentence."""
_PAGE_CITATION = re.compile(r"\[[^\[\]\n]*#page=[^\[\]\n]*\]")


def words(text: str) -> list[str]:
    """Return the words of a text, in order."""
    return word_runs(text.lower())


def f1(shared: int, predicted: int, expected: int) -> float:
    """Return the harmonic mean of precision and recall, 0 where nothing is shared."""
    return 2 * shared / (predicted + expected) if shared else 0.0


def seed_words(text: str) -> list[str]:
    """Return the words as NLTK's tokenizer cuts them, those alone that are letters and digits: no `non-exclusive`."""
    return [word for word in _APART.sub(" ", text.lower()).split() if word.isalnum()]


def set_f1(answer: str, expected: str, cut: Callable[[str], list[str]] = words) -> float:
    """Return F1 over the different words of two texts."""
    one, other = set(cut(answer)), set(cut(expected))
    return f1(len(one & other), len(one), len(other))


def multiset_f1(answer: str, expected: str) -> float:
    """Return F1 over the words of two texts, repeats counted."""
    one, other = Counter(words(answer)), Counter(words(expected))
    return f1((one & other).total(), one.total(), other.total())


def same_words(answer: str, expected: str) -> float:
    """Return 1 where two texts have the same words in the same order, and any at all."""
    return float(bool(words(answer)) and words(answer) == words(expected))


def against(case: Case, expected: Iterable[str], score: Callable[[str, str], float]) -> float | None:
    """Return the best score of an answer against one of some texts, citations removed; None where none has words."""
    answer = without_citations(case.reply.answer or "")
    return max((score(answer, text) for text in map(without_citations, expected) if words(text)), default=None)


def without_citations(text: str) -> str:
    """Return a text without `[1]`, `[Document#page=Section]` and the list of places, which are not what it says."""
    text = without_places(text)
    for citation in reversed(find_citations(text)):
        text = text[: citation.span.start] + text[citation.span.end :]
    return _PAGE_CITATION.sub("", text)


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
