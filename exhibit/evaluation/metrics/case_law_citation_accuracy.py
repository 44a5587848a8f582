"""Case law citation accuracy: the share of the expected answer's neutral citations that the answer has.

Year, court, division and number must all agree: [2024] EWHC 789 (Ch) is not [2024] EWHC 789 (Admin).
"""

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.law.references import find_references


def _score(case: Case) -> float | None:
    """Return the share of the expected answer's neutral citations that the answer has.

    None if the expected answer cites no case.
    """
    expected = {reference for reference in find_references(case.truth) if reference.kind == "case"}
    given = find_references(case.reply.answer or "")
    return len(expected.intersection(given)) / len(expected) if expected else None


NAMES, measure = score_per_case(case_law_citation_accuracy=_score)
