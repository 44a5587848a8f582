"""A variant and its control: in the report, in `results diff`, and by the size of the corpus."""

import json
import re
from pathlib import Path

import pytest

from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.settings import parse_settings
from exhibit.storage.bundle import open_bundle
from exhibit.viewer.report import write_report
from exhibit.viewer.results import main as results
from tests.vary.bundles import ROWS, variants

__all__ = ["variants"]


def evaluate_memory(folder: Path, name: str, *bundles: Path) -> Path:
    """Evaluate a system that always answers from the original contracts; return the run."""
    memory = {row.question: row.answer for row in ROWS}
    lines = []
    for bundle in bundles:
        for row in open_bundle(bundle).questions:
            question = re.sub(r"^As of [^:]+: ", "", row.question)
            lines.append({"id": row.id, "dataset": bundle.name, "answer": memory.get(question, "I do not know.")})
    (folder / f"{name}.json").write_text(json.dumps(lines), encoding="utf-8")
    settings = {"dataset_paths": list(map(str, bundles)), "output_dir": folder / "results", "run_name": name}
    evaluate(parse_settings({**settings, "target": f"predictions:{folder / name}.json", "report_cases": 0}))
    return folder / "results" / name


@pytest.fixture
def report_text(tmp_path):
    def text(run: Path) -> str:
        page = write_report(run, pages=0)
        return " ".join(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")).split())

    return text


def test_report_compares_a_variant_with_its_control(variants, tmp_path, report_text):
    out = variants("figures")
    control = out.with_name("figures-control")
    page = report_text(evaluate_memory(tmp_path, "both", out, control))
    assert f"Measure All {out.name} {control.name}" in page and "Old value remembered" in page
    assert "without its control" not in page


def test_report_warns_when_variant_has_no_control(variants, tmp_path, report_text):
    out = variants("figures")
    page = report_text(evaluate_memory(tmp_path, "alone", out))
    assert f"{out.name}: a variant (figures) without its control" in page


@pytest.mark.parametrize("kind", ["figures", "amended:2"])
def test_diff_pairs_questions_of_control_and_variant(variants, tmp_path, capsys, kind):
    out = variants(kind)
    before, after = (
        evaluate_memory(tmp_path, "control", out.with_name(f"{out.name}-control")),
        evaluate_memory(tmp_path, "variant", out),
    )
    capsys.readouterr()
    assert results(["diff", str(before), str(after), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    count = len(open_bundle(out).questions)
    assert record["questions"]["asked"] == record["questions"]["answered"] == count
    right = record["metrics"]["answered_rightly"]
    assert right["first"] == 1.0 and right["second"] < 0.5 and right["n"] > count / 2
    assert results(["diff", str(after), str(before), "--json"]) == 0
    other = json.loads(capsys.readouterr().out)["metrics"]["answered_rightly"]
    assert (other["first"], other["second"]) == (right["second"], right["first"])
