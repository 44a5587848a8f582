"""Span F1: the words that the top passage and a gold passage have in common, as sets; the best over the golds.

Parity "seed" cuts words as NLTK does and keeps those of letters and digits alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import About, Case, Options, Values, each, gold_texts
from exhibit.evaluation.metrics._words import seed_words, set_f1, words

NAMES = ("span_f1",)
ABOUT = {
    "span_f1": About(
        "Top passage overlap (F1)",
        "words that the first passage shares with gold",
        "Retrieval",
        needs=("gold text", "passages"),
        short=False,
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the F1 of the top passage, None where no gold has words."""
    cut = seed_words if options.parity == "seed" else words

    def score(case: Case) -> float | None:
        golds = gold_texts(case)
        tops = case.reply.passages[:1]
        return max((set_f1(top.text, gold, cut) for top in tops for gold in golds), default=0.0) if golds else None

    return {"span_f1": each(cases, score)}
