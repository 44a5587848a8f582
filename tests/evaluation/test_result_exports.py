"""Results in formats of the Hub and Every Eval Ever."""

from __future__ import annotations

import json

import pytest
import yaml

import evaluate_rag
from exhibit.viewer import results
from tests.rag.bundles import write_bundle

MODEL = "my-firm/contract-rag"


@pytest.fixture
def run(tmp_path):
    """A run that fails the first question, answers the second one wrong, and the others as expected."""
    bundle = write_bundle(tmp_path / "leases")
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    replies = [
        {"id": row["id"], "answer": row["answer"], "passages": [c for c in row["contexts"] if c["text"]]}
        for row in rows[1:]
    ]
    replies[0]["answer"] = "Chile"
    (tmp_path / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    words = ["--target", f"predictions:{tmp_path / 'replies.json'}", "--output-dir", str(tmp_path), "--run-name", "r"]
    assert evaluate_rag.main([str(bundle), *words, "--set", "report_cases=0", "--set", "max_failures=1"]) == 0
    return tmp_path / "r"


def export(run, form, *flags):
    out = run.parent / "out"
    code = results.main(["export", str(run), "--to", form, "--model", MODEL, "--out", str(out), *flags])
    return code, out


def test_eval_results_export_divides_by_all_answerable_questions(run):
    code, out = export(run, "eval-results", "--dataset", "me/leases-rag")
    [entry] = yaml.safe_load((out / ".eval_results" / "leases.yaml").read_text(encoding="utf-8"))
    assert code == 0 and entry["dataset"] == {"id": "me/leases-rag", "task_id": "questions"}
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert entry["value"] == round(100 * summary["answered_rightly"]["mean"], 2) < 100
    assert set(entry) == {"dataset", "value", "date", "source", "notes"} and "answered correctly" in entry["notes"]


def test_eval_results_export_requires_dataset_and_model_names(run, capsys):
    assert export(run, "eval-results")[0] == 1
    assert "--dataset OWNER/NAME" in capsys.readouterr().err
    assert results.main(["export", str(run), "--to", "eval-results", "--model", "nameless"]) == 1
    assert "OWNER/NAME" in capsys.readouterr().err


def test_every_eval_ever_export_has_every_metric_and_question(run):
    code, out = export(run, "every-eval-ever")
    folder = out / "data" / "exhibit-leases" / "my-firm" / "contract-rag"
    [record] = [path for path in folder.iterdir() if path.suffix == ".json"]
    content = json.loads(record.read_text(encoding="utf-8"))
    required = {
        "schema_version",
        "evaluation_id",
        "retrieved_timestamp",
        "source_metadata",
        "model_info",
        "eval_library",
    }
    assert code == 0 and required < set(content) and content["model_info"]["id"] == MODEL
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    scores = {one["metric_config"]["metric_id"]: one["score_details"]["score"] for one in content["evaluation_results"]}
    assert scores == {f"exhibit.{name}": one["mean"] for name, one in summary.items() if one["mean"] is not None}
    for one in content["evaluation_results"]:
        config = one["metric_config"]
        assert config.get("score_type") != "continuous" or {"min_score", "max_score"} < set(config)
    samples = [json.loads(line) for line in (folder / f"{record.stem}_samples.jsonl").read_text().splitlines()]
    assert len(samples) == 9 and {one["evaluation_id"] for one in samples} == {content["evaluation_id"]}
    assert samples[0]["error"] and not samples[1]["evaluation"]["is_correct"] and samples[2]["evaluation"]["is_correct"]
