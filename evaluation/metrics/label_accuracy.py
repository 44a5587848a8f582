"""Label accuracy: whether the reply chooses the label that the source gives, where a system was asked for one.

`--ask-label label` puts the choices into the questions. Impossible rows count: their label says that nothing is
mentioned, and a refusal chooses it. Macro F1 and the table of confusions are in `labels.json`.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.choices import chosen
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options

NAMES = ("label_accuracy",)
ABOUT = {
    "label_accuracy": About(
        "Labels that are right",
        "replies that choose the label that the source gives",
        "Answers",
        needs=("answer", "label"),
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return 1 or 0 for each reply; one that chooses nothing is wrong."""
    return {
        "label_accuracy": each(cases, lambda case: float(chosen(case.reply.answer or "", case.choices) == case.label))
    }
