"""Answer contained: whether the reply, or a passage that it was made from, contains the expected answer.

A text contains the expected answer if it has the answer word for word, or if it has all numbers, dates,
amounts, names and terms of the answer (`law.figures`). The metric needs no gold passage and no judge, but
misses paraphrases. If it is unknown which passages the reply was made from, the first K passages are used.
"""

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.evaluation.ranking import find_answer_passage, says_expected


def _is_contained(case: Case) -> float | None:
    """Return 1 if the reply contains the expected answer, else 0; None if rules cannot decide, as for a bare yes."""
    contained = says_expected(case, case.reply.answer or "")
    return None if contained is None else float(contained)


def _is_in_passages(case: Case) -> float | None:
    if says_expected(case, "") is None:
        return None
    return float(find_answer_passage(case) is not None)


NAMES, measure = score_per_case(answer_contained=_is_contained, answer_in_passages=_is_in_passages)
