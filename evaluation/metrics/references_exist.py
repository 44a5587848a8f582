"""References exist: the share of an answer's references that occur in the corpus at all.

A rule nobody wrote is the worst kind of answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import About, Case, Options, Values, each
from exhibit.law.references import references

NAMES = ("references_exist",)
ABOUT = {
    "references_exist": About(
        "References that exist",
        "references of the answer that occur in the corpus",
        "Citations",
        needs=("answer", "corpus"),
        short=False,
    )
}


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share for each answer, None where it refers to nothing."""

    def score(case: Case) -> float | None:
        given = set(references(case.reply.answer or "", context=case.question))
        return sum(map(options.corpus.contains, given)) / len(given) if given and options.corpus else None

    return {"references_exist": each(cases, score)}
