"""Forbidden content: the share of a question's forbidden items that the answer states; 0 is best.

An item is stated if its words occur in sequence, in upper or lower case. Figures and dates match in any
spelling.
"""

from exhibit.evaluation.answer_words import read_listed_items, says_item
from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.schemas.layout import MUST_NOT_CONTAIN


def _score(case: Case) -> float | None:
    items = read_listed_items(case, MUST_NOT_CONTAIN)
    said = [any(says_item(one, case.reply.answer or "", strict=True) for one in item) for item in items]
    return sum(said) / len(said) if said else None


NAMES, measure = score_per_case(answer_must_not=_score)
