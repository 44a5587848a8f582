"""Recall@K over passages: the share of the gold passages that some passage of the first K matches."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.cases import Case, Values
from evaluation.metrics._about import About
from evaluation.metrics._each import each
from evaluation.metrics._options import K, Options
from evaluation.metrics._passages import found_golds, matches_of

NAMES = (f"recall@{K}",)
ABOUT = {
    "recall": About(
        "Gold passages found",
        "share of gold passages found among the first k",
        "Retrieval",
        needs=("gold text", "passages"),
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share of golds matched, None where no gold has words."""

    def score(case: Case) -> float | None:
        matched, golds = matches_of(case, options)
        return len(found_golds(matched)) / golds if golds else None

    return {f"recall@{options.k}": each(cases, score)}
