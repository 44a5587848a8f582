"""Answer F1: the overlap of the words of the answer with those of the expected answer.

A repeated word counts each time. The value is None for an impossible question, which `abstention_accuracy`
scores. With parity "squad", the score is that of SQuAD 2.0: articles are removed, the answer is compared
only with the gold texts, and a refusal is right if the question is impossible.
"""

from exhibit.evaluation.answer_words import compute_multiset_f1, list_squad_golds, score_against, score_squad_f1
from exhibit.evaluation.metrics import Case, Options, with_options


def _score(case: Case, options: Options) -> float | None:
    if options.parity == "squad":
        return score_squad_f1(case.reply.answer or "", list_squad_golds(case))
    return score_against(case, [case.truth], compute_multiset_f1)


NAMES, measure = with_options(answer_f1=_score)
