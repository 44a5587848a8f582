"""The demo without a browser: one sample is skipped, and the others are printed by ReportLab."""

import json
from collections import Counter

import pytest

from exhibit import demo
from exhibit.evaluation.runs import RunResults
from exhibit.viewer.report import main as evaluate


def test_choose_samples_leaves_out_contractnli_without_browser(monkeypatch, capsys):
    monkeypatch.setattr(demo, "find_browser", lambda: None)
    assert demo.choose_samples(None) == [name for name in demo.SAMPLES if name != "contractnli"]
    assert "the sample of contractnli is left out" in capsys.readouterr().err
    assert demo.choose_samples("contractnli") == ["contractnli"]
    monkeypatch.setattr(demo, "find_browser", lambda: "chromium")
    assert demo.choose_samples(None) == list(demo.SAMPLES)


PRINTED_HERE = [name for name in demo.SAMPLES if name not in ("contractnli", "privacyqa")]


@pytest.mark.parametrize("name", ["privacyqa", *(pytest.param(name, marks=pytest.mark.slow) for name in PRINTED_HERE)])
def test_demo_samples_convert_without_browser(name, samples, convert, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "no-browser-here"))
    bundle = convert(name, "--source", samples / name)
    printing = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["printing"]
    assert printing is None or printing["printer"].startswith("ReportLab ")


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """The recorded steps of the demo, and a dict of their exit codes; stubs replace the real steps."""
    done: list[tuple[object, ...]] = []
    codes: dict[str, int] = {}

    def step(name):
        return lambda *given, **more: done.append((name, *given, *more.values())) or codes.get(name, 0)

    for name in ("convert", "validate", "check", "show", "evaluate"):
        monkeypatch.setattr(demo, name, step(name))
    return done, codes


def test_demo_runs_each_step_on_output_of_previous_step(steps, samples, tmp_path, capsys):
    done, _ = steps
    bundle = tmp_path / "datasets_out" / "cuad"
    assert demo.main(["--only", "cuad", "--out", str(tmp_path), "--run-name", "first"]) == 0
    picture = tmp_path / "datasets_out" / "gold-on-the-page.png"
    flags = ["--file-type", "pdf", "--output-dir", str(tmp_path / "results"), "--run-name", "first"]
    assert done == [
        ("convert", "cuad", samples / "cuad", bundle, True),
        ("validate", [str(bundle)]),
        ("check", [str(bundle)]),
        ("show", [str(bundle), "33", "--out", str(picture)]),
        ("evaluate", [str(bundle), *flags]),
    ]
    out = capsys.readouterr().err
    assert "converting the sample of cuad" in out and f"open {tmp_path / 'results' / 'first' / 'report.html'}" in out
    (tmp_path / "results" / "first").mkdir(parents=True)
    assert demo.main(["--only", "maud", "--out", str(tmp_path), "--run-name", "first"]) == 1
    assert "this run exists already; remove it, or choose another --run-name" in capsys.readouterr().err
    assert [name for name, *_ in done[5:]] == ["convert", "validate", "check"], "only CUAD has a show step"


@pytest.mark.parametrize(
    ("fails", "after"),
    [("validate", ["validate"]), ("check", ["validate", "check"]), ("show", ["validate", "check", "show"])],
)
def test_demo_stops_at_failing_step_with_its_exit_code(fails, after, steps, tmp_path):
    done, codes = steps
    codes[fails] = 3
    assert demo.main(["--only", "cuad", "--out", str(tmp_path)]) == 3
    assert [name for name, *_ in done] == ["convert", *after]
    codes.clear()
    codes["evaluate"] = 4
    assert demo.main(["--only", "cuad", "--out", str(tmp_path)]) == 4


@pytest.mark.slow
def test_pipeline_answers_most_questions_of_the_cuad_sample_correctly(converted, tmp_path):
    flags = ["--output-dir", str(tmp_path), "--run-name", "cuad", "--report-cases", "0"]
    assert evaluate([str(converted("cuad")), *flags]) == 0
    counts = Counter(row.outcome for row in RunResults(tmp_path / "cuad").rows)
    assert counts["right"] >= 60 and counts["rightly refused"] >= 60
    assert counts["not judged"] <= 24 and counts["wrongly refused"] <= 15 and counts["invented"] <= 6
