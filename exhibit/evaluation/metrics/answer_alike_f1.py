"""Answer F1 of the expected answer and the part of the reply that is of the same kind.

A short expected answer is compared with the text before the reply's first quotation or, if the reply has no
quotation, with its first sentence. An expected yes or no is compared with the reply's first word. A longer
expected answer is compared with the quotations in the reply or, if there are none, with the whole reply.
The metric `answer_f1` always compares the whole reply.
"""

import re

from exhibit.evaluation.answer_words import compute_multiset_f1, split_words, without_citations
from exhibit.evaluation.judgement import describe_expected
from exhibit.evaluation.metrics import Case, list_gold_texts, score_per_case
from exhibit.law.refusals import is_refusal
from exhibit.law.sentences import split_sentences

_QUOTED = re.compile(r"“([^“”]{1,20000})”|\"([^\"]{1,20000})\"")


def _score(case: Case) -> float | None:
    """Return the F1 of the expected answer and the matching part of the reply; None if no answer is expected."""
    expected, reply = without_citations(case.truth), without_citations(case.reply.answer or "")
    golds = list_gold_texts(case)
    kind = describe_expected(case.truth, ["\n".join(golds), *golds], impossible=case.is_impossible)
    if case.is_impossible or not split_words(expected):
        return None
    if is_refusal(reply):
        return 0.0
    if kind == "yes or no":
        return float(split_words(reply)[:1] == split_words(expected)[:1])
    if kind == "short answer":
        return compute_multiset_f1(_cut_quotes(reply), expected)
    quotes = [one or other for one, other in _QUOTED.findall(reply)]
    return compute_multiset_f1(" ".join(quotes) or reply, expected)


def _cut_quotes(reply: str) -> str:
    """Return the part of a reply that is compared with a short expected answer.

    It is the text before the first quotation. If the reply begins with a quotation, it is that quotation; if
    the reply has no quotation, it is the first sentence.
    """
    quotation = _QUOTED.search(reply)
    if quotation is not None:
        return reply[: quotation.start()] if split_words(reply[: quotation.start()]) else quotation.group()
    return next((reply[slice(*span)] for span in split_sentences(reply)), reply)


NAMES, measure = score_per_case(answer_alike_f1=_score)
