"""Essential coverage: of the several passages that a question needs, the share that the answer has the words of.

A passage is covered where the answer holds four fifths of its words: clauses of one kind share many, and half of
another's would do for less. A question that one passage answers has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each, gold_texts
from exhibit.evaluation.metrics._options import Options
from exhibit.evaluation.metrics._words import without_citations, words

NAMES = ("essential_coverage",)
ABOUT = {
    "essential_coverage": About(
        "Parts answered",
        "passages that a question of several parts needs, and that the answer has",
        "Answers",
        needs=("answer", "gold text"),
    )
}
ENOUGH = 0.8
"""The share of a passage's words that an answer must hold to have it."""


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share of the parts, None where there are fewer than two or the row has no answer."""
    return {"essential_coverage": each(cases, _score)}


def _score(case: Case) -> float | None:
    parts = [Counter(words(text)) for text in dict.fromkeys(gold_texts(case)) if words(text)]
    if len(parts) < 2 or case.is_impossible or case.reply.answer is None:
        return None
    said = Counter(words(without_citations(case.reply.answer)))
    return sum((part & said).total() >= ENOUGH * part.total() for part in parts) / len(parts)
