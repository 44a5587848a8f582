"""Mean reciprocal rank@10: one over the rank of the first gold; 0 if no gold is among the first ten items.

`evaluation.ranking` defines the items: gold passages or, if a question has relevance grades, files.
"""

from collections.abc import Sequence
from functools import partial

from exhibit.evaluation.metrics import Case, Cutoff, Options, Values, score_each
from exhibit.evaluation.ranking import ranking_of

DEPTH = 10  # MRR@10, as in MS MARCO
NAMES = (f"mrr@{DEPTH}",)


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff = DEPTH) -> dict[str, Values]:
    """Return, for each question, 1 / the rank of the first passage with gold; None if the question has no gold.

    The value is 0 if none of the first `cutoff` passages has gold.
    """
    return {f"mrr@{cutoff}": score_each(cases, partial(_compute_reciprocal, cutoff=cutoff))}


def _compute_reciprocal(case: Case, cutoff: int) -> float | None:
    ranking = ranking_of(case)
    if ranking is None or not ranking.count_golds():
        return None
    first = next(iter(ranking.find_gold_ranks()), cutoff + 1)
    return 1 / first if first <= cutoff else 0.0
