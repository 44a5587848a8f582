"""Answer F1 against the gold: the words that the answer and a gold passage have in common; the best over the passages.

Benchmarks of clauses are answered by quoting; `answer_f1` is against the expected answer alone, in every bundle.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each, gold_texts
from exhibit.evaluation.metrics._options import Options
from exhibit.evaluation.metrics._words import against, multiset_f1

NAMES = ("answer_gold_f1",)
ABOUT = {
    "answer_gold_f1": About(
        "Answer overlap with the gold (F1)",
        "words that the answer shares with the gold passage most like it",
        "Answers",
        needs=("answer", "gold text"),
        short=False,
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the F1 of each answer, None where the gold is known by its place alone."""
    return {"answer_gold_f1": each(cases, lambda case: against(case, gold_texts(case), multiset_f1))}
