"""References exist: the share of an answer's legal references that occur in the corpus.

An invented reference is the worst kind of error in a legal answer.
"""

from exhibit.evaluation.metrics import Case, Options, with_options
from exhibit.law.references import find_references


def _score(case: Case, options: Options) -> float | None:
    given = set(find_references(case.reply.answer or "", context=case.question))
    return sum(map(options.corpus.contains, given)) / len(given) if given and options.corpus else None


NAMES, measure = with_options(references_exist=_score)
