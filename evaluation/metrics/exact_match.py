"""Exact match: whether the top passage, or the answer, has just the words of a gold.

For the answer, the truth counts as gold, too; an impossible row has none (`abstention_accuracy` is about those).
Parity "seed" compares the top passage in lower case, trimmed, punctuation included; parity "squad" reads the answer as
SQuAD 2.0 does (`_squad`).
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each, gold_texts
from exhibit.evaluation.metrics._options import Options
from exhibit.evaluation.metrics._squad import squad_exact, squad_golds
from exhibit.evaluation.metrics._words import answer_pair, same_words

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
        "Answer is the expected one", "word for word", "Answers", needs=("answer", "truth"), short=False
    ),
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return 1 or 0 for the top passage and for the answer."""
    same = _same_text if options.parity == "seed" else same_words

    def passage(case: Case) -> float | None:
        golds = gold_texts(case)
        if not golds:
            return None
        return float(any(same(top.text, gold) for top in case.reply.passages[:1] for gold in golds))

    def answer(case: Case) -> float | None:
        if options.parity == "squad":
            return None if case.reply.answer is None else squad_exact(case.reply.answer, squad_golds(case))
        pair = answer_pair(case)
        return float(any(same_words(pair[0], expected) for expected in pair[1])) if pair else None

    return {"exact_match": each(cases, passage), "answer_exact_match": each(cases, answer)}


def _same_text(one: str, other: str) -> bool:
    return one.strip().lower() == other.strip().lower()
