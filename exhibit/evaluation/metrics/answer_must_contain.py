"""Required content: the share of a question's required items that the answer states.

An item is stated word for word, or by all its numbers, dates, amounts and terms (`law.figures`), so that
"thirty (30) days" equals "30 days". An item may be a list of alternatives, of which one is enough. The
metric needs no expected answer, no gold and no judge.
"""

from exhibit.evaluation.answer_words import read_listed_items, says_item
from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.schemas.layout import MUST_CONTAIN


def _score(case: Case) -> float | None:
    items = read_listed_items(case, MUST_CONTAIN)
    said = [any(says_item(one, case.reply.answer or "") for one in item) for item in items]
    return sum(said) / len(said) if said else None


NAMES, measure = score_per_case(answer_must_contain=_score)
