"""Official references: the share of an answer's references that the public registers have.

legislation.gov.uk and Find Case Law are queried only with `--set check_references=true`. A reference that they do not
cover (court rules, Scottish and Northern Irish judgments, older cases), or that could not be checked, is ignored.
"""

from exhibit.evaluation.metrics import Case, Options, with_options
from exhibit.law.references import find_references

_DECIDED = {"found": 1.0, "absent": 0.0}


def _score(case: Case, options: Options) -> float | None:
    """Return the share of the answer's checked references that exist; None if no reference could be checked."""
    given = dict.fromkeys(find_references(case.reply.answer or "", context=case.question))
    outcomes = [options.officials.outcome(one) for one in given] if options.officials else []
    decided = [_DECIDED[outcome] for outcome in outcomes if outcome in _DECIDED]
    return sum(decided) / len(decided) if decided else None


NAMES, measure = with_options(references_official=_score)
