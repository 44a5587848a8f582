"""Answer F1 against the gold: the words that the answer shares with the best-matching gold passage.

It suits benchmarks of contract clauses, in which the right answer is a quote. The metric `answer_f1`
compares the answer with the expected answer instead.
"""

from exhibit.evaluation.answer_words import compute_multiset_f1, score_against
from exhibit.evaluation.metrics import list_gold_texts, score_per_case

NAMES, measure = score_per_case(
    answer_gold_f1=lambda case: score_against(case, list_gold_texts(case), compute_multiset_f1)
)
