"""Whether an answer is right: one rule for verdicts, tiles, tables and comparisons."""

from collections.abc import Iterable, Mapping
from typing import Literal

from exhibit.evaluation.cases import Case
from exhibit.evaluation.correctness import decide_case
from exhibit.evaluation.metrics import Options, limit_gold
from exhibit.law.language import word_runs
from exhibit.law.refusals import is_refusal

Judgement = Literal["right", "wrong"]
"""What is known of an answer; None where it cannot be told: it is not judged."""

ANSWERED_RIGHTLY = "answered_rightly"
_MARKS = {"answer_correctness": 4.0, "label_accuracy": 1.0}
"""Metrics that decide before the words do, and from which value on an answer is right.

A judge's mark of 4 is "it says what matters"; 3 lacks something of substance.
"""
_INVENTED = "figures that no passage has"


EXPECTED = "expected_answer"
"""The label under which tables have the kind of a question's expected answer."""
_SHORT = 12  # words: a name, an amount, a date or a period is shorter, a sentence is not


def expected_kind(truth: str, golds: Iterable[str], *, impossible: bool) -> str:
    """Return what an answer is compared with: a yes or no, a quote of the gold, a short answer or a longer text."""
    if impossible:
        return "none in the documents"
    words = word_runs(truth.lower())
    if words and words[0] in ("yes", "no") and len(words) <= _SHORT:
        return "yes or no"
    if any(words and words == word_runs(gold.lower()) for gold in golds):
        return "quote"
    return "short answer" if len(words) <= _SHORT else "text"


def answer_judgement(case: Case) -> Judgement | None:
    """Return whether the reply gives the expected answer; a refusal of what the documents answer is wrong.

    None for a question without an answer in the documents, and where nothing tells.
    """
    if limit_gold(case, ("answer", "truth"), Options()) is None:
        return None
    if is_refusal(case.reply.answer or ""):
        return "wrong"
    right = decide_case(case).right
    return None if right is None else "right" if right else "wrong"


def answered_rightly(case: Case, verdict: str, scores: Mapping[str, float | None]) -> float | None:
    """Return 1 for a right answer, 0 for a wrong one, None for one that is not judged or not to be given.

    A judge's mark and a label decide where there are any; an answer with an invented figure is wrong.
    """
    if case.reply.error or case.is_impossible or case.reply.answer is None:
        return None
    for name, least in _MARKS.items():
        if (value := scores.get(name)) is not None:
            return float(value >= least)
    judgement = answer_judgement(case)
    return None if judgement is None else float(judgement == "right" and verdict != _INVENTED)
