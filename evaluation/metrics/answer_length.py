"""Answer length, in characters."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options

NAMES = ("answer_length",)
ABOUT = {
    "answer_length": About(
        "Answer length",
        "characters of an answer",
        "Cost",
        unit="characters",
        better="neither",
        needs=("answer",),
        short=False,
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the length of each answer."""
    return {"answer_length": each(cases, lambda case: float(len(case.reply.answer or "")))}
