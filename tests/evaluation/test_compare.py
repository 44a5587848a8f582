"""Comparing runs: which changes of outcomes and metrics are regressions."""

from __future__ import annotations

import pytest

from exhibit.evaluation.compare import (
    NAMED,
    compare_runs,
    count_outcomes,
    describe_better,
    describe_regressions,
    explain_fall,
    find_regressions,
)
from exhibit.evaluation.outcomes import make_outcome_columns
from exhibit.evaluation.statistics import Difference, Table
from exhibit.schemas.run import Outcome


def make_table(outcomes: list[Outcome], *, documents: int = 12, **columns) -> Table:
    count = len(outcomes)
    values = make_outcome_columns(outcomes, [False] * count) | columns
    names = [f"{row % documents}.pdf" for row in range(count)]
    return Table("d", list(range(count)), names, values, outcomes=outcomes)


RIGHT = [Outcome.RIGHT] * 48


@pytest.mark.parametrize("documents", [4, 12])
@pytest.mark.parametrize(
    "after",
    [
        [Outcome.WRONGLY_REFUSED] * 48,
        [Outcome.RIGHT, Outcome.WRONGLY_REFUSED] * 24,
        [Outcome.RIGHT, Outcome.FAILED] * 24,
        [Outcome.RIGHT, Outcome.NOT_JUDGED] * 24,
    ],
)
def test_find_regressions_reports_fewer_right_answers(after, documents):
    differences = compare_runs([make_table(RIGHT, documents=documents)], [make_table(after, documents=documents)])
    worse = find_regressions(differences)
    assert "answered_rightly" in worse and describe_regressions(differences, worse)
    assert (differences["answered_rightly"].ci95 is None) == (documents == 4)


def test_find_regressions_reports_more_wrong_answers():
    before = make_table([Outcome.RIGHT, Outcome.NOT_JUDGED] * 24)
    after = make_table([Outcome.RIGHT, Outcome.WRONG] * 24)
    worse = find_regressions(compare_runs([before], [after]))
    assert worse == ["outcome: wrong"]
    assert describe_better(["a", "b"], compare_runs([before], [after]), worse) == "b is worse than a: outcome: wrong."
    assert count_outcomes([after]) == {"right": 24, "wrong": 24}


def test_find_regressions_reports_metric_missing_from_second_run():
    before, after = make_table(RIGHT, **{"recall@10": [1.0] * 48}), make_table(RIGHT)
    worse = find_regressions(compare_runs([before], [after]))
    assert worse == ["recall@10"]
    assert find_regressions(compare_runs([before], [before])) == []


def test_find_regressions_ignores_chance_drop_among_many_metrics():
    falling = [0.5 - 0.11 * (row % 3 == 0) for row in range(48)]
    others = {f"answer_f1@{n}": [0.5] * 48 for n in range(60)}
    before = make_table(RIGHT, answer_f1=[0.5] * 48, **{name: list(column) for name, column in others.items()})
    noisy = [value + (0.2 if row % 2 else -0.235) for row, value in enumerate([0.5] * 48)]
    after = make_table(RIGHT, answer_f1=noisy, **others)
    differences = compare_runs([before], [after])
    assert differences["answer_f1"].p is not None and "answer_f1" not in find_regressions(differences)
    fallen = compare_runs([before], [make_table(RIGHT, answer_f1=falling, **others)])
    assert find_regressions(fallen, ["answer_f1"]) == ["answer_f1"] and "answer_f1" not in NAMED


def test_explain_fall_requires_drop_beyond_chance():
    assert explain_fall("answer_f1", Difference(0.7, 0.5, 9, (-0.3, -0.1))) == "worse by more than chance"
    for other in (Difference(0.5, 0.7, 9, (0.1, 0.3)), Difference(0.7, 0.5, 9, (-0.3, 0.0)), Difference(None, 0.5, 0)):
        assert not explain_fall("answer_f1", other)
