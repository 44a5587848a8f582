"""Essential coverage: the share of a question's gold passages whose words are in the answer.

A passage is covered if the answer has four fifths of its words. A lower limit would be too lenient, because
clauses of one kind share many words. The metric does not apply to a question with a single gold passage.
"""

from collections import Counter

from exhibit.evaluation.answer_words import split_words, without_citations
from exhibit.evaluation.metrics import Case, list_gold_texts, score_per_case

ENOUGH = 0.8
"""The share of a passage's words that an answer must have to cover it."""


def _score(case: Case) -> float | None:
    parts = [Counter(split_words(text)) for text in dict.fromkeys(list_gold_texts(case)) if split_words(text)]
    if len(parts) < 2 or case.is_impossible or case.reply.answer is None:
        return None
    said = Counter(split_words(without_citations(case.reply.answer)))
    return sum((part & said).total() >= ENOUGH * part.total() for part in parts) / len(parts)


NAMES, measure = score_per_case(essential_coverage=_score)
