"""Chunk economy, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.metrics import Options, chunk_economy
from tests.evaluation.metrics.build import apply, at, case, gold

GOLD = gold((1000, 1100), (9000, 9100))


def shares(golds, passages, *, k=10, **fields):
    values = apply(chunk_economy, [case(golds, passages, **fields)], Options(k=k))
    return [values[f"{kind}@{k}"][0] for kind in chunk_economy.KINDS]


@pytest.mark.parametrize(
    ("passage", "kind"),
    [
        (at(900, 1001), "essential"),
        (at(1099, 1200), "essential"),
        (at(9050, 9060), "essential"),  # at any of its places
        (at(900, 1000), "complementary"),  # touching
        (at(1100, 1200), "complementary"),
        (at(1600, 1700), "complementary"),  # 500 characters on
        (at(1601, 1700), "neither"),
        (at(300, 499), "neither"),
        (at(1000, 1100, "other.pdf"), "neither"),
        (at(1000, 1100, None), "neither"),
    ],
)
def test_what_a_passage_is_there_for(passage, kind):
    assert chunk_economy.kind_of(passage, case([GOLD])) == f"chunk_{kind}"


def test_shares_of_the_first_k():
    ranking = [at(1000, 1050), at(1100, 1200), at(5000, 5100), "from nowhere", at(1050, 1100)]
    assert shares([GOLD], ranking) == [2 / 5, 1 / 5, 2 / 5]
    assert shares([GOLD], ranking, k=2) == [1 / 2, 1 / 2, 0]


def test_where_it_does_not_apply():
    assert shares([GOLD], []) == [None] * 3
    assert shares([gold(text="lost")], [at(0, 9)]) == [None] * 3
    assert shares([GOLD], [at(0, 9)], error="no reply") == [None] * 3


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=12))
def test_the_three_add_up_to_1(starts):
    assert sum(shares([GOLD], [at(start, start + 300) for start in starts])) == pytest.approx(1)


def test_the_context_that_an_answer_was_made_from_is_measured_beside_the_ranking():
    row = case([GOLD], [at(0, 10), at(100, 200), at(5000, 5100)])
    told = replace(row, reply=replace(row.reply, context=(3, 2)))
    first = replace(row, reply=replace(row.reply, selected=1))
    values = apply(chunk_economy, [told, first, row], Options())
    assert values["context_essential"][2] is None, "not known"
    shares = [[values[f"context_{kind}"][at] for kind in ("essential", "complementary", "neither")] for at in (0, 1)]
    assert [sum(share) for share in shares] == [1.0, 1.0]
    kinds = [chunk_economy.kind_of(row.reply.passages[number - 1], row) for number in (3, 2)]
    assert shares[0] == [kinds.count(f"chunk_{kind}") / 2 for kind in ("essential", "complementary", "neither")]
