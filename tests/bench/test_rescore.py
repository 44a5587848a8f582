"""The effect of changed scoring rules, computed for two runs that were written by hand."""

from __future__ import annotations

import json

import pytest

from bench.rescore import find_changes, find_moved, main, read_rows
from exhibit.schemas.errors import ToolkitError


def write_run(folder, scores: dict[int, dict[str, float | None]], verdicts: dict[int, str], answer: str = "Ten days"):
    (folder / "leases").mkdir(parents=True)
    rows = [
        {"id": id, "question": f"Question {id}?", "truth": "10 days", "reply": {"answer": answer}, "scores": scores[id],
         "verdict": verdicts[id]}
        for id in scores
    ]  # fmt: skip
    (folder / "leases" / "eval_results.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return folder


@pytest.fixture
def runs(tmp_path):
    before = write_run(
        tmp_path / "before",
        {1: {"recall@10": 1.0}, 2: {"recall@10": 0.0}, 3: {"recall@10": 0.5}, 4: {}},
        {1: "answered", 2: "wrong document", 3: "answered", 4: "answered"},
    )
    after = write_run(
        tmp_path / "after",
        {1: {"recall@10": 1.0}, 2: {"recall@10": 1.0}, 3: {"recall@10": None}, 4: {"recall@10": 0.25}},
        {1: "answered", 2: "answered", 3: "cannot be judged", 4: "answered"},
    )
    return before, after


def test_means_are_over_what_is_known_and_changes_are_counted_by_question(runs):
    before, after = map(read_rows, runs)
    [one] = find_changes(before, after, ["recall@10", "drm@8"])
    assert (one.before, one.after, one.questions) == (0.5, 0.75, (3, 3))
    assert (one.changed, one.gained, one.lost) == (1, 1, 1)
    assert find_moved(before, after, "recall@10") == [("leases", "3"), ("leases", "4"), ("leases", "2")]


def test_the_command_prints_the_table_the_verdicts_and_the_questions(runs, capsys):
    assert main([*map(str, runs), "--metrics", "recall@10", "--questions", "1"]) == 0
    out = capsys.readouterr().out
    assert "wrong document" in out and "recall@10 0.500 -> –: leases 3: Question 3?" in out and "Question 2?" not in out
    assert main([*map(str, runs), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["metrics"][0]["metric"] == "recall@10" and len(record["verdicts"]) == 2


def test_other_answers_or_other_questions_are_refused(runs, tmp_path, capsys):
    other = write_run(tmp_path / "other", {1: {}, 2: {}, 3: {}, 4: {}}, dict.fromkeys(range(1, 5), "answered"), "No")
    assert main([str(runs[0]), str(other)]) == 1 and "another answer" in capsys.readouterr().err
    fewer = write_run(tmp_path / "fewer", {1: {}}, {1: "answered"})
    assert main([str(runs[0]), str(fewer)]) == 1 and "3 questions" in capsys.readouterr().err
    with pytest.raises(ToolkitError, match="no DATASET"):
        read_rows(tmp_path)
