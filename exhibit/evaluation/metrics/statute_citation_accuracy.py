"""Statute citation accuracy: the share of the expected references that the answer cites.

References are to rules, directions, statutes and guide sections. The expected references are those in the
sentences of the expected answer, each once, with ranges expanded. Sources that the expected answer names in
square brackets are scored by `precedent_matching` instead. "The Act" and "section 14.1" in a reply may mean
the law that the question names. A cited reference that is less precise than the expected one (Part 36 for
rule 36.5) scores 0.5, and a more precise one scores 1. Another paragraph of the same rule scores 0: see
`law.references.credit`.

Further references in the reply do not lower the score: `references_exist` checks them.
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
    """Return the provisions that the expected answer refers to, each once.

    References to court cases are left out, because `case_law_citation_accuracy` scores them.
    """
    cited = find_references(without_named(case.truth), context=case.question)
    return list(dict.fromkeys(reference for reference in cited if reference.kind != "case"))


NAMES, measure = score_per_case(statute_citation_accuracy=_score)
