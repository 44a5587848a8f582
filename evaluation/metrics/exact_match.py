"""Exact match: whether the top passage, or the answer, has just the words of a gold.

The answer is held against the expected one alone; an impossible row has none (`abstention_accuracy` is about those).
Parity "seed" compares the top passage in lower case, trimmed, punctuation included; parity "squad" reads the answer as
SQuAD 2.0 does (`_squad`).
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import About, Case, Options, Values, each, gold_texts
from exhibit.evaluation.metrics._words import against, same_words, squad_exact, squad_golds

NAMES = ("exact_match", "answer_exact_match")
ABOUT = {
    "exact_match": About(
        "Top passage is the gold",
        "the first passage's words equal a gold passage's",
        "Retrieval",
        needs=("gold text", "passages"),
        short=False,
    ),
    "answer_exact_match": About(
        "Answer is the expected one", "word for word", "Answers", needs=("answer", "expected"), short=False
    ),
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return 1 or 0 for the top passage and for the answer."""
    same = _same_text if options.parity == "seed" else same_words

    def passage(case: Case) -> float | None:
        golds = gold_texts(case)
        hits = (same(top.text, gold) for top in case.reply.passages[:1] for gold in golds)
        return float(any(hits)) if golds else None

    def answer(case: Case) -> float | None:
        if options.parity == "squad":
            return squad_exact(case.reply.answer or "", squad_golds(case))
        return against(case, [case.truth], same_words)

    return {"exact_match": each(cases, passage), "answer_exact_match": each(cases, answer)}


def _same_text(one: str, other: str) -> float:
    return float(one.strip().lower() == other.strip().lower())
