"""Recall@K: the share of the gold passages that are found within the first K passages.

A gold passage is found if the first K passages together contain at least half of its characters. For a case
with grades (ACORD), files are counted instead: the share of the gold files that are among the first K
different files.
"""

from collections.abc import Sequence
from functools import partial

from exhibit.evaluation.metrics import Case, Cutoff, K, Options, Values, score_each
from exhibit.evaluation.ranking import find_gold_ranks, match_seed, ranking_of

NAMES = (f"recall@{K}",)


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return recall@k of each case: the share of its gold passages that are found among the first k passages.

    The value is None if the reply failed, or if the case has no gold to compare. If the case has grades for
    files (as in ACORD), files are counted instead of passages.
    """
    score = _score_as_seed if options.parity == "seed" else _compute_share
    depth = cutoff or options.k
    return {f"recall@{depth}": score_each(cases, partial(score, k=depth))}


def _compute_share(case: Case, k: int) -> float | None:
    if case.grades:
        ranking = ranking_of(case)
        golds = ranking.count_golds() if ranking else 0
        return sum(rank <= k for rank in ranking.find_gold_ranks()) / golds if ranking and golds else None
    ranks = find_gold_ranks(case)
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks) if ranks else None


def _score_as_seed(case: Case, k: int) -> float | None:
    matched, golds = match_seed(case, k)
    return len({gold for golds_there in matched for gold in golds_there}) / golds if golds else None
