"""Means with n, errors and intervals; groups, labels, runs and pairs."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.statistics import (
    Difference,
    Estimate,
    Table,
    compare,
    compute_macro_mean,
    compute_mean,
    count_overlap,
    summarise_by,
    summarise_run,
)
from exhibit.evaluation.text_tables import Bands, format_cell


@pytest.fixture(autouse=True)
def allow_two_documents(monkeypatch):
    """Allow intervals over two documents, so that tables can be computed by hand; other files test the real limit."""
    monkeypatch.setattr("exhibit.evaluation.statistics.MIN_DOCUMENTS", 2)


def table(values, documents=None, *, name="cuad", **fields):
    """Return a dataset of one metric; each row has its own document unless `documents` names the rows' documents."""
    return Table(
        name=name,
        ids=fields.pop("ids", list(range(len(values)))),
        documents=documents or [str(row) for row in range(len(values))],
        values={"recall@10": values},
        **fields,
    )


def estimate(*tables):
    return summarise_run(tables)["recall@10"]


def test_estimate_excludes_none_values_and_counts_errors():
    found = estimate(table([1.0, 0.0, None, None, 0.5], failed=[False, False, True, False, False]))
    assert (found.mean, found.n, found.errors) == (0.5, 3, 1)
    low, high = found.ci95
    assert 0 <= low < 0.5 < high <= 1
    assert estimate(table([0.0, 1.0, 0.5], ["lease.pdf"] * 3)) == Estimate(0.5, 3, 0, None, std=0.5), "no interval"


def test_estimate_as_json_has_mean_count_errors_interval_and_deviation():
    found = estimate(table([1.0, 1.0, 1.0])).as_json()
    assert json.loads(json.dumps(found)) == {"mean": 1.0, "n": 3, "errors": 0, "ci95": [1.0, 1.0], "std": 0.0}
    assert Estimate(None, 0, 2).as_json() == {"mean": None, "n": 0, "errors": 2, "ci95": [None, None]}


def test_format_cell_shows_mean_interval_counts_and_band():
    assert format_cell("answer_f1", None) == "–"
    assert format_cell("answer_f1", Estimate(None, 0, errors=3)) == "–, 3 failed"
    whole = Estimate(0.9, 7, errors=2, ci95=(0.8, 1.0), std=0.1)
    bands = Bands(good="> 0.8", poor="< 0.5")
    assert format_cell("answer_f1", whole, bands) == "0.900 [0.800, 1.000] SD 0.100 (n 7, 2 failed) good"


def test_bootstrap_draws_rows_of_same_document_together():
    """Forty rows with ten distinct values are as uncertain as ten rows, and much more uncertain than forty."""
    values = [float(number % 2) for number in range(10)]
    ten = estimate(table(values))
    forty = estimate(table(values * 4, [str(row) for row in range(10)] * 4))
    apart = estimate(table(values * 4))
    assert forty.ci95 == pytest.approx(ten.ci95)
    assert apart.ci95[1] - apart.ci95[0] < 0.6 * (ten.ci95[1] - ten.ci95[0])


def test_bootstrap_interval_contains_true_mean_at_its_stated_rate():
    chance = random.Random(3)
    held = 0
    for _ in range(100):
        documents, values = [], []
        for document in range(40):
            hard = chance.random()
            for _ in range(5):
                documents.append(str(document))
                values.append(float(chance.random() < hard))
        low, high = estimate(table(values, documents)).ci95
        held += low <= 0.5 <= high
    assert 88 <= held <= 100


groups = st.sampled_from(["nda", "lease", "merger"])
rows = st.lists(st.tuples(st.one_of(st.none(), st.floats(0, 1)), st.sampled_from("abcdef"), groups), max_size=20)


@given(rows, st.randoms())
def test_estimate_is_independent_of_row_order_and_within_0_to_1(rows, chance):
    def estimate_groups(rows):
        labels = [{"benchmark": group} for _, _, group in rows]
        return estimate(table([v for v, _, _ in rows], [d for _, d, _ in rows], labels=labels, groups="benchmark"))

    once, again = estimate_groups(rows), estimate_groups(chance.sample(rows, len(rows)))
    assert once.mean == pytest.approx(again.mean) and once.n == again.n
    assert once.ci95 == (None if once.ci95 is None else pytest.approx(again.ci95))
    assert once.mean is None or -1e-9 <= once.mean <= 1 + 1e-9
    assert once.ci95 is None or -1e-9 <= once.ci95[0] <= once.ci95[1] <= 1 + 1e-9


LABELS = [{"benchmark": "maud"}] * 4 + [{"benchmark": "cuad"}] * 2


def test_estimate_with_groups_is_mean_of_group_means():
    values = [1.0, 1.0, 1.0, 0.0, 0.0, None]
    assert estimate(table(values, labels=LABELS)).mean == 0.6
    assert estimate(table(values, labels=LABELS, groups="benchmark")).mean == (0.75 + 0.0) / 2
    constant = [1.0] * 4 + [0.0] * 2
    assert estimate(table(constant, labels=LABELS, groups="benchmark")).ci95 == (0.5, 0.5)
    assert estimate(table(constant, labels=LABELS)).ci95 != (0.5, 0.5)


def test_summarise_run_is_mean_over_datasets():
    cuad = table([1.0, 0.0, 1.0, 1.0], failed=[False] * 4)
    maud = table([0.25, 0.25, None], name="maud", failed=[False, False, True])
    found = estimate(cuad, maud)
    assert (found.mean, found.n, found.errors) == (0.5, 6, 1)
    assert found.ci95[0] < 0.5 < found.ci95[1]
    # datasets to which the metric does not apply are left out
    assert estimate(cuad, table([None, None], name="nli")).mean == 0.75


def test_summarise_by_returns_a_mean_for_each_value_of_a_label():
    labels = [{"court": "TCC"}, {"court": "Patents"}, {"court": "TCC"}, {"part": 36}, {"court": 7}]
    found = summarise_by(table([1.0, 0.0, 0.0, 0.25, None], labels=labels, failed=[False] * 4 + [True]), "court")
    assert {value: (e["recall@10"].mean, e["recall@10"].n, e["recall@10"].errors) for value, e in found.items()} == {
        "": (0.25, 1, 0),
        "7": (None, 0, 1),
        "Patents": (0.0, 1, 0),
        "TCC": (0.5, 2, 0),
    }


def test_compute_macro_mean_averages_group_means():
    assert compute_macro_mean([1.0, 0.0, None, 0.0, None], ["a", "a", "a", "b", "c"]) == 0.25


def difference(first, second):
    return compare([first], [second])["recall@10"]


def test_compare_detects_small_steady_gain_but_not_noise():
    chance = random.Random(1)
    before, noise = ([chance.random() for _ in range(60)] for _ in range(2))
    after = [value + 0.02 + chance.uniform(-0.02, 0.02) for value in before]
    first, second = estimate(table(before)), estimate(table(after))
    assert first.ci95[1] > second.ci95[0]
    found = difference(table(before), table(after))
    assert found.beyond_chance and found.ci95[0] > 0
    assert difference(table(after), table(before)).ci95 == pytest.approx((-found.ci95[1], -found.ci95[0]), abs=2e-3)
    assert not difference(table(before), table(noise)).beyond_chance
    same = difference(table(before), table(before))
    assert same == Difference(compute_mean(before), compute_mean(before), 60, (0.0, 0.0), 1.0)
    assert not same.beyond_chance


def test_compare_uses_only_datasets_and_questions_in_both_runs():
    a, b = table([1.0, 0.0, 0.5, None], ids=[1, 2, 3, 4]), table([1.0, 1.0, None, 0.0, 0.5], ids=[3, 2, 1, 4, 9])
    found = difference(a, b)
    assert (found.first, found.second, found.mean, found.n) == (0.25, 1.0, 0.75, 2)
    first = [table([0.0, 0.0]), table([0.5, 0.5], name="maud")]
    second = [table([1.0, 1.0], name="maud"), table([1.0, 1.0], name="nli")]
    found = compare(first, second)["recall@10"]
    assert (found.first, found.second, found.n) == (0.5, 1.0, 2)
    assert compare([table([0.0])], [table([0.0], name="nli")]) == {}
    assert compare([table([0.0], ids=[1])], [table([0.0], ids=[2])])["recall@10"] == Difference(None, None, 0)


def test_bootstrap_interval_is_reproducible_with_fixed_seed():
    """The expected values are the 2.5th and 97.5th percentiles of a thousand resamples with a fixed seed."""
    found = estimate(table([0.0, 1.0, 0.25, 0.5], ["a", "b", "c", "d"]))
    assert found.ci95 == (0.125, 0.8125)
    wide = estimate(table([value / 40 for value in range(41)]))
    assert wide.ci95 == (pytest.approx(0.4127896341463415), pytest.approx(0.5908689024390245))


def test_estimate_of_repeated_runs_has_mean_failures_and_spread():
    columns = ([1.0, None], [0.0, 1.0], [0.5, None])
    failed = ([False, True], [False, False], [True, True])
    first, second, third = (table(values, failed=bad) for values, bad in zip(columns, failed, strict=True))
    assert Table.of_rounds([first]) is first
    joined = Table.of_rounds([first, second, third])
    assert joined.values == {"recall@10": [0.5, 1.0]} and len(joined.rounds) == 3
    assert (joined.failed, joined.errors) == ([True, True], 2)
    found = estimate(joined)
    assert (found.mean, found.repeats, found.n) == (0.75, 3, 2)
    assert found.spread == pytest.approx(0.28867513459481287), "the means are 1, 0.5 and 0.5"
    assert found.as_json()["repeats"] == 3 and "repeats" not in estimate(first).as_json()
    assert estimate(Table.of_rounds([first, table([None, None], failed=[False, False])])).spread is None, "one mean"
    assert joined.only([1]).rounds[1] == {"recall@10": [1.0]}
    once = estimate(joined, table([1.0], name="asked once"))
    assert (once.repeats, once.spread) == (1, None), "a single round has no spread"


def test_count_overlap_counts_questions_in_both_runs_and_in_only_one_run():
    before = [table([1.0, None, 0.0, 1.0], ids=[1, 2, 3, 5], failed=[0, 1, 0, 0]), table([1.0], name="only")]
    after = [table([1.0, 0.5, None, 1.0], ids=[2, 3, 4, 5])]
    found = count_overlap(before, after)
    assert (found.asked, found.failed_before, found.failed_after, found.answered) == (3, 1, 0, 2)
    assert (found.only_before, found.only_after) == (2, 1)
    assert count_overlap(after, before).failed_after == 1 and count_overlap(after, before).answered == 2
