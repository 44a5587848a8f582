"""Essential coverage: of the several passages that a question needs, the share that the answer has the words of.

A passage is covered where the answer holds four fifths of its words: clauses of one kind share many, and half of
another's would do for less. A question that one passage answers has none.
"""

from collections import Counter

from exhibit.evaluation.answer_words import without_citations, words
from exhibit.evaluation.metrics import Case, gold_texts, per_case

ENOUGH = 0.8
"""The share of a passage's words that an answer must hold to have it."""


def _score(case: Case) -> float | None:
    parts = [Counter(words(text)) for text in dict.fromkeys(gold_texts(case)) if words(text)]
    if len(parts) < 2 or case.is_impossible or case.reply.answer is None:
        return None
    said = Counter(words(without_citations(case.reply.answer)))
    return sum((part & said).total() >= ENOUGH * part.total() for part in parts) / len(parts)


NAMES, measure = per_case(essential_coverage=_score)
