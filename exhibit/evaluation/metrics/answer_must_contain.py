"""What an answer must say: the share of the items that a test set lists for it and that the answer has.

An item is there word for word, or with every number, date, amount and term of it (`law.figures`), so that "thirty (30)
days" is "30 days". Of items in a list of their own one is enough. It needs no expected answer, no gold and no judge.
"""

from exhibit.evaluation.answer_words import listed_items, says_item
from exhibit.evaluation.metrics import Case, per_case
from exhibit.schemas.layout import MUST_CONTAIN


def _score(case: Case) -> float | None:
    items = listed_items(case, MUST_CONTAIN)
    said = [any(says_item(one, case.reply.answer or "") for one in item) for item in items]
    return sum(said) / len(said) if said else None


NAMES, measure = per_case(answer_must_contain=_score)
