"""Answer F1: the words that the answer and the expected answer share; repeated words count each time.

Impossible questions are None; they are scored by `abstention_accuracy`. Parity "squad" scores as SQuAD 2.0 does:
without articles, against the gold texts only, and a refusal is right where the question is impossible.
"""

from exhibit.evaluation.answer_words import compute_multiset_f1, list_squad_golds, score_against, score_squad_f1
from exhibit.evaluation.metrics import Case, Options, with_options


def _score(case: Case, options: Options) -> float | None:
    if options.parity == "squad":
        return score_squad_f1(case.reply.answer or "", list_squad_golds(case))
    return score_against(case, [case.truth], compute_multiset_f1)


NAMES, measure = with_options(answer_f1=_score)
