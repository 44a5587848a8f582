"""Statute citation accuracy: the share of the expected rules, directions, statutes and guide sections that are cited.

Expected are the references in the sentences of the expected answer, each once, with ranges expanded; its sources in
square brackets are scored by `precedent_matching`. "The Act" and "section 14.1" in a reply may mean the law that the
question names. A coarser reference earns half, a finer one all, and another paragraph of the same rule nothing: see
`law.references.credit`.
Further references in the reply cost nothing here: `references_exist` checks them.
"""

from exhibit.evaluation.answer_words import without_named
from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.law.references import Reference, credit, find_references


def _score(case: Case) -> float | None:
    expected = find_expected_references(case)
    if not expected:
        return None
    given = find_references(case.reply.answer or "", context=case.question)
    return sum(max((credit(one, other) for other in given), default=0.0) for one in expected) / len(expected)


def find_expected_references(case: Case) -> list[Reference]:
    """Return the provisions that the expected answer refers to, each once; cases are scored by another metric."""
    cited = find_references(without_named(case.truth), context=case.question)
    return list(dict.fromkeys(reference for reference in cited if reference.kind != "case"))


NAMES, measure = score_per_case(statute_citation_accuracy=_score)
