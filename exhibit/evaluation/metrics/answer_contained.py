"""Answer contained: whether the reply, or one of the passages it was made from, says what is expected.

The expected answer stands there word for word, or every number, date, amount, name and term of it does
(`law.figures`). It needs no gold passage and no judge; what is put in other words is missed. The passages are those
that the answer was made from, where that is known, else the first K.
"""

from exhibit.evaluation.metrics import Case, per_case
from exhibit.evaluation.ranking import holding_answer, says_expected


def _contained(case: Case) -> float | None:
    """Return 1 or 0, None where it cannot be told, as of a bare yes or no."""
    contained = says_expected(case, case.reply.answer or "")
    return None if contained is None else float(contained)


def _in_passages(case: Case) -> float | None:
    if says_expected(case, "") is None:
        return None
    return float(holding_answer(case) is not None)


NAMES, measure = per_case(answer_contained=_contained, answer_in_passages=_in_passages)
