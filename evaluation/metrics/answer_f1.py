"""Answer F1: the words that the answer and the expected one have in common, repeats counted.

An impossible row has none: `abstention_accuracy` is about those. Parity "squad" counts as SQuAD 2.0 does: without
articles, against the gold's words alone, and a refusal is right where the row is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import About, Case, Options, Values, each
from exhibit.evaluation.metrics._words import against, multiset_f1, squad_f1, squad_golds

NAMES = ("answer_f1",)
ABOUT = {
    "answer_f1": About(
        "Answer overlap (F1)",
        "words that the answer shares with the expected one",
        "Answers",
        needs=("answer", "expected"),
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the F1 of each answer."""

    def score(case: Case) -> float | None:
        if options.parity == "squad":
            return squad_f1(case.reply.answer or "", squad_golds(case))
        return against(case, [case.truth], multiset_f1)

    return {"answer_f1": each(cases, score)}
