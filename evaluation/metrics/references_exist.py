"""References exist: the share of an answer's references that occur in the corpus at all.

A rule nobody wrote is the worst kind of answer. The corpus is anything with `contains(reference) -> bool`, such as
`law.references.ReferenceCorpus`; without one the metric does not apply, and `missing` says so.
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


@runtime_checkable
class Corpus(Protocol):
    """Where references are looked up."""

    def contains(self, reference: Reference) -> bool:
        """Return whether the corpus has it."""


def missing(options: Options) -> str:
    """Return what the metric lacks, nothing when it can be measured."""
    return (
        ""
        if options.corpus is not None
        else "references_exist needs the texts of the corpus: ReferenceCorpus.of(texts)"
    )


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the share for each answer, None where it refers to nothing or there is no corpus."""
    corpus = options.corpus
    if corpus is None:
        return {"references_exist": [None] * len(cases)}
    if not isinstance(corpus, Corpus):
        raise ToolkitError(f"a {type(corpus).__name__} cannot look references up; give law.references.ReferenceCorpus")

    def score(case: Case) -> float | None:
        given = set(references(case.reply.answer or "", context=case.question))
        return sum(map(corpus.contains, given)) / len(given) if given else None

    return {"references_exist": each(cases, score)}
