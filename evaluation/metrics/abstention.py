"""Abstention: whether impossible questions are refused, and whether answerable ones are not."""

from __future__ import annotations

from exhibit.evaluation.metrics import About, Case, per_case
from exhibit.law.citations import is_refusal

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


def _refused(case: Case) -> float:
    """Return 1 for a refusal and 0 for an answer."""
    return float(is_refusal(case.reply.answer or ""))


NAMES, measure = per_case(abstention_accuracy=_refused, false_refusal_rate=_refused)
