"""Case law citation accuracy: the share of the truth's neutral citations that are given.

Year, court, division and number must all agree: [2024] EWHC 789 (Ch) is not [2024] EWHC 789 (Admin).
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options
from exhibit.law.references import references

NAMES = ("case_law_citation_accuracy",)
ABOUT = {
    "case_law_citation_accuracy": About(
        "Expected cases cited",
        "cases of the truth that the answer gives",
        "Citations",
        needs=("answer", "truth"),
        short=False,
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share for each answer, None where the truth cites no case."""

    def score(case: Case) -> float | None:
        expected = {reference for reference in references(case.truth) if reference.kind == "case"}
        given = references(case.reply.answer or "")
        return len(expected.intersection(given)) / len(expected) if expected else None

    return {"case_law_citation_accuracy": each(cases, score)}
