"""The analysis of a run: its questions, results by kind, confidences and flags."""

from __future__ import annotations

import json

import pytest

import evaluate_rag
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.metrics import Options, describe_metric, measure
from exhibit.evaluation.statistics import compute_auroc, summarise_confidences
from exhibit.evaluation.text_tables import describe_confidence, find_question_kinds
from exhibit.schemas.run import Confidence

KINDS = ["CPR", "CPR", "PD", "PD", "Court Guide", "Court Guide"]
ANSWERS = [
    ("Rule 3.4 applies.", 0.9),
    ("Rule 3.4 applies.", 0.2),
    ("PD 28 applies.", 0.5),
    ("PD 29 applies.", 0.1),
    ("Commercial Court Guide section O.5.1.", None),
    ("Nothing applies.", 0.7),
]
TRUTHS = ["Rule 3.4.", "Rule 3.5.", "PD 28.", "PD 28.", "Commercial Court Guide section O.5.1.", "Annex E."]


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "procedure"
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "rules.txt").write_text("Rule 3.4 is about statements of case.", encoding="utf-8")
    rows, gold, replies = [], [], []
    for number, (kind, truth, (answer, sure)) in enumerate(zip(KINDS, TRUTHS, ANSWERS, strict=True)):
        rows.append({"id": number, "question": f"Which law is question {number} about?", "answer": truth,
                     "is_impossible": False, "contexts": [{"filename": "rules.txt"}]})  # fmt: skip
        labels = {"source_type": kind, "category": "Costs" if number % 2 else "Trial", "reference": f"r{number}"}
        gold.append({"id": number, "context": 0, "filename": "rules.txt", "pages": [], "spans": [], "alternatives": [],
                     "how": "absent", "score": 1.0, "labels": labels})  # fmt: skip
        replies.append({"id": number, "answer": answer} | ({} if sure is None else {"confidence": sure}))
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    for path, lines in ((folder / "gold.jsonl", gold), (tmp_path / "replies.jsonl", replies)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    fixed = ["--dataset-paths", folder, "--target", f"predictions:{tmp_path / 'replies.jsonl'}",
             "--output-dir", tmp_path / "results", "--run-name", "r", "--report-cases", "0"]  # fmt: skip

    def run(*flags):
        return evaluate_rag.main([*map(str, fixed), *map(str, flags)])

    return run


def test_compute_auroc_counts_ties_as_half():
    # 0.9 beats two; 0.8 beats one and equals one; 0.1 beats none
    pairs = [(0.9, True), (0.8, False), (0.8, True), (0.3, False), (0.1, True)]
    assert compute_auroc(pairs) == (2 + 1.5 + 0) / 6
    assert compute_auroc([(0.5, True), (0.5, False)]) == 0.5
    assert compute_auroc([(0.5, True)]) is None


def test_summarise_confidences_weights_means_by_confidence():
    answerable = [True, False, True, True]
    values = {"answered_rightly": [1.0, 0.0, None, 1.0], "map": [None, None, 0.5, 0.5]}
    described = summarise_confidences([0.9, 0.3, 0.5, None], answerable, values)
    assert described["weighted"] == {"answered_rightly": pytest.approx(0.75), "map": 0.5}
    assert (described["questions"], described["answerable"], described["auroc"]) == (3, 2, 1.0)
    assert summarise_confidences([None] * 4, answerable, values) == {}
    line = describe_confidence("x", Confidence.model_validate(described))
    assert "weighted by it: answered_rightly 0.750" in line


def test_flagged_metric_marks_answers_with_confidence_below_threshold():
    def case(**reply):
        return Case(0, "?", "", reply=Reply("x", **reply))

    cases = [case(confidence=0.29), case(confidence=0.3), case(), case(confidence=0.1, error="away")]
    assert measure(cases, Options(flag_below=0.3), names=["flagged"]) == {"flagged": [1.0, 0.0, None, None]}
    assert measure(cases, names=["flagged"]) == {"flagged": [None] * 4}
    assert describe_metric("flagged").improves(1.0) is None


def test_flag_below_writes_flags_to_rows_summary_and_terminal(command, tmp_path, capsys):
    assert command("--flag-below", "0.3") == 0
    out = capsys.readouterr().out
    assert "2 of 5 answers have a confidence below 0.3: flagged for review" in out
    place = tmp_path / "results" / "r" / "procedure"
    rows = [json.loads(line) for line in (place / "eval_results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["scores"]["flagged"] for row in rows] == [0.0, 1.0, 0.0, 1.0, None, 0.0]
    assert [row["reply"]["confidence"] for row in rows] == [0.9, 0.2, 0.5, 0.1, None, 0.7]
    told = json.loads((place / "summary.json").read_text(encoding="utf-8"))["flagged"]
    assert (told["mean"], told["n"]) == (0.4, 5)


def test_flag_below_reports_when_no_reply_has_confidence(command, tmp_path, capsys):
    path = tmp_path / "replies.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps({**line, "confidence": None}) + "\n" for line in lines), encoding="utf-8")
    assert command("--flag-below", "0.3") == 0
    assert "no reply has a confidence, so nothing is flagged" in capsys.readouterr().out


def test_all_flag_compares_source_types_in_same_table(command, capsys):
    assert command("--all") == 0
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if line.endswith(" questions)")]
    assert heads == ["CPR (2 questions)", "Court Guide (2 questions)", "PD (2 questions)", "ALL (6 questions)"]
    compared = [line for line in out.splitlines() if line.startswith("  statute_citation_accuracy")]
    # CPR: one of two right; guides: one of two; directions: one of two; in all three of six
    assert [line.split()[1] for line in compared] == ["0.500"] * 4


def test_by_flag_compares_the_values_of_a_label(command, capsys):
    assert command("--by", "category") == 0
    assert "Costs (3 questions)" in capsys.readouterr().out
    assert command("--by", "colour", "--resume") == 1
    err = capsys.readouterr().err
    assert "no question has a label 'colour'" in err and "category" in err


def test_source_type_flag_is_shorthand_for_where(command, tmp_path):
    assert command("--source-type", "PD", "--source-type", "CPR") == 0
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text(encoding="utf-8"))
    assert config["where"] == {"source_type": ["PD", "CPR"]} and config["datasets"]["procedure"]["questions"] == 4


def test_analyze_prints_a_run_without_writing_files(command, tmp_path, capsys):
    assert command("--flag-below", "0.3") == 0
    capsys.readouterr()
    before = sorted((tmp_path / "results").rglob("*"))
    assert evaluate_rag.main(["--analyze", str(tmp_path / "results" / "r")]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "r: 6 questions of 1 dataset, 0 failed"
    heads = [line for line in lines if line[:4].isupper() and line[:1] != " " and not line.endswith(" questions)")]
    assert [head.split(" (")[0] for head in heads] == [
        "QUESTIONS", "IN ALL", "BY SOURCE_TYPE", "BY CATEGORY", "OUTCOMES",
    ]  # fmt: skip
    assert "  Court Guide       2   33.3%" in lines
    assert sorted((tmp_path / "results").rglob("*")) == before, "an analysis writes nothing"


def test_analyze_without_run_counts_dataset_questions(command, tmp_path, capsys):
    assert command("--analyze") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "questions: 6" and "  CPR               2   33.3%" in lines
    assert not (tmp_path / "results").exists(), "nothing was run"


def test_find_question_kinds_excludes_unique_and_constant_labels():
    rows = [{"id": str(n), "kind": "ab"[n % 2], "same": 1} for n in range(10)]
    assert find_question_kinds(rows) == ["kind"]
    assert find_question_kinds([{"kind": "a", "source_type": "x"}, {"kind": "b", "source_type": "y"}]) == [
        "source_type",
        "kind",
    ]
