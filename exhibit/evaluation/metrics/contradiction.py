"""Contradictions in the documents: whether a reply states both contradictory values, or only one of them.

`both_named` is 1 if the reply states both values, and `one_silently` is 1 if it states only one. Otherwise
they are 0; both are 0 if the reply states neither value or refuses. The labels `old` and `new` have the two
values. Both figures are None if one of these labels states no amount, period, date, percentage or place, or
if no contradiction was added to the question's documents.
"""

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.evaluation.metrics._variants import is_varied
from exhibit.law.values import keys_of


def _count_named(case: Case) -> int | None:
    """Return how many of the two contradictory values a reply states.

    The labels `old` and `new` have the two values. None if no contradiction was added to the question's
    documents, or if one of these labels has no amount, period, date, percentage or place.
    """
    if not is_varied(case, "contradiction"):
        return None
    values = [keys_of(str(case.labels.get(name) or "")) for name in ("old", "new")]
    stated = keys_of(case.reply.answer or "")
    return sum(value <= stated for value in values) if all(values) else None


def _names_both(case: Case) -> float | None:
    count = _count_named(case)
    return None if count is None else float(count == 2)


def _names_one(case: Case) -> float | None:
    count = _count_named(case)
    return None if count is None else float(count == 1)


NAMES, measure = score_per_case(both_named=_names_both, one_silently=_names_one)
