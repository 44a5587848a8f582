"""Judge whether an answer is right.

All parts of the report, such as verdicts, tables and comparisons of runs, use this judgement.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.correctness import decide_case
from exhibit.law.language import list_word_runs

Judgement = Literal["right", "wrong"]
"""The judgement of an answer; None means that it is not judged."""

ANSWERED_RIGHTLY, JUDGED = "answered_rightly", "answer_judged"
MARK = "answer_correctness"
"""The metric with the judge's marks of answers."""
GOOD_MARK = 4.0  # 4 means "it says what matters"; at 3 something of substance is missing
"""A judge's mark of at least this much calls an answer right."""
EXPECTED = "expected_answer"
"""The label in tables for the kind of a question's expected answer."""
_SHORT = 12  # words: names, amounts, dates and periods are shorter, sentences are longer


def describe_expected(truth: str, golds: Iterable[str], *, impossible: bool) -> str:
    """Return the kind of the expected answer, in words.

    The kinds are `none in the documents`, `yes or no`, `quote` (of the gold), `short answer` and `text`.
    """
    if impossible:
        return "none in the documents"
    words = list_word_runs(truth.lower())
    if words and words[0] in ("yes", "no") and len(words) <= _SHORT:
        return "yes or no"
    if any(words and words == list_word_runs(gold.lower()) for gold in golds):
        return "quote"
    return "short answer" if len(words) <= _SHORT else "text"


def judge_answer(case: Case) -> Judgement | None:
    """Return `right` or `wrong` for a reply, by rules; None if the rules cannot decide."""
    right = decide_case(case).right
    return None if right is None else "right" if right else "wrong"


def prefer_judge(values: Mapping[str, Values]) -> dict[str, Values]:
    """Return the values by metric, with `answered_rightly` as the first key.

    If a judge has marked an answer, `answered_rightly` is computed from the mark instead of the rules.
    """
    if ANSWERED_RIGHTLY not in values:
        return dict(values)
    decided = {ANSWERED_RIGHTLY: list(values[ANSWERED_RIGHTLY])}
    if JUDGED in values:
        decided[JUDGED] = list(values[JUDGED])
    for at, mark in enumerate(values.get(MARK, ())):
        if mark is not None:
            for name, column in decided.items():
                column[at] = float(name == JUDGED or mark >= GOOD_MARK)
    return {**decided, **values, **decided}  # the first gives the order of the columns, the last their values
