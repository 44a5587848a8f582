"""Abstention: whether impossible questions are refused, and whether answerable ones are not."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options
from exhibit.law.citations import is_refusal

NAMES = ("abstention_accuracy", "false_refusal_rate")
ABOUT = {
    "abstention_accuracy": About(
        "Refused when impossible", "impossible questions that were refused", "Answers", needs=("answer", "impossible")
    ),
    "false_refusal_rate": About(
        "Refused when answerable",
        "answerable questions that were refused",
        "Answers",
        better="less",
        needs=("answer", "answerable"),
    ),
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return 1 for a refusal and 0 for an answer."""
    return {name: each(cases, lambda case: float(is_refusal(case.reply.answer or ""))) for name in NAMES}
