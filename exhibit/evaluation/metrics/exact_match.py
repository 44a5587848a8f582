"""Exact match: whether the top passage equals a gold passage, and whether the answer equals the expected one.

Two texts are equal if they have the same words in the same order. `exact_match` compares the top passage
with each gold passage, and `answer_exact_match` compares the answer with the expected answer. For an
impossible question, the value is None (see `abstention_accuracy`). The option `parity` sets another rule.
With "seed", passages are equal if only letter case or outer white space differs: punctuation counts. With
"squad", answers are compared as in SQuAD 2.0 (`evaluation.answer_words`).
"""

from exhibit.evaluation.answer_words import compare_words, list_squad_golds, score_against, score_squad_exact
from exhibit.evaluation.metrics import Case, Options, list_gold_texts, with_options


def _score_passage(case: Case, options: Options) -> float | None:
    golds = list_gold_texts(case)
    pairs = [(top.text, gold) for top in case.reply.passages[:1] for gold in golds]
    if options.parity == "seed":
        hit = any(text.strip().lower() == gold.strip().lower() for text, gold in pairs)
    else:
        hit = any(compare_words(text, gold) for text, gold in pairs)
    return float(hit) if golds else None


def _score_answer(case: Case, options: Options) -> float | None:
    if options.parity == "squad":
        return score_squad_exact(case.reply.answer or "", list_squad_golds(case))
    return score_against(case, [case.truth], compare_words)


NAMES, measure = with_options(exact_match=_score_passage, answer_exact_match=_score_answer)
