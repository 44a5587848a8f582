"""A variant beside its control: in the report, in `results diff`, and over the size of the corpus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.settings import parse_settings
from exhibit.storage.bundle import open_bundle
from exhibit.vary.__main__ import main as vary
from exhibit.viewer.report import write_report
from exhibit.viewer.results import main as results
from exhibit.viewer.variants import growth_plots, variant_effects, variant_warnings
from tests.vary.bundles import ROWS, write_parent


def asked(folder: Path, name: str, *bundles: Path) -> Path:
    """Evaluate a system that always answers from the original contracts; return the run."""
    memory = {row.question: row.answer for row in ROWS}
    lines = []
    for bundle in bundles:
        for row in open_bundle(bundle).questions:
            question = re.sub(r"^As of [^:]+: ", "", row.question)
            lines.append({"id": row.id, "dataset": bundle.name, "answer": memory.get(question, "I do not know.")})
    (folder / f"{name}.json").write_text(json.dumps(lines), encoding="utf-8")
    told = {"dataset_paths": list(map(str, bundles)), "output_dir": folder / "results", "run_name": name}
    evaluate(parse_settings({**told, "target": f"predictions:{folder / name}.json", "report_cases": 0}))
    return folder / "results" / name


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("varied")
    write_parent(folder / "parent")

    def make(kind: str, *flags: str) -> tuple[Path, Path]:
        name = kind.replace(":", "-")
        out = folder / name
        if not out.exists():
            assert vary([str(folder / "parent"), "--kind", kind, "--out", str(out), "--jobs", "1", *flags]) == 0
        return out, folder / f"{name}-control"

    return make


@pytest.fixture
def shown(tmp_path):
    def text(run: Path) -> str:
        page = write_report(run, pages=0)
        return " ".join(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")).split())

    return text


def test_the_report_tells_what_became_of_each_question_by_type_of_value(varied, tmp_path, shown):
    out, control = varied("figures")
    run = asked(tmp_path, "both", out, control)
    [effect] = variant_effects(RunResults(run))
    assert (effect.dataset, effect.control, effect.kind) == (out.name, control.name, "figures")
    assert effect.heads == ["has the old value"]
    assert {value for value, _ in effect.lines} == {"date", "period", "amount", "percentage", "place"}
    assert sum(counts[0] for _, counts in effect.lines) == len(effect.questions) > 5
    assert {question.control for question in effect.questions} == {"right"}
    assert "right" not in {question.variant for question in effect.questions}
    assert all(question.question for question in effect.questions)
    page = shown(run)
    assert "Variants and their controls" in page and f"{out.name} beside {control.name}" in page
    assert page.count("has the old value") >= len(effect.questions)
    assert variant_warnings(RunResults(run)) == []


def test_a_run_on_a_variant_alone_says_so_in_its_report(varied, tmp_path, shown):
    out, _ = varied("figures")
    page = shown(asked(tmp_path, "alone", out))
    assert f"{out.name}: a variant (figures) without its control" in page
    assert "Variants and their controls" not in page


@pytest.mark.parametrize("kind", ["figures", "amended:2"])
def test_the_difference_of_control_and_variant_is_paired_question_by_question(varied, tmp_path, capsys, kind):
    out, control = varied(kind)
    before, after = asked(tmp_path, "control", control), asked(tmp_path, "variant", out)
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


def test_every_metric_is_drawn_over_the_size_of_the_corpus(varied, tmp_path, shown):
    others = tmp_path / "others"
    others.mkdir()
    for number in range(6):
        (others / f"other{number}.txt").write_text(f"LEASE {number}\n\nThe rent of house {number} is due.", "utf-8")
    twice, control = varied("growth:2", "--others", str(others))
    fourfold, _ = varied("growth:4", "--others", str(others))
    run = asked(tmp_path, "growth", twice, fourfold, control)
    plots = growth_plots(RunResults(run))
    assert plots and all([tick.label for tick in plot.ticks] == ["2", "4", "8"] for plot in plots)
    assert "Answered rightly" in {plot.title for plot in plots}
    assert "Every metric over the size of the corpus" in shown(run)
