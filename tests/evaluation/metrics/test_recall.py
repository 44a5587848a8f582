"""Recall and nDCG over passages: the matching rule, mended and as the seed words it."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics import Options, ndcg, recall
from evaluation.metrics._passages import credited_ranks, matches, matches_seed
from tests.evaluation.metrics.build import case, quote

RENT = "The tenant shall pay a rent of £900 a month, in advance, on the first working day of each month."
NOTICE = "Either party may end this lease by two months' notice in writing."


@pytest.mark.parametrize(
    ("passage", "gold", "mended", "seed"),
    [
        (RENT, RENT, True, True),
        (f"1. Rent. {RENT} 2. Repairs.", RENT, True, True),
        (RENT.upper(), RENT, True, True),
        # as a PDF has it: broken lines, curly quotes, a soft hyphen
        ("Either party may end\nthis lease by two months’ no\u00adtice in writing.", NOTICE, True, False),
        # pieces of the gold: 50 characters or half of it, else nothing
        (RENT[:50], RENT, True, True),
        (RENT[:40], RENT, False, True),
        ("two months' notice in writing", "by two months' notice in writing", True, True),
        ("rent", RENT, False, True),
        ("", RENT, False, True),
        (" \n", RENT, False, True),
        ("The landlord shall insure the premises.", RENT, False, False),
        # parts of a gold with words left out
        (f"{NOTICE} {RENT}", f"{RENT} <omitted> {NOTICE}", True, False),
        (NOTICE, f"{RENT} <omitted> {NOTICE}", True, True),
        ("notice in writing", f"{RENT} <omitted> {NOTICE}", False, True),
    ],
)
def test_what_matches(passage, gold, mended, seed):
    assert matches(passage, gold) is mended
    assert matches_seed(passage, gold) is seed


def scores(golds, passages, *, k=10, parity=""):
    row = case([quote(gold) for gold in golds], passages)
    options = Options(k=k, parity=parity)
    return recall.measure([row], options)[f"recall@{k}"][0], ndcg.measure([row], options)[f"ndcg@{k}"][0]


SECOND = 1 / log2(3)


@pytest.mark.parametrize(
    ("golds", "passages", "found", "gain"),
    [
        ([RENT], [RENT], 1, 1),
        ([RENT], ["x", RENT], 1, SECOND),
        ([RENT], ["x", "y"], 0, 0),
        ([RENT], [], 0, 0),
        # a gold is credited once
        ([RENT], [RENT, RENT[:60], f"{RENT}!"], 1, 1),
        ([RENT, NOTICE], [RENT, RENT, NOTICE], 1, (1 + 1 / log2(4)) / (1 + SECOND)),
        # golds of the same words are one
        ([RENT, RENT.upper()], [RENT], 1, 1),
        # one passage with two golds finds both and is credited with one
        ([RENT, NOTICE], [f"{RENT} {NOTICE}"], 1, 1 / (1 + SECOND)),
        # it leaves the other to the passage that has nothing else
        ([RENT, NOTICE], [f"{RENT} {NOTICE}", RENT], 1, 1),
        ([NOTICE, RENT], [f"{RENT} {NOTICE}", RENT], 1, 1),
        # golds without words do not count
        ([RENT, "", "  "], [RENT], 1, 1),
    ],
)
def test_by_hand(golds, passages, found, gain):
    assert scores(golds, passages) == (found, pytest.approx(gain))


def test_depth():
    assert scores([RENT, NOTICE], ["x", RENT, NOTICE], k=2) == (0.5, pytest.approx(SECOND / (1 + SECOND)))
    assert scores([RENT, NOTICE], [RENT], k=1) == (0.5, 1)


def test_the_seed_s_reading_credits_one_word_and_passes_1():
    assert scores([RENT], ["rent", "month"]) == (0, 0)
    assert scores([RENT], ["rent", "month"], parity="seed") == (1, pytest.approx(1 + SECOND))
    assert scores([RENT], [RENT, RENT]) == (1, 1)
    assert scores([RENT], [RENT, RENT], parity="seed") == (1, pytest.approx(1 + SECOND))


def test_without_words_of_gold_neither_applies():
    assert scores([], [RENT]) == (None, None)
    assert scores([""], [RENT], parity="seed") == (None, None)
    row = case([quote(RENT)], [RENT], error="no reply")
    assert recall.measure([row], Options()) == {"recall@10": [None]}
    assert ndcg.measure([row], Options()) == {"ndcg@10": [None]}


CLAUSES = ["aa" * 30, "bb" * 30, "cc" * 30]
texts = st.lists(st.lists(st.sampled_from([*CLAUSES, "zz"]), min_size=1, max_size=3).map(" ".join), max_size=6)


@given(st.lists(st.sampled_from(CLAUSES), min_size=1), texts, st.randoms())
def test_shares_lie_between_0_and_1_whatever_the_order_of_the_golds(golds, passages, chance):
    found, gain = scores(golds, passages, k=4)
    assert 0 <= found <= 1 and 0 <= gain <= 1 + 1e-12
    assert (found > 0) == (gain > 0)
    assert scores(chance.sample(golds, len(golds)), passages, k=4) == (found, pytest.approx(gain))
    assert scores(golds, passages, k=5)[0] >= found


@given(st.lists(st.lists(st.integers(0, 3), unique=True, max_size=3), max_size=5))
def test_ranks_are_credited_as_well_as_can_be(matched):
    def best(rank, taken):
        if rank == len(matched):
            return 0.0
        options = [1 / log2(rank + 2) + best(rank + 1, taken | {g}) for g in matched[rank] if g not in taken]
        return max([best(rank + 1, taken), *options])

    ranks = credited_ranks(matched)
    assert ranks == sorted(set(ranks))
    assert sum(1 / log2(rank + 2) for rank in ranks) == pytest.approx(best(0, frozenset()))
