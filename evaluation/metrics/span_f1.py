"""Span F1: the words that the top passage and a gold passage have in common, as sets; the best over the golds."""

from __future__ import annotations

from exhibit.evaluation.metrics import About, Case, gold_texts, per_case
from exhibit.evaluation.metrics._words import set_f1

ABOUT = {
    "span_f1": About(
        "Top passage overlap (F1)",
        "words that the first passage shares with gold",
        "Retrieval",
        needs=("gold text", "passages"),
        short=False,
    )
}


def _score(case: Case) -> float | None:
    """Return the F1 of the top passage, None where no gold has words."""
    golds = gold_texts(case)
    tops = case.reply.passages[:1]
    return max((set_f1(top.text, gold) for top in tops for gold in golds), default=0.0) if golds else None


NAMES, measure = per_case(span_f1=_score)
