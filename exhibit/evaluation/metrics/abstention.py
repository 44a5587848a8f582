"""Abstention: whether impossible questions are refused, and answerable ones are answered.

One rule (`law.refusals`) recognises refusals; `refusal_unsure` is the share of replies for which the rule is unsure.
"""

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.law.refusals import is_refusal, read_refusal


def _is_refused(case: Case) -> float:
    """Return 1 for a refusal and 0 for an answer."""
    return float(is_refusal(case.reply.answer or ""))


def _is_unsure(case: Case) -> float:
    return float(not read_refusal(case.reply.answer or "").sure)


NAMES, measure = score_per_case(
    abstention_accuracy=_is_refused, false_refusal_rate=_is_refused, refusal_unsure=_is_unsure
)
