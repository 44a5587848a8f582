"""Evaluation refuses a bundle whose files differ from the checksums in bundle.json."""

from pathlib import Path

import pytest

import evaluate_rag
from tests.rag.bundles import rows_of

pytestmark = pytest.mark.slow


def evaluate_bundle(bundle: Path, tmp_path: Path, *flags: str) -> tuple[int, dict[object, dict[str, object]]]:
    arguments = ["--dataset-paths", str(bundle), "--output-dir", str(tmp_path / "results"), "--run-name", "r"]
    code = evaluate_rag.main(
        [*arguments, "--embedder", "hashing", "--llm", "none", "--report-cases", "0", "--jobs", "1", *flags]
    )
    path = tmp_path / "results" / "r" / bundle.name / "eval_results.jsonl"
    return code, {row["id"]: row for row in rows_of(path)} if path.is_file() else {}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))


def test_evaluate_refuses_a_bundle_with_a_changed_file_unless_allowed(samples, tmp_path, convert, cache, capsys):
    bundle = convert("legalbenchrag", "--source", samples / "legalbenchrag")
    changed = bundle / "corpus" / rows_of(bundle / "gold.jsonl")[0]["filename"]
    changed.write_text("Other words. " + changed.read_text(encoding="utf-8"), encoding="utf-8")
    assert evaluate_bundle(bundle, tmp_path) == (1, {})
    fault = f"1 files differ from bundle.json (corpus/{changed.name}), so the positions of the gold may be wrong"
    assert fault in capsys.readouterr().err
    _, rows = evaluate_bundle(bundle, tmp_path, "--allow-changed-corpus")
    assert not any(row["reply"]["error"] for row in rows.values())
    report = (tmp_path / "results" / "r" / "report.html").read_text(encoding="utf-8")
    assert "allow_changed_corpus" in report and changed.name in report
