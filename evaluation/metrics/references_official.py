"""References that exist officially: the share of an answer's references that the public registers have.

legislation.gov.uk and Find Case Law are asked by `--check-references`, and not otherwise. What they do not cover (court
rules, Scottish and Northern Irish judgments, older cases) or could not be asked counts neither way.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import About, Case, Options, Values, each
from exhibit.law.references import references

NAMES = ("references_official",)
ABOUT = {
    "references_official": About(
        "References that exist officially",
        "references of the answer that legislation.gov.uk or Find Case Law has",
        "Citations",
        needs=("answer", "registers"),
        gate=False,  # a register may be away, or have grown
    )
}
_DECIDED = {"found": 1.0, "absent": 0.0}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share for each answer, None where no reference of it was decided."""

    def score(case: Case) -> float | None:
        given = dict.fromkeys(references(case.reply.answer or "", context=case.question))
        outcomes = [options.officials.outcome(one) for one in given] if options.officials else []
        decided = [_DECIDED[outcome] for outcome in outcomes if outcome in _DECIDED]
        return sum(decided) / len(decided) if decided else None

    return {"references_official": each(cases, score)}
