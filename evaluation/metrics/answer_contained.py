"""Answer contained: whether the reply, or one of the passages it was made from, says what is expected.

The expected answer stands there word for word, or every number, date, amount, name and term of it does
(`law.figures`). It needs no gold passage and no judge; what is put in other words is missed. The passages are those
that the answer was made from, where that is known, else the first K.
"""

from exhibit.evaluation.answer_words import without_citations, without_named
from exhibit.evaluation.metrics import Case, K, per_case
from exhibit.law.figures import stands_in


def says_expected(case: Case, text: str) -> bool | None:
    """Return whether a text says the expected answer, whose citations are no part of what it says."""
    return stands_in(without_named(without_citations(case.truth)), text)


def _contained(case: Case) -> float | None:
    """Return 1 or 0, None where it cannot be told, as of a bare yes or no."""
    contained = says_expected(case, case.reply.answer or "")
    return None if contained is None else float(contained)


def _in_passages(case: Case) -> float | None:
    if says_expected(case, "") is None:
        return None
    return float(holding_answer(case) is not None)


def holding_answer(case: Case) -> int | None:
    """Return the number, from 1, of the first passage read that says the expected answer."""
    numbers = case.reply.numbers_read(K)
    return next((n for n in numbers if says_expected(case, case.reply.passages[n - 1].text)), None)


NAMES, measure = per_case(answer_contained=_contained, answer_in_passages=_in_passages)
