"""Statute citation accuracy: the share of the truth's rules, directions, statutes and guide sections that are given.

Expected is what the truth's own sentences refer to, each place once and ranges filled in; the sources it names in
square brackets belong to `precedent_matching`. "The Act" and "section 14.1" of a reply may mean what the question
names. A coarser reference earns half, a finer one all, another paragraph of the same rule nothing: see
`law.references.credit`.
Other references in the reply cost nothing here: `references_exist` looks at those.
"""

from exhibit.evaluation.answer_words import without_named
from exhibit.evaluation.metrics import Case, per_case
from exhibit.law.references import Reference, credit, references


def _score(case: Case) -> float | None:
    expected = expected_references(case)
    if not expected:
        return None
    given = references(case.reply.answer or "", context=case.question)
    return sum(max((credit(one, other) for other in given), default=0.0) for one in expected) / len(expected)


def expected_references(case: Case) -> list[Reference]:
    """Return the places in the law that the truth refers to, each once; cases are counted elsewhere."""
    cited = references(without_named(case.truth), context=case.question)
    return list(dict.fromkeys(reference for reference in cited if reference.kind != "case"))


NAMES, measure = per_case(statute_citation_accuracy=_score)
