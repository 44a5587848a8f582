"""Grades as gain, stars, MRR and MAP: tables worked out by hand."""

from __future__ import annotations

from math import log2

import pytest

from exhibit.evaluation.cases import Passage
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.ranking import ranking_of
from tests.evaluation.metrics.build import at, case, gold, quote

NAMES = [
    "ndcg@5", "ndcg@10", "recall@10", "mrr@10", "map", "precision_3star@5", "precision_4star@5", "precision_5star@5",
]  # fmt: skip
GRADES = {"a": 4, "b": 3, "c": 2, "d": 1, "e": 0, "f": 0}
SECOND, THIRD, FOURTH = 1 / log2(3), 1 / log2(4), 1 / log2(5)
IDEAL = 4 + 3 * SECOND + 2 * THIRD + FOURTH


def scores(files, grades=None, **fields):
    passages = [Passage(f"words of {file}", file) for file in files]
    row = case([], passages, grades=GRADES if grades is None else grades, **fields)
    return {name: values[0] for name, values in measure([row], names=NAMES).items()}


@pytest.mark.parametrize(
    ("files", "gain", "found", "first", "average", "stars"),
    [
        ("abcdef", 1, 1, 1, 1, (3, 2, 1)),
        ("ba", (3 + 4 * SECOND) / IDEAL, 1, 1, 1, (2, 2, 1)),
        ("cdb", (2 + SECOND + 3 * THIRD) / IDEAL, 1 / 2, 1 / 3, (1 / 3) / 2, (2, 1, 0)),
        ("efd", THIRD / IDEAL, 0, 0, 0, (0, 0, 0)),
        ("", 0, 0, 0, 0, (0, 0, 0)),
        # several passages of a file are one file, at the first of them
        ("bbba", (3 + 4 * SECOND) / IDEAL, 1, 1, 1, (2, 2, 1)),
        # x, y and z were not judged: they are left out of the ranking
        ("xybza", (3 + 4 * SECOND) / IDEAL, 1, 1, 1, (2, 2, 1)),
    ],
)
def test_by_hand(files, gain, found, first, average, stars):
    precisions = dict(zip(NAMES[-3:], (share / 5 for share in stars), strict=True))
    expected = {"ndcg@5": gain, "ndcg@10": gain, "recall@10": found, "mrr@10": first, "map": average, **precisions}
    assert scores(files) == pytest.approx(expected)


def test_depths_are_those_of_files():
    grades = {f"{n}": 0 for n in range(12)} | {"gold": 4}
    sixth = scores([*"01234", "gold"], grades)
    assert sixth["ndcg@5"] == sixth["precision_4star@5"] == 0
    assert sixth["ndcg@10"] == pytest.approx(1 / log2(7))
    eleventh = scores([*"0123456789", "gold"], grades)
    assert (eleventh["recall@10"], eleventh["mrr@10"], eleventh["map"]) == (0, 0, pytest.approx(1 / 11))


def test_where_no_irrelevant_file_is_graded_one_that_nobody_graded_is_irrelevant():
    found = scores("xb", {"a": 4, "b": 3})
    assert found["mrr@10"] == 1 / 2
    assert found["ndcg@5"] == pytest.approx(3 * SECOND / (4 + 3 * SECOND))


def test_without_gold_or_gain_there_is_no_share():
    assert scores("ab", {"a": 2, "b": 0})["mrr@10"] is None
    assert scores("ab", {"a": 2, "b": 0})["ndcg@5"] == 1
    assert set(scores("ab", {"a": 0, "b": 0}).values()) == {None, 0.0}
    assert scores("ab", {"a": 0})["ndcg@5"] is None
    assert set(scores("ab", is_impossible=True).values()) == {None}
    assert set(scores("ab", error="timed out").values()) == {None}


def test_without_grades_passages_are_ranked_and_stars_do_not_apply():
    row = case([gold((0, 100)), gold((200, 300))], [at(400, 500), at(200, 300), at(0, 30), at(30, 60)])
    found = {name: values[0] for name, values in measure([row], Options(), names=NAMES).items()}
    assert found["mrr@10"] == 1 / 2
    assert found["map"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found["precision_3star@5"] is None
    assert ranking_of(row).order == ["passage-1", "gold-1", "passage-3", "gold-0"]


def test_files_without_words_are_for_the_metrics_of_documents():
    row = case([quote("", "a.pdf"), quote("", "b.pdf")], [at(0, 9, "c.pdf"), at(0, 9, "b.pdf"), at(0, 9, "a.pdf")])
    found = {name: values[0] for name, values in measure([row], Options(), names=NAMES).items()}
    assert set(found.values()) == {None}
    assert measure([row], names=["document_hit@2"]) == {"document_hit@2": [1.0]}


def test_a_passage_that_finds_several_golds_is_as_several_in_the_ranking():
    row = case([gold((0, 10)), gold((20, 30)), gold((40, 50))], [at(90, 99), at(0, 30), at(80, 89), at(40, 50)])
    assert ranking_of(row).order == ["passage-1", "gold-0", "gold-1", "gold-2"]
    assert measure([row], names=["map"])["map"] == [pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)]
