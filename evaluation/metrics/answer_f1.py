"""Answer F1: the words that the answer and the truth, or a gold passage, have in common, repeats counted; the best.

An impossible row has none: `abstention_accuracy` is about those. Parity "squad" counts as SQuAD 2.0 does: without
articles, against the gold's words alone, and a refusal is right where the row is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options
from exhibit.evaluation.metrics._squad import squad_f1, squad_golds
from exhibit.evaluation.metrics._words import answer_pair, multiset_f1

NAMES = ("answer_f1",)
ABOUT = {
    "answer_f1": About(
        "Answer overlap (F1)",
        "words that the answer shares with the expected one",
        "Answers",
        needs=("answer", "truth"),
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the F1 of the answer, None where there is none or nothing to compare it with."""

    def score(case: Case) -> float | None:
        pair = answer_pair(case)
        return max(multiset_f1(pair[0], expected) for expected in pair[1]) if pair else None

    def squad(case: Case) -> float | None:
        return None if case.reply.answer is None else squad_f1(case.reply.answer, squad_golds(case))

    return {"answer_f1": each(cases, squad if options.parity == "squad" else score)}
