"""Answer F1 against the gold: the words that the answer and a gold passage have in common; the best over the passages.

Benchmarks of clauses are answered by quoting; `answer_f1` is against the expected answer alone, in every bundle.
"""

from exhibit.evaluation.answer_words import multiset_f1, score_against
from exhibit.evaluation.metrics import gold_texts, per_case

NAMES, measure = per_case(answer_gold_f1=lambda case: score_against(case, gold_texts(case), multiset_f1))
