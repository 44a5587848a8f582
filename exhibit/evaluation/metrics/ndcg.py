"""nDCG@K: how early the gold is in the ranking.

Each gold passage is credited once: at the rank at which the passages up to that rank contain half of
it. So the value is at most 1. If a case has grades (as in ACORD), files are ranked instead, with the
grade as gain. With the option `parity=seed`, every passage that matches any gold is credited, so the
value can exceed 1.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from math import log2

from exhibit.evaluation.metrics import Case, Cutoff, K, Options, Values, score_each
from exhibit.evaluation.ranking import match_seed, ranking_of

SHORT = 5
"""A second, smaller cutoff: ACORD reports nDCG at 5 and 10."""

NAMES = (f"ndcg@{SHORT}", f"ndcg@{K}")
HEADLINE = f"ndcg@{K}"


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return nDCG at each cutoff: the discounted gain of the reply's ranking divided by that of the ideal ranking.

    The value is None for a case that has neither relevance grades nor gold that can be compared with passages.
    """
    score = _score_as_seed if options.parity == "seed" else _compute_gain
    depths = [cutoff] if cutoff else sorted({SHORT, options.k})
    return {f"ndcg@{k}": score_each(cases, partial(score, k=k)) for k in depths}


def _compute_gain(case: Case, k: int) -> float | None:
    ranking = ranking_of(case)
    return ranking.compute_ndcg(k) if ranking else None


def _score_as_seed(case: Case, k: int) -> float | None:
    matched, golds = match_seed(case, k)
    if not golds:
        return None
    return _sum_discounts(rank for rank, golds_there in enumerate(matched) if golds_there) / _sum_discounts(
        range(min(golds, k))
    )


def _sum_discounts(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 2) for rank in ranks)
