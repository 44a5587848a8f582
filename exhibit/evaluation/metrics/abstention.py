"""Abstention: whether impossible questions are refused, and whether answerable ones are not."""

from exhibit.evaluation.metrics import Case, per_case
from exhibit.law.refusals import is_refusal


def _refused(case: Case) -> float:
    """Return 1 for a refusal and 0 for an answer."""
    return float(is_refusal(case.reply.answer or ""))


NAMES, measure = per_case(abstention_accuracy=_refused, false_refusal_rate=_refused)
