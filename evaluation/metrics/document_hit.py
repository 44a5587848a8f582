"""Document hit: whether any of the first k passages comes from a file with gold."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each, gold_files
from exhibit.evaluation.metrics._options import KS, Cutoff, Options

NAMES = tuple(f"document_hit@{k}" for k in KS)
ABOUT = {
    "document_hit": About(
        "Right document found",
        "questions with a passage of the right file among the first k",
        "Retrieval",
        needs=("gold files", "passages"),
        depths=(1,),
    )
}


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return 1 or 0 at each k, None where no gold names a file."""
    first = each(cases, _first_hit)
    depths = (cutoff,) if cutoff else options.ks
    return {f"document_hit@{k}": [None if rank is None else float(rank <= k) for rank in first] for k in depths}


def _first_hit(case: Case) -> float | None:
    """Return the rank of the first passage from a gold file, infinity where there is none."""
    files = gold_files(case)
    if not files:
        return None
    ranks = (rank for rank, passage in enumerate(case.reply.passages, 1) if passage.filename in files)
    return float(next(ranks, float("inf")))
