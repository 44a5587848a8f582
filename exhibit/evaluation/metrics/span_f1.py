"""Span F1: the F1 of the words of the first retrieved passage and of a gold passage, each as a set.

The gold passage with the highest F1 counts. By default words are runs of letters and digits. With
`--set parity=seed`, which reproduces the scores of another project, they are NLTK's tokens of letters and
digits.
"""

from exhibit.evaluation.answer_words import set_f1, split_seed_words, split_words
from exhibit.evaluation.metrics import Case, Options, list_gold_texts, with_options


def _score(case: Case, options: Options) -> float | None:
    """Return the best F1 of the top passage against any gold text; None if the question has no gold text."""
    cut = split_seed_words if options.parity == "seed" else split_words
    golds, tops = list_gold_texts(case), case.reply.passages[:1]
    return max((set_f1(top.text, gold, cut) for top in tops for gold in golds), default=0.0) if golds else None


NAMES, measure = with_options(span_f1=_score)
