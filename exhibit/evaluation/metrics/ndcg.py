"""nDCG@K: how early in the ranking the gold stands.

Over passages, each gold is credited once, at the rank at which the passages so far hold half of it, so the value cannot
pass 1. Where a case has grades (ACORD), it is over files, with the grade as gain. Parity "seed" credits every passage
that matches any gold, and it can pass 1.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from math import log2

from exhibit.evaluation.metrics import Case, Cutoff, K, Options, Values, score_each
from exhibit.evaluation.ranking import ranking_of, seed_matches

SHORT = 5
"""A second, smaller depth: ACORD's figures are at 5 and 10."""

NAMES = (f"ndcg@{SHORT}", f"ndcg@{K}")
HEADLINE = f"ndcg@{K}"


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the discounted gain over that of the ideal ranking, None where no gold has words or a grade."""
    score = _seed if options.parity == "seed" else _gain
    depths = [cutoff] if cutoff else sorted({SHORT, options.k})
    return {f"ndcg@{k}": score_each(cases, partial(score, k=k)) for k in depths}


def _gain(case: Case, k: int) -> float | None:
    ranking = ranking_of(case)
    return ranking.ndcg(k) if ranking else None


def _seed(case: Case, k: int) -> float | None:
    matched, golds = seed_matches(case, k)
    if not golds:
        return None
    return _discounts(rank for rank, golds_there in enumerate(matched) if golds_there) / _discounts(
        range(min(golds, k))
    )


def _discounts(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 2) for rank in ranks)
