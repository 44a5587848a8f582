"""Situations that once gave misleading results now give a clear message, a right result or exit code 3."""

from __future__ import annotations

import json
import re

import pytest

import evaluate_rag
from exhibit.viewer.results import main as results
from tests.evaluation.loopback import SECRET, chat
from tests.rag.bundles import row, rows_of, write_bundle


@pytest.fixture
def start(dataset, tmp_path, capsys):
    """A function that runs the command and returns its exit code, stdout, stderr and the run's folder."""

    def run(*flags, name="run"):
        out = tmp_path / "results"
        common = ["--dataset-paths", str(dataset.root), "--output-dir", str(out), "--run-name", name]
        code = evaluate_rag.main([*common, "--report-cases", "0", *map(str, flags)])
        told = capsys.readouterr()
        return code, told.out, told.err, out / name

    return run


def summary(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


# ---------------------------------------------------------------- a server that fails in part


def test_evaluate_exits_3_after_many_failures(start, server, dataset):
    bad = {case.question for case in dataset.cases[1::2]}
    server.reply = lambda question: chat(f"About {question}", ["x"])
    assert start("--target-url", server.url, name="good")[0] == 0
    server.reply = lambda question: (
        (500, {"error": f"disk full, key {SECRET}"}) if question in bad else chat("a", ["x"])
    )
    code, out, err, folder = start("--target-url", server.url, "--retries", "0", name="flaky")
    assert code == 3
    assert "4 of 9 questions failed" in err and "HTTP 500 Internal Server Error: disk full, key ***" in err
    assert "44.4%, and --max-failures is 5%" in err and "--resume --run-name flaky" in err
    assert "(n 5, 4 failed)" in out and "failed questions, which are excluded from every mean: leases: 4" in out
    assert summary(folder)["answer_f1"]["errors"] == 4
    assert "4 failed" in (folder / "report.html").read_text(encoding="utf-8")
    assert start("--target-url", server.url, "--retries", "0", "--max-failures", "0.5", name="lenient")[0] == 0
    assert results(["diff", str(folder.parent / "good"), str(folder), "--fail-on-regression"]) == 1


# ---------------------------------------------------------------- what is not told is not zero


def test_evaluate_omits_retrieval_metrics_when_replies_have_no_passages(start, server):
    server.reply = lambda question: {"answer": "It is governed by the law of Norway."}
    code, out, err, folder = start("--target-url", server.url)
    assert code == 0 and "the reply has no passages ({answer: text})" in err
    assert "leases: no reply has passages, so retrieval is not measured" in err
    means = summary(folder)
    assert "answer_f1" in means and not {"recall@10", "char_recall@8", "document_hit@1"} & means.keys()
    assert "recall@10" not in out


def test_evaluate_measures_only_retrieval_when_replies_have_no_answers(start, server, dataset):
    server.reply = lambda question: {"passages": ["governed by the law of Norway"]}
    code, _, err, folder = start("--target-url", server.url)
    assert code == 0 and "the replies have passages but no answer: only retrieval is measured" in err
    assert "answer_f1" not in summary(folder) and summary(folder)["recall@10"]["n"] == 6


def test_evaluate_counts_a_null_or_blank_answer_as_wrongly_refused(start, server, dataset):
    mute = {dataset.cases[3].question: None, dataset.cases[4].question: ""}
    server.reply = lambda question: {"answer": mute.get(question, "fine"), "passages": ["words"]}
    code, _, _, folder = start("--target-url", server.url)
    rows = rows_of(folder / "leases" / "eval_results.jsonl")
    assert code == 0 and [row["id"] for row in rows if row["outcome"] == "wrongly refused"] == [3, 4]
    assert summary(folder)["answer_length"]["errors"] == 0, "an empty reply is a refusal, not a failure"


# ---------------------------------------------------------------- what cannot be told is not counted


def test_report_counts_outcomes_when_gold_has_no_quotes(server, tmp_path, capsys):
    rows = [
        row(number, f"Which part governs offer {number}?", "Part 36", {"filename": "alder.txt"}) for number in (0, 1)
    ]
    bundle = write_bundle(tmp_path / "cpr", rows=rows, gold=False)
    words = {"Which part governs offer 0?": "alder.txt: governed by the law of Norway"}
    server.reply = lambda question: chat("Part 36 [1].", [words.get(question, "birch.txt: the law of Ohio")])
    flags = ["--target-url", server.url, "--output-dir", str(tmp_path), "--run-name", "r", "--report-cases", "0"]
    assert evaluate_rag.main([str(bundle), *flags]) == 0
    found = rows_of(tmp_path / "r" / "cpr" / "eval_results.jsonl")
    assert [one["outcome"] for one in found] == ["right", "right"]
    report = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    counts = dict(re.findall(r'data-pick="([^"]+)".*?<b>(\d+)</b>', report))
    assert counts == {"right": "2"}
