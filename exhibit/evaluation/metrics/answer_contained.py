"""Answer contained: whether the reply, or one of the passages that it was made from, contains the expected answer.

The expected answer occurs word for word, or all its numbers, dates, amounts, names and terms do (`law.figures`). The
metric needs no gold passage and no judge, but misses paraphrases. The passages are those that the answer was made from,
where they are known, else the first K.
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
