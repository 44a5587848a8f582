"""Runs compared on the command line."""

import json

import pytest

from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.statistics import Difference
from exhibit.viewer.results import main


def write_run(folder, scores, *, dataset="leases", failed=(), config=()):
    """Write a run of questions with these scores, with two questions for each document."""
    (folder / dataset).mkdir(parents=True)
    (folder / "config.json").write_text(
        json.dumps({"datasets": {name: {"groups": None} for name in config or [dataset]}})
    )
    lines = []
    for id in range(len(next(iter(scores.values())))):
        reply = {"error": "HTTP 500" if id in failed else ""}
        values = {name: None if id in failed else column[id] for name, column in scores.items()}
        fields = {"id": id, "question": "q", "truth": "t", "filename": f"{id // 2}.pdf", "outcome": "right"}
        lines.append({**fields, "reply": reply, "scores": values})
    (folder / dataset / "eval_results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    flat = [0.5, 0.4] * 20
    first = write_run(tmp_path / "one", {"recall@10": flat, "drm@1": flat, "answer_f1": flat, "latency": [1.0] * 40})
    better_recall = [value + 0.3 for value in flat]
    wobbly = [value + (0.1 if at % 4 < 2 else -0.1) for at, value in enumerate(flat)]
    changed = {"recall@10": better_recall, "drm@1": better_recall, "answer_f1": wobbly, "latency": [2.0] * 40}
    return first, write_run(tmp_path / "two", changed)


def test_summary_of_one_run_shows_its_datasets_and_of_several_runs_shows_each_run(runs, capsys):
    assert main(["summary", str(runs[0])]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["leases"]
    assert any(line.split(maxsplit=1) == ["recall@10", "0.450 [0.450, 0.450] SD 0.051 (n 40)"] for line in rows)
    assert main(["summary", *map(str, runs), "--metrics", "drm"]) == 0
    first_name, first, second_name, second, _, *results = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in results] == ["one", "two"]
    assert (first_name, second_name) == ("one", "two") and first.split()[:2] == ["drm@1", "↓"] and "0.750" in second


def test_summary_shows_band_beside_mean(tmp_path, capsys):
    scores = {"statute_citation_accuracy": [0.9, 0.8, 1.0, 0.9], "citation_format_compliance": [0.1] * 4}
    main(["summary", str(write_run(tmp_path / "r", scores)), "--all"])
    output = capsys.readouterr().out
    assert "SD 0.082 (n 4) good" in output and "(n 4) poor" in output


def test_summary_counts_failed_questions_below_table(tmp_path, capsys):
    main(["summary", str(write_run(tmp_path / "r", {"answer_f1": [1.0] * 8}, failed=(2, 5)))])
    output = capsys.readouterr().out
    assert "failed questions, which count as not right and are excluded from every other mean: leases: 2" in output
    assert "answer_f1  1.000 SD 0.000 (n 6, 2 failed)" in output


def test_summary_of_all_datasets_is_mean_of_means_without_question_count(tmp_path, capsys):
    run = write_run(tmp_path / "r", {"answer_f1": [1.0] * 8}, failed=(7,))
    write_run(run, {"answer_f1": [0.0] * 2}, dataset="maud", config=("leases", "maud"))
    assert main(["summary", str(run)]) == 0
    head, row, *rest = capsys.readouterr().out.splitlines()[4:]
    assert head == "ALL (mean of 2 datasets)"
    assert row.split() == "answer_f1 0.500 (2 datasets, 1 failed)".split(), "the mean over all questions would be 0.778"
    assert rest[0].startswith("The mean over several datasets is the mean of their means")


def test_diff_marks_better_and_worse_metrics_and_changes_beyond_chance(runs, capsys):
    assert main(["diff", *map(str, runs)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "+0.300 [+0.300, +0.300]" in lines["recall@10"] and lines["recall@10"].endswith("▲ better")
    assert lines["drm@1"].endswith("▲ worse") and "chance" not in lines["drm@1"]
    assert lines["answer_f1"].endswith(("within chance", "="))
    assert "worse by more than chance: drm@1" in " ".join(lines.values())


def test_diff_fail_on_regression_checks_selected_metrics(runs, capsys):
    first, second = map(str, runs)
    assert main(["diff", first, second, "--fail-on-regression"]) == 1
    assert main(["diff", first, second, "--fail-on-regression", "--metrics", "recall@10,answer_f1"]) == 0
    assert main(["diff", first, first, "--fail-on-regression"]) == 0
    assert "more than before" not in capsys.readouterr().out
    # a slower run is a regression only if the metric is named
    assert main(["diff", first, second, "--fail-on-regression", "--metrics", "latency"]) == 1
    assert main(["diff", second, first, "--fail-on-regression"]) == 1  # in this order, recall is worse


def test_diff_reports_more_failed_questions_as_regression_even_if_means_are_perfect(tmp_path, capsys):
    good = write_run(tmp_path / "good", {"answer_f1": [1.0] * 40})
    flaky = write_run(tmp_path / "flaky", {"answer_f1": [1.0] * 40}, failed=range(0, 38, 2))
    assert main(["diff", str(good), str(flaky), "--fail-on-regression"]) == 1
    output = capsys.readouterr().out
    lines = {line.split()[0]: line for line in output.splitlines() if line.strip()}
    assert lines["failed"].split()[3:] == ["0", "19", "+19", "40", "▲", "worse"]
    assert lines["answer_f1"].split()[1:3] == ["1.000", "1.000"] and lines["answer_f1"].split()[-2:] == ["21", "="]
    assert "compared over the 21 of 40 questions that both runs answered" in output
    assert "worse: 19 of 40 questions failed, 19 more than before" in output
    assert main(["diff", str(flaky), str(good), "--fail-on-regression"]) == 0
    assert main(["diff", str(good), str(flaky), "--fail-on-regression", "--metrics", "answer_f1"]) == 1


def test_diff_counts_questions_missing_from_second_run(tmp_path, capsys):
    long, short = (write_run(tmp_path / str(n), {"answer_f1": [1.0] * n}) for n in (6, 4))
    assert main(["diff", str(long), str(short)]) == 0
    assert "2 questions of the first run are left out: the other" in capsys.readouterr().out


def test_describe_metric_states_direction_of_improvement():
    assert describe_metric("recall@10").improves(0.1) and describe_metric("drm@4").improves(-0.1)
    assert describe_metric("false_refusal_rate").improves(0.1) is False
    assert describe_metric("answer_length").improves(5) is None
    assert not Difference(None, None, 0).beyond_chance


def test_results_commands_reject_missing_unfinished_or_incomparable_runs(tmp_path, runs, capsys):
    (tmp_path / "empty").mkdir()
    for folder, message in (("nowhere", "no such run"), ("empty", "is not a run of evaluate_rag.py")):
        assert main(["summary", str(tmp_path / folder)]) == 1
        assert message in capsys.readouterr().err
    (tmp_path / "stopped").mkdir()
    (tmp_path / "stopped" / "config.json").write_text('{"datasets": {"leases": {}}}')
    assert main(["summary", str(tmp_path / "stopped")]) == 1
    assert "--resume" in capsys.readouterr().err
    other = write_run(tmp_path / "other", {"recall@10": [1.0]}, dataset="maud")
    assert main(["diff", str(runs[0]), str(other)]) == 1
    assert "no dataset and metric in common" in capsys.readouterr().err
