"""Exact match, span F1 and answer F1, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.answer_words import compute_multiset_f1, set_f1
from exhibit.evaluation.metrics import Options, answer_f1, answer_gold_f1, exact_match, span_f1
from tests.evaluation.metrics.build import apply, case, quote


@pytest.mark.parametrize(
    ("passages", "golds", "mended", "seed"),
    [
        (["The rent is £900."], ["The rent is £900."], 1, 1),
        (["  the RENT is £900.\n"], ["The rent is £900."], 1, 1),
        (["The rent is £900"], ["The  rent is “£900”."], 1, 0),
        (["The rent is £900."], ["The fee", "The rent is £900."], 1, 1),
        (["x", "The rent is £900."], ["The rent is £900."], 0, 0),
        (["The rent is £900 a month."], ["The rent is £900."], 0, 0),
        (["***"], ["---"], 0, 0),
        ([], ["The rent is £900."], 0, 0),
        (["The rent is £900."], [""], None, None),
    ],
)
def test_exact_match_of_the_top_passage(passages, golds, mended, seed):
    row = case(map(quote, golds), passages)
    assert apply(exact_match, [row], Options())["exact_match"] == [mended]
    assert apply(exact_match, [row], Options(parity="seed"))["exact_match"] == [seed]


@pytest.mark.parametrize(
    ("passages", "golds", "expected"),
    [
        (["The rent is £900."], ["the rent is £900"], 1),
        # sets: {the, rent, is, 900} and {rent, 900, rent…}: 2 of 4 and 2 of 2
        (["The rent is £900."], ["rent 900 rent rent"], 2 * 2 / (4 + 2)),
        (["non-exclusive licence"], ["exclusive licence"], 2 * 2 / (3 + 2)),
        (["The rent"], ["The fee", "The rent is due", "x"], 2 * 2 / (2 + 4)),
        (["x", "The rent"], ["The rent"], 0),
        (["***"], ["The rent"], 0),
        ([], ["The rent"], 0),
        (["The rent"], [], None),
    ],
)
def test_span_f1_of_the_top_passage(passages, golds, expected):
    row = case(map(quote, golds), passages)
    assert apply(span_f1, [row], Options())["span_f1"] == [expected if expected is None else pytest.approx(expected)]


@pytest.mark.parametrize(
    ("passage", "gold", "expected"),
    [
        ("a non-exclusive licence", "an exclusive licence", 2 * 1 / (2 + 3)),  # {a, licence}: the compound is no word
        ("the company's fee (net)", "the company fee, net.", 1),
        ("don't pay", "do pay", 1),
        ("rent of £900 at 9.30", "rent 900", 2 * 1 / (3 + 2)),  # {rent, of, at}: a sign and a point make no word
    ],
)
def test_span_f1_of_the_seed_cuts_words_as_nltk_does(passage, gold, expected):
    row = case([quote(gold)], [passage])
    assert apply(span_f1, [row], Options(parity="seed"))["span_f1"] == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("answer", "fields", "f1", "same"),
    [
        ("Yes.", {"truth": "Yes"}, 1, 1),
        ("£900 a month [1].", {"truth": "£900 a month"}, 1, 1),
        ("£900 a month [Lease#page=Rent].", {"truth": "£900 a month [2]"}, 1, 1),
        # multisets: rent twice in one, once in the other
        ("rent rent due", {"truth": "rent due"}, 2 * 2 / (3 + 2), 0),
        # the expected answer alone, and not the gold
        ("The rent is £900", {"truth": "Yes", "golds": [quote("The rent is £900.")]}, 0, 0),
        ("The rent is £900", {"truth": "900"}, 2 * 1 / (4 + 1), 0),
        ("", {"truth": "Yes"}, 0, 0),
        (None, {"truth": "Yes"}, None, None),
        ("Yes", {"truth": ""}, None, None),
        ("Not found", {"truth": "Not found", "is_impossible": True}, None, None),
        ("Yes", {"truth": "Yes", "error": "no reply"}, None, None),
    ],
)
def test_answers(answer, fields, f1, same):
    row = case(answer=answer, **fields)
    assert apply(answer_f1, [row], Options()) == {"answer_f1": [f1 if f1 is None else pytest.approx(f1)]}
    assert apply(exact_match, [row], Options())["answer_exact_match"] == [same]


def test_the_best_over_the_gold_has_a_name_of_its_own():
    row = case([quote("The term"), quote("The rent is £900.")], answer="The rent is £900 [1]", truth="Yes")
    absent = replace(quote("The rent is £900."), absent=True)
    assert apply(answer_gold_f1, [row, replace(row, gold=(absent,))], Options()) == {"answer_gold_f1": [1, None]}


words = st.lists(st.sampled_from("rent fee term party".split())).map(" ".join)


@given(words, words)
@pytest.mark.parametrize("f1", [set_f1, compute_multiset_f1])
def test_f1_lies_between_0_and_1_either_way_round(f1, one, other):
    assert 0 <= f1(one, other) <= 1
    assert f1(one, other) == f1(other, one)
    assert f1(one, one) == (1.0 if one else 0.0)
