"""Mean average precision: the mean, over all golds, of the precision at the rank of each gold.

A gold that is not retrieved counts as 0. The whole ranking is used. `evaluation.ranking` defines the ranked
items.
"""

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.evaluation.ranking import ranking_of


def _compute_average_precision(case: Case) -> float | None:
    ranking = ranking_of(case)
    if ranking is None or not (golds := ranking.count_golds()):
        return None
    return sum(number / rank for number, rank in enumerate(ranking.find_gold_ranks(), 1)) / golds


NAMES, measure = score_per_case(map=_compute_average_precision)
