"""Answered rightly: whether the reply says what the expected answer says, None where rules cannot decide it.

`answer_judged` says of how many replies they could. What is compared is in `evaluation.correctness`; `answer_contained`
only looks for the expected words.
"""

from exhibit.evaluation.correctness import decide_case
from exhibit.evaluation.metrics import Case, per_case


def _right(case: Case) -> float | None:
    """Return 1 for a right answer, 0 for a wrong one, None for one that is not judged."""
    right = decide_case(case).right
    return None if right is None else float(right)


def _judged(case: Case) -> float:
    return float(decide_case(case).right is not None)


NAMES, measure = per_case(answer_right=_right, answer_judged=_judged)
