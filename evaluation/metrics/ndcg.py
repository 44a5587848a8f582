"""nDCG@K over passages: how early in the ranking the gold passages are matched.

Each gold is credited once, so the value cannot pass 1. Parity "seed" credits every passage that matches any gold,
and it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

from evaluation.cases import Case, Values
from evaluation.metrics._about import About
from evaluation.metrics._each import each
from evaluation.metrics._options import K, Options
from evaluation.metrics._passages import credited_ranks, matches_of

NAMES = (f"ndcg@{K}",)
ABOUT = {
    "ndcg": About(
        "Ranking quality (nDCG)",
        "gold passages found, those ranked higher counting more",
        "Retrieval",
        needs=("gold text", "passages"),
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the discounted gain over that of the ideal ranking, None where no gold has words."""

    def score(case: Case) -> float | None:
        matched, golds = matches_of(case, options)
        if not golds:
            return None
        if options.parity == "seed":
            ranks = [rank for rank, found in enumerate(matched) if found]
        else:
            ranks = credited_ranks(matched)
        return _gain(ranks) / _gain(range(min(golds, options.k)))

    return {f"ndcg@{options.k}": each(cases, score)}


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 2) for rank in ranks)
