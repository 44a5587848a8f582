"""Recall and nDCG over passages: the rank at which half of a gold passage is covered, and the `seed` match."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.metrics import Options, ndcg, recall
from exhibit.evaluation.ranking import find_gold_ranks, matches_seed, rank_found
from tests.evaluation.metrics.build import apply, at, case, gold, quote

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
        # pieces of the gold: half of it, else nothing
        (RENT[:50], RENT, True, True),
        (RENT[:40], RENT, False, True),
        ("two months' notice in writing", "by two months' notice in writing", True, True),
        ("rent", RENT, False, True),
        ("", RENT, False, True),
        (" \n", RENT, False, True),
        ("The landlord shall insure the premises.", RENT, False, False),
        # parts of a gold with words left out
        (f"{NOTICE} {RENT}", f"{RENT} <omitted> {NOTICE}", True, False),
        (NOTICE, f"{RENT} <omitted> {NOTICE}", False, True),
        (RENT, f"{RENT} <omitted> {NOTICE}", True, True),
        ("notice in writing", f"{RENT} <omitted> {NOTICE}", False, True),
    ],
)
def test_what_one_passage_finds_and_as_the_seed_words_it(passage, gold, mended, seed):
    assert (rank_found(GoldPassage(None, gold), [Passage(passage)]) is not None) is mended
    assert matches_seed(passage, gold) is seed


# ---------------------------------------------------------------- the rank at which a gold is found


@pytest.mark.parametrize(
    ("golds", "passages", "ranks"),
    [
        # by place: half of the characters, by one passage or by several together
        ([gold((0, 100))], [at(0, 100)], [1]),
        ([gold((0, 100))], [at(0, 49), at(300, 400)], [None]),
        ([gold((0, 100))], [at(0, 50)], [1]),
        ([gold((0, 100))], [at(0, 30), at(500, 600), at(70, 100)], [3]),
        # what overlaps counts once
        ([gold((0, 100))], [at(0, 30), at(10, 40), at(20, 49), at(49, 50)], [4]),
        # the same place in another file holds nothing
        ([gold((0, 100))], [at(0, 100, "other.pdf"), at(0, 100)], [2]),
        # any of its places; a place in parts is all its parts
        ([gold((0, 100), (500, 600))], [at(540, 600)], [1]),
        ([gold((0, 100), (500, 600))], [at(0, 30), at(500, 530)], [None]),
        ([gold([(0, 50), (200, 250)])], [at(0, 25), at(225, 250)], [2]),
        # one passage may find several
        ([gold((0, 50)), gold((60, 100))], [at(300, 400), at(0, 100)], [2, 2]),
    ],
)
def test_by_place(golds, passages, ranks):
    assert find_gold_ranks(case(golds, passages)) == ranks


@pytest.mark.parametrize(
    ("golds", "passages", "ranks"),
    [
        ([RENT], ["x", RENT], [2]),
        ([RENT], [RENT[:40], RENT[40:]], [2]),
        ([RENT], [RENT[:40]], [None]),
        ([RENT], ["rent", "month", "tenant"], [None]),
        # a chunk that ends within the gold, and the one that begins there
        ([RENT], [f"1. Rent. {RENT[:30]}", f"{RENT[30:55]} …", f"{RENT[30:]} 2. Repairs."], [3]),
        ([RENT], [f"1. Rent. {RENT[:60]}"], [1]),
        ([RENT], [f"{RENT[40:]} 2. Repairs."], [1]),
        ([NOTICE], ["EITHER PARTY may\nend this lease by two months’ no\u00adtice in writing."], [1]),
        ([f"{RENT} <omitted> {NOTICE}"], [NOTICE, RENT], [2]),
        ([RENT, RENT.upper()], [RENT], [1]),
        ([RENT, "", "  "], [RENT], [1]),
    ],
)
def test_by_words_where_a_place_is_not_known(golds, passages, ranks):
    assert find_gold_ranks(case([quote(words) for words in golds], passages)) == ranks


def test_words_in_another_file_are_another_passage_and_an_unknown_file_may_be_this_one():
    elsewhere, here = Passage(RENT, "other.pdf"), Passage(RENT, "lease.pdf")
    assert find_gold_ranks(case([quote(RENT)], [elsewhere])) == [None]
    assert find_gold_ranks(case([quote(RENT)], [elsewhere, here])) == [2]
    assert find_gold_ranks(case([quote(RENT)], [Passage(RENT)])) == [1]
    # located gold, and a passage whose own place is not known
    assert find_gold_ranks(case([gold((0, len(RENT)), text=RENT)], [Passage(RENT)])) == [1]


# ---------------------------------------------------------------- recall and nDCG


def scores(golds, passages, *, k=10, parity=""):
    row = case([quote(gold) for gold in golds], passages)
    options = Options(k=k, parity=parity)
    return apply(recall, [row], options)[f"recall@{k}"][0], apply(ndcg, [row], options)[f"ndcg@{k}"][0]


SECOND, THIRD, FOURTH = 1 / log2(3), 1 / log2(4), 1 / log2(5)


@pytest.mark.parametrize(
    ("golds", "passages", "found", "gain"),
    [
        ([RENT], [RENT], 1, 1),
        ([RENT], ["x", RENT], 1, SECOND),
        ([RENT], ["x", "y"], 0, 0),
        ([RENT], [], 0, 0),
        # shared by two passages: found with the second
        ([RENT], [RENT[:40], RENT[40:]], 1, SECOND),
        # a gold is credited once
        ([RENT], [RENT, RENT[:60], f"{RENT}!"], 1, 1),
        ([RENT, NOTICE], [RENT, RENT, NOTICE], 1, (1 + THIRD) / (1 + SECOND)),
        # golds of the same words are one
        ([RENT, RENT.upper()], [RENT], 1, 1),
        # one passage with two golds is as good as two with one each, and no better
        ([RENT, NOTICE], [f"{RENT} {NOTICE}"], 1, 1),
        ([RENT, NOTICE], ["x", "y", f"{RENT} {NOTICE}"], 1, (THIRD + FOURTH) / (1 + SECOND)),
        ([RENT, NOTICE], [f"{RENT} {NOTICE}", RENT], 1, 1),
        # golds without words do not count
        ([RENT, "", "  "], [RENT], 1, 1),
    ],
)
def test_by_hand(golds, passages, found, gain):
    assert scores(golds, passages) == (found, pytest.approx(gain))


def test_depth():
    assert scores([RENT, NOTICE], ["x", RENT, NOTICE], k=2) == (0.5, pytest.approx(SECOND / (1 + SECOND)))
    assert scores([RENT, NOTICE], [RENT], k=1) == (0.5, 1)
    found = apply(ndcg, [case([quote(RENT)], ["x"] * 5 + [RENT])], Options())
    assert found == {"ndcg@5": [0.0], "ndcg@10": [pytest.approx(1 / log2(7))]}


def test_the_seed_s_reading_credits_one_word_and_passes_1():
    assert scores([RENT], ["rent", "month"]) == (0, 0)
    assert scores([RENT], ["rent", "month"], parity="seed") == (1, pytest.approx(1 + SECOND))
    assert scores([RENT], [RENT, RENT]) == (1, 1)
    assert scores([RENT], [RENT, RENT], parity="seed") == (1, pytest.approx(1 + SECOND))
    # what two passages share: ours needs half, the seed is content with the first piece
    halves = [RENT[:40], RENT[40:]]
    assert scores([RENT], halves) == (1, pytest.approx(SECOND))
    assert scores([RENT], halves, parity="seed") == (1, pytest.approx(1 + SECOND))
    # a chunk that holds most of a gold, and neither contains the other: nothing for the seed
    cut = [f"1. Rent. {RENT[:80]}"]
    assert scores([RENT], cut) == (1, 1)
    assert scores([RENT], cut, parity="seed") == (0, 0)


def test_without_words_of_gold_neither_applies():
    assert scores([], [RENT]) == (None, None)
    assert scores([""], [RENT], parity="seed") == (None, None)
    row = case([quote(RENT)], [RENT], error="no reply")
    assert apply(recall, [row], Options()) == {"recall@10": [None]}
    assert apply(ndcg, [row], Options()) == {"ndcg@5": [None], "ndcg@10": [None]}


CLAUSES = ["aa" * 30, "bb" * 30, "cc" * 30]
texts = st.lists(st.lists(st.sampled_from([*CLAUSES, "zz"]), min_size=1, max_size=3).map(" ".join), max_size=6)


@given(st.lists(st.sampled_from(CLAUSES), min_size=1), texts, st.randoms())
def test_shares_lie_between_0_and_1_whatever_the_order_of_the_golds(golds, passages, chance):
    found, gain = scores(golds, passages, k=4)
    assert 0 <= found <= 1 and 0 <= gain <= 1 + 1e-12
    assert (found > 0) == (gain > 0)
    assert scores(chance.sample(golds, len(golds)), passages, k=4) == (found, pytest.approx(gain))
    assert scores(golds, passages, k=5)[0] >= found


spans = st.tuples(st.integers(0, 60), st.integers(1, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(spans, min_size=1, max_size=4), st.lists(spans, max_size=8))
def test_a_gold_is_found_when_half_of_its_characters_are_counted_one_by_one(golds, passages):
    ranks = find_gold_ranks(case([gold(ends) for ends in golds], [at(*ends) for ends in passages]))
    for (start, end), rank in zip(dict.fromkeys(golds), ranks, strict=True):
        held: set[int] = set()
        expected = None
        for number, ends in enumerate(passages, 1):
            held |= set(range(*ends)) & set(range(start, end))
            if 2 * len(held) >= end - start:
                expected = number
                break
        assert rank == expected
