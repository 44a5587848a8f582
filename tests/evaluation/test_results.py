"""Runs compared on the command line, and the health of gold."""

from __future__ import annotations

import json

import pytest

from evaluation.results import better, main
from evaluation.statistics import Difference
from tests.rag.bundles import row, write_bundle


def write_run(folder, scores, *, dataset="leases", failed=()):
    """A run of questions with these scores, two to a document."""
    (folder / dataset).mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"datasets": {dataset: {"groups": None}}}))
    lines = []
    for id in range(len(next(iter(scores.values())))):
        reply = {"error": "HTTP 500" if id in failed else ""}
        values = {name: None if id in failed else column[id] for name, column in scores.items()}
        lines.append(
            {"id": id, "filename": f"{id // 2}.pdf", "gold": [], "labels": {}, "reply": reply, "scores": values}
        )
    (folder / dataset / "eval_results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    flat = [0.5, 0.4] * 20
    one = write_run(tmp_path / "one", {"recall@10": flat, "drm@1": flat, "answer_f1": flat, "latency": [1.0] * 40})
    better_recall = [value + 0.3 for value in flat]
    wobbly = [value + (0.1 if at % 4 < 2 else -0.1) for at, value in enumerate(flat)]
    told = {"recall@10": better_recall, "drm@1": better_recall, "answer_f1": wobbly, "latency": [2.0] * 40}
    return one, write_run(tmp_path / "two", told)


def test_summary_shows_datasets_or_runs(runs, capsys):
    assert main(["summary", str(runs[0])]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["leases", "ALL"]
    assert any(line.startswith("recall@10  0.450 [0.450, 0.450]") for line in rows)
    assert main(["summary", *map(str, runs), "--metrics", "drm"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["one", "two"] and line.split()[0] == "drm@1" and "0.750" in line


def test_failures_are_said_under_the_table(tmp_path, capsys):
    main(["summary", str(write_run(tmp_path / "r", {"answer_f1": [1.0] * 8}, failed=(2, 5)))])
    assert "failed questions, which are in no mean: leases: 2, ALL: 2" in capsys.readouterr().out


def test_diff_has_arrows_and_says_what_is_beyond_chance(runs, capsys):
    assert main(["diff", *map(str, runs)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "+0.300 [+0.300, +0.300]" in lines["recall@10"] and lines["recall@10"].endswith("▲ better")
    assert lines["drm@1"].endswith("▲ worse") and "chance" not in lines["drm@1"]
    assert lines["answer_f1"].endswith(("within chance", "="))
    assert "worse beyond chance: drm@1" in " ".join(lines.values())


def test_a_regression_fails_where_that_is_asked(runs, capsys):
    one, two = map(str, runs)
    assert main(["diff", one, two, "--fail-on-regression"]) == 1
    assert main(["diff", one, two, "--fail-on-regression", "--metrics", "recall@10,answer_f1"]) == 0
    assert main(["diff", one, one, "--fail-on-regression"]) == 0
    # slower is no regression, unless it is asked about
    assert main(["diff", one, two, "--fail-on-regression", "--metrics", "latency"]) == 1
    assert main(["diff", two, one, "--fail-on-regression"]) == 1  # recall is worse that way


def test_which_way_is_better():
    assert better("recall@10", 0.1) and better("drm@4", -0.1) and not better("false_refusal_rate", 0.1)
    assert better("answer_length", 5) is None
    assert not Difference(None, None, 0).beyond_chance


def test_what_is_no_run_is_said(tmp_path, runs, capsys):
    (tmp_path / "empty").mkdir()
    for folder, told in (("nowhere", "no such run"), ("empty", "is not a run of evaluate_rag.py")):
        assert main(["summary", str(tmp_path / folder)]) == 1
        assert told in capsys.readouterr().err
    (tmp_path / "stopped").mkdir()
    (tmp_path / "stopped" / "config.json").write_text('{"datasets": {"leases": {}}}')
    assert main(["summary", str(tmp_path / "stopped")]) == 1
    assert "--resume" in capsys.readouterr().err
    other = write_run(tmp_path / "other", {"recall@10": [1.0]}, dataset="maud")
    assert main(["diff", str(runs[0]), str(other)]) == 1
    assert "no dataset and metric in common" in capsys.readouterr().err


def test_gold_says_what_is_located_and_lists_the_rest(tmp_path, capsys):
    write_bundle(tmp_path / "good")
    rows = [
        row(0, "a?", "b", {"filename": "alder.txt", "text": "This Agreement is governed by the law of Norway."}),
        row(1, "c?", "d", {"filename": "alder.txt", "text": "Words that this contract never had, not even nearly."}),
        row(2, "e?", "f", {"filename": "birch.txt"}),
    ]
    write_bundle(tmp_path / "poor", rows=rows, gold=False)
    assert main(["gold", str(tmp_path / "good"), str(tmp_path / "poor")]) == 0
    told = capsys.readouterr().out
    assert "good: 6 of 6 gold passages located (100.00%)" in told
    assert "poor: 1 of 2 gold passages located (50.00%)" in told and "  exact   1\n  absent  1" in told
    assert "1 name a file and quote no words" in told
    assert "not located: 1, alder.txt: Words that this contract never had" in told
    assert main(["gold", str(tmp_path / "nothing")]) == 1
