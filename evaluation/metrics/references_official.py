"""References that exist officially: the share of an answer's references that the public registers have.

legislation.gov.uk and Find Case Law are asked by `--check-references`, and not otherwise. What they do not cover (court
rules, Scottish and Northern Irish judgments, older cases) or could not be asked counts neither way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Options
from exhibit.law.references import Reference, references
from exhibit.schemas.errors import ToolkitError

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


@runtime_checkable
class Officials(Protocol):
    """Who knows which references exist, such as `evaluation.registers.Register`."""

    def outcome(self, reference: Reference) -> str:
        """Return `found` or `absent`; any other word decides nothing."""


def missing(options: Options) -> str:
    """Return what the metric lacks, nothing when it can be measured."""
    return "" if options.officials is not None else "references_official needs the registers: --check-references"


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share for each answer, None where no reference of it was decided."""
    officials = options.officials
    if officials is None:
        return {"references_official": [None] * len(cases)}

    if not isinstance(officials, Officials):
        raise ToolkitError(f"a {type(officials).__name__} cannot look references up; give officials.Register")

    def score(case: Case) -> float | None:
        given = dict.fromkeys(references(case.reply.answer or "", context=case.question))
        told = [_DECIDED[outcome] for one in given if (outcome := officials.outcome(one)) in _DECIDED]
        return sum(told) / len(told) if told else None

    return {"references_official": each(cases, score)}
