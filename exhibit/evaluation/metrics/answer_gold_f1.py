"""Answer F1 against the gold: the words that the answer shares with the best-matching gold passage.

Benchmarks of contract clauses expect quotes as answers; `answer_f1` always compares with the expected answer.
"""

from exhibit.evaluation.answer_words import multiset_f1, score_against
from exhibit.evaluation.metrics import gold_texts, per_case

NAMES, measure = per_case(answer_gold_f1=lambda case: score_against(case, gold_texts(case), multiset_f1))
