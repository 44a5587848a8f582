"""Mean average precision: the precision at the rank of each gold, averaged over all golds, found or not.

The whole ranking counts, as deep as the system gave it. What is ranked is said in `_ranking`.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options
from exhibit.evaluation.metrics._ranking import ranking_of

NAMES = ("map",)
ABOUT = {
    "map": About(
        "Average precision (MAP)",
        "precision at the rank of each gold, averaged over all golds",
        "Retrieval",
        needs=("gold text", "passages"),
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the average precisions, None where there is no gold."""
    return {"map": each(cases, _average_precision)}


def _average_precision(case: Case) -> float | None:
    ranking = ranking_of(case)
    if ranking is None or not (golds := ranking.golds()):
        return None
    return sum(number / rank for number, rank in enumerate(ranking.gold_ranks(), 1)) / golds
