"""Answered rightly: whether a reply gives the expected answer; None where the reply is not judged.

If the question asks for a label, the reply must choose the label that the benchmark gives. Otherwise the
rules of `evaluation.correctness` decide. The mark of a judge, if there is one, overrules both
(`evaluation.judgement`). `answer_judged` is the share of replies that are judged. `answer_contained` only
searches for the expected words.
"""

from exhibit.evaluation.correctness import decide_case
from exhibit.evaluation.label_choices import find_chosen_label
from exhibit.evaluation.metrics import Case, score_per_case


def _is_right(case: Case) -> float | None:
    """Return 1 if the answer is right, 0 if it is wrong or a refusal, and None if the answer is not judged."""
    if case.choices and case.label is not None and not case.is_impossible:
        return float(find_chosen_label(case.reply.answer or "", case.choices) == case.label)
    right = decide_case(case).right
    return None if right is None else float(right)


def _is_judged(case: Case) -> float | None:
    """Return 1 if the answer is judged as right or wrong, and 0 if it is not judged.

    An answer that is not judged gives None, not 0, if the question is impossible or has no expected answer.
    """
    right = _is_right(case)
    return None if right is None and (case.is_impossible or not case.truth.strip()) else float(right is not None)


NAMES, measure = score_per_case(answered_rightly=_is_right, answer_judged=_is_judged)
