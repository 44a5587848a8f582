"""score.py prints the four metrics of two files in the original format."""

import json
import subprocess
import sys
from math import log2
from pathlib import Path

import pytest

from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.settings import parse_settings
from exhibit.models.embedders.hashing import Hashing
from score import main
from tests.rag.bundles import write_bundle

ROOT = Path(__file__).parent.parent
RENT = "The tenant shall pay a rent of £900 a month, in advance, on the first working day of each month."
NOTICE = "Either party may end this lease by two months' notice in writing."

PREDICTIONS = [
    {"query": "What is the rent?", "retrieved_passages": [RENT.lower(), "rent"]},
    {"query": "How does it end?", "retrieved_passages": ["two months", f"9. {NOTICE} 10. Repairs."]},
]
GOLD = {
    "tests": [
        {"query": "How does it end?", "snippets": [{"file_path": "a/lease.txt", "span": [7, 72], "answer": NOTICE}]},
        {"query": "What is the rent?", "snippets": [{"file_path": "a/lease.txt", "span": [90, 187], "answer": RENT}]},
    ]
}
SECOND = 1 / log2(3)
F1 = (1 + 2 * 2 / (2 + 12)) / 2  # "two months" compared with twelve different words


@pytest.fixture
def run(tmp_path, capsys):
    def call(predictions, gold, *flags, expect=0):
        for name, content in (("predictions.json", predictions), ("gold.json", gold)):
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / name).write_text(text, encoding="utf-8")
        assert main([str(tmp_path / "predictions.json"), str(tmp_path / "gold.json"), *map(str, flags)]) == expect
        return capsys.readouterr()

    return call


def test_score_prints_four_metrics_and_example_count(run):
    assert run(PREDICTIONS, GOLD).out == (
        "Evaluation Results:\n"
        "==========================\n"
        "exact_match: 0.5000\n"
        f"span_f1: {F1:.4f}\n"
        "recall@10: 1.0000\n"
        f"ndcg@10: {(1 + SECOND) / 2:.4f}\n"
        "num_examples: 2.0000\n"
        "==========================\n"
    )


def test_score_with_seed_parity_counts_single_words_and_lets_ndcg_exceed_1(run):
    """With seed parity, one word is a hit, and a gold that two passages contain counts twice, so nDCG exceeds 1."""
    lines = run(PREDICTIONS, GOLD, "--parity", "seed").out.splitlines()
    assert lines[2:6] == [
        "exact_match: 0.5000", f"span_f1: {F1:.4f}", "recall@10: 1.0000", f"ndcg@10: {1 + SECOND:.4f}",
    ]  # fmt: skip
    only_words = [{**row, "retrieved_passages": ["month"]} for row in PREDICTIONS]
    assert "recall@10: 0.0000" in run(only_words, GOLD).out
    assert "recall@10: 1.0000" in run(only_words, GOLD, "--parity", "seed").out


def test_score_applies_k_and_writes_output_json(run, tmp_path):
    printed = run(PREDICTIONS, GOLD, "--k", 1, "--output", tmp_path / "results.json")
    assert "recall@1: 0.5000\nndcg@1: 0.5000\n" in printed.out and not printed.err
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == {
        "exact_match": 0.5, "span_f1": F1, "recall@1": 0.5, "ndcg@1": 0.5, "num_examples": 2,
    }  # fmt: skip


def test_score_reads_answers_missing_in_gold_file_from_corpus_folder(run, tmp_path):
    (tmp_path / "corpus" / "a").mkdir(parents=True)
    (tmp_path / "corpus" / "a" / "lease.txt").write_text(f"0. Ab. {NOTICE}{' ' * 18}{RENT}", encoding="utf-8")
    bare = {"tests": [{**test, "snippets": [drop_field(test["snippets"][0], "answer")]} for test in GOLD["tests"]]}
    assert run(PREDICTIONS, bare).out == run(PREDICTIONS, GOLD).out
    bare["tests"][0]["snippets"][0]["file_path"] = "a/nowhere.txt"
    assert "corpus/a/nowhere.txt beside the gold file" in run(PREDICTIONS, bare, expect=1).err


def test_score_skips_gold_tests_without_prediction_and_prints_note(run):
    printed = run(PREDICTIONS[:1], GOLD)
    assert "num_examples: 1.0000" in printed.out and "exact_match: 1.0000" in printed.out
    assert printed.err.startswith("note: 1 of 2 tests") and "not counted" in printed.err


def drop_field(row, name):
    return {key: value for key, value in row.items() if key != name}


TEST = GOLD["tests"][0]


@pytest.mark.parametrize(
    ("predictions", "gold", "message"),
    [
        ("{", GOLD, "predictions.json: all of it: Invalid JSON: "),
        ([], GOLD, "predictions.json: all of it: List should have at least 1 item"),
        (PREDICTIONS, PREDICTIONS, "; see python score.py --help for the format"),
        ([PREDICTIONS[0], {"query": "x"}], GOLD, "predictions.json: 1.retrieved_passages: Field required"),
        ([{"query": "x", "retrieved_passages": [{"text": RENT}]}], GOLD, "0.retrieved_passages.0: Input should be"),
        ([{"query": 3, "retrieved_passages": []}], GOLD, "0.query: Input should be a valid string"),
        (PREDICTIONS, {"tests": [drop_field(TEST, "snippets")]}, "gold.json: tests.0.snippets: Field required"),
        (PREDICTIONS, {"tests": [{**TEST, "snippets": [{"file_path": "x"}]}]}, "test 0: a snippet needs 'answer', or"),
        (PREDICTIONS, {"tests": [{**TEST, "snippets": []}]}, "test 0: no snippet has an answer"),
        ([{"query": "Who insures?", "retrieved_passages": []}], GOLD, "none of its queries is in "),
    ],
)
def test_score_rejects_invalid_files_with_single_error_line(run, predictions, gold, message):
    printed = run(predictions, gold, expect=1)
    assert printed.out == ""
    assert printed.err.startswith("error: ") and message in printed.err and printed.err.count("\n") == 1


def test_score_script_runs_as_subprocess(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(PREDICTIONS), encoding="utf-8")
    (tmp_path / "g.json").write_text(json.dumps(GOLD), encoding="utf-8")
    command = [sys.executable, str(ROOT / "score.py"), "p.json", "g.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Evaluation Results:\n")


def test_score_recall_of_run_predictions_equals_run_summary(tmp_path, run, capsys):
    bundle = write_bundle(tmp_path / "leases")
    settings = {"dataset_paths": [str(bundle)], "output_dir": tmp_path / "results", "run_name": "r", "report_cases": 0}
    done = evaluate(parse_settings(settings), parts={"cache": tmp_path / "cache", "embedder": Hashing(64)})
    predictions = json.loads((done.folder / "leases" / "predictions.json").read_text(encoding="utf-8"))
    tests = [
        {"query": row["question"], "snippets": [{"file_path": context["filename"], "answer": context["text"]}]}
        for row in json.loads((bundle / "train.json").read_text(encoding="utf-8"))
        for context in row["contexts"]
        if context["text"]
    ]
    asked = {test["query"] for test in tests}
    kept = [prediction for prediction in predictions if prediction["query"] in asked]
    printed = dict(line.split(": ") for line in run(kept, {"tests": tests}).out.splitlines() if ": " in line)
    assert float(printed["num_examples"]) == 6 == done.means["recall@10"].n
    assert float(printed["recall@10"]) == pytest.approx(done.means["recall@10"].mean, abs=5e-5)
