"""Verdicts given by hand: the file's content, kappa computed by hand, and the metrics' agreement."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bench.verdicts import ALWAYS, FILE, TOGETHER, compute_kappa, main, measure_agreements, read_verdicts


def test_kappa_by_hand():
    # 6 of 10 agree; both say yes in half of the cases: 0.5 by chance
    pairs = [(True, True)] * 3 + [(False, False)] * 3 + [(True, False)] * 2 + [(False, True)] * 2
    assert compute_kappa(pairs) == pytest.approx((0.6 - 0.5) / 0.5)
    assert compute_kappa([(True, True)] * 4) == 1.0 and compute_kappa([(True, False), (False, True)]) == -1.0


def test_two_hundred_replies_have_a_verdict_each():
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len({(row["dataset"], row["id"]) for row in rows}) == 200
    assert set(Counter(row["verdict"] for row in rows)) == {
        "right", "partly", "wrong", "refused-rightly", "refused-wrongly",
    }  # fmt: skip
    assert all(row["is_impossible"] for row in rows if row["verdict"] == "refused-rightly")


def test_metrics_together_agree_with_the_readers_and_a_blind_judge_does_not(capsys):
    found = {one.metric: one for one in measure_agreements(*read_verdicts())}
    assert found[ALWAYS].kappa == 0.0 and found[ALWAYS].accuracy == 147 / 200
    assert found[TOGETHER].accuracy >= 0.9 and found[TOGETHER].kappa >= 0.75
    assert found["answer_contained"].kappa > found["answer_f1"].kappa > found["answer_exact_match"].kappa
    assert main(["--json"]) == 0 and json.loads(capsys.readouterr().out)[0]["metric"] == "answer_contained"
