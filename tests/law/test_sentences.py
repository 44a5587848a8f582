"""Passages are extended to whole sentences and lists, up to exact limits."""

import pytest

from exhibit.evidence import Span
from exhibit.law.sentences import extend_to_sentences


@pytest.mark.parametrize(
    ("words", "widest", "extended"),
    [
        ("sell", 900, "The Buyer may sell the boat."),
        ("The Buyer may sell the boat.", 900, "The Buyer may sell the boat."),
        ("boat. She", 900, "The Buyer may sell the boat. She bears: (a) freight; (b) duties."),
        ("bears", 900, "She bears: (a) freight; (b) duties."),
        ("freight", 20, "(a) freight; (b)"),
        ("The Buyer may sell the boat.", 10, "The Buyer may sell the boat."),
        ("may sell", 17, "may sell the"),
    ],
)
def test_extend_to_sentences_completes_sentences_within_width(words, widest, extended):
    text = "It is so. The Buyer may sell the boat. She bears: (a) freight; (b) duties. The rest is the Seller's."
    at = text.index(words)
    assert text[slice(*extend_to_sentences(text, Span(at, at + len(words)), widest=widest))] == extended


def test_extend_to_sentences_includes_list_after_colon_up_to_limit():
    items = [f"\n({letter}) the costs of work {letter} on the quay;" for letter in "abcdefghijklmnopqrstuvwxyz"]
    text = f"The Tenant bears the following:{''.join(items)}"
    extended = text[slice(*extend_to_sentences(text, Span(4, 10), widest=900))]
    assert extended.startswith("The Tenant bears the following:\n(a) the costs") and 500 < len(extended) <= 600
    assert extended.endswith("on the quay;")
