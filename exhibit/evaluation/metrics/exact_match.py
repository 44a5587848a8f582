"""Exact match: whether the top passage, or the answer, has exactly the words of a gold passage.

The answer is compared with the expected answer only; impossible questions are None (see `abstention_accuracy`). Parity
"seed" compares the top passage in lower case, trimmed, with its punctuation. Parity "squad" compares the answer as
SQuAD 2.0 does (`evaluation.answer_words`).
"""

from exhibit.evaluation.answer_words import same_words, score_against, squad_exact, squad_golds
from exhibit.evaluation.metrics import Case, Options, gold_texts, with_options


def _score_passage(case: Case, options: Options) -> float | None:
    golds = gold_texts(case)
    pairs = [(top.text, gold) for top in case.reply.passages[:1] for gold in golds]
    if options.parity == "seed":
        hit = any(text.strip().lower() == gold.strip().lower() for text, gold in pairs)
    else:
        hit = any(same_words(text, gold) for text, gold in pairs)
    return float(hit) if golds else None


def _score_answer(case: Case, options: Options) -> float | None:
    if options.parity == "squad":
        return squad_exact(case.reply.answer or "", squad_golds(case))
    return score_against(case, [case.truth], same_words)


NAMES, measure = with_options(exact_match=_score_passage, answer_exact_match=_score_answer)
