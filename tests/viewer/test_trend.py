"""Runs over time: a run that made results worse is named with its questions, and CI is informed.

Differences that chance explains are not reported.
"""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.statistics import Table
from exhibit.evaluation.text_tables import Bands, find_bands, read_scale
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.results import main
from exhibit.viewer.trend import Regression, Series, find_regressions, make_series, open_runs
from tests.viewer.trend_data import make_run, make_runs, write, write_sums_again
from tests.viewer.watching import CONTRASTS, watched


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Ten runs and the page about them; from the seventh run on, half of the questions are worse."""
    made = make_runs(tmp_path_factory.mktemp("results"))
    assert main(["index", str(made)]) == 0
    return made


def find_in_folder(folder: Path) -> list[Regression]:
    [series] = make_series(open_runs(sorted(folder.glob("run-*")), "here"))
    return list(series.regressions)


def make_example_series(values: list[list[float]], *, documents: int = 10, metric: str = "answer_f1") -> Series:
    """Return a series of runs with these values."""
    ids = range(len(values[0]))
    tables = [Table("d", list(ids), [f"{id % documents}.pdf" for id in ids], {metric: row}) for row in values]
    runs = [SimpleNamespace(name=f"r{at + 1}", tables={"d": table}) for at, table in enumerate(tables)]
    return Series("d", "d", runs, [metric])  # type: ignore[arg-type]


def test_run_series_reports_the_first_worse_run_with_the_metrics_that_fell(folder):
    [regression] = find_in_folder(folder)
    assert (regression.run.name, regression.before.name, regression.persists) == ("run-07", "run-06", True)
    assert set(regression.falls) == {
        "char_recall@8", "answer_f1", "statute_citation_accuracy", "drm@8", "outcome: wrong",
    }  # fmt: skip
    assert regression.lines[0].startswith("run-07 is worse than run-06 on leases, builtin sac: ")


def test_run_series_marks_a_corrected_regression_as_not_persisting(tmp_path):
    [regression] = find_in_folder(make_runs(tmp_path, back=8))
    assert (regression.run.name, regression.persists) == ("run-07", False)
    assert regression.lines[-1] == "A later run is as good as before the fall."
    assert main(["index", str(tmp_path), "--fail-on", "regression"]) == 0


def test_run_series_reports_regression_in_newest_run(tmp_path):
    [regression] = find_in_folder(make_runs(tmp_path, bad=10))
    assert (regression.run.name, regression.persists) == ("run-10", True)


def test_run_series_reports_no_regression_for_chance_variation(tmp_path, capsys):
    assert find_in_folder(make_runs(tmp_path, bad=None)) == []
    assert main(["index", str(tmp_path), "--fail-on", "regression"]) == 0
    assert "no run is worse" in capsys.readouterr().out


def test_find_regressions_finds_slow_decline_between_first_and_newest_run():
    chance = random.Random(5)
    base = [chance.random() for _ in range(60)]
    runs = [[value / 2 + 0.5 - 0.012 * run + chance.gauss(0, 0.06) for value in base] for run in range(10)]
    [found] = find_regressions(make_example_series(runs, documents=30))
    assert (found.run.name, found.before.name, found.persists) == ("r10", "r1", True)
    assert found.falls["answer_f1"].mean < -0.08
    level = [[value / 2 + 0.5 + chance.gauss(0, 0.06) for value in base] for _ in range(10)]
    assert find_regressions(make_example_series(level, documents=30)) == []


def test_find_regressions_requires_large_fall_when_runs_have_single_document():
    runs = make_example_series([[0.9] * 6, [0.1] * 6], documents=1)
    [found] = find_regressions(runs)
    assert found.run.name == "r2" and found.falls["answer_f1"].ci95 is None
    assert find_regressions(make_example_series([[0.9] * 6, [0.85] * 6], documents=1)) == []


def test_results_index_reports_regression_between_only_two_runs(tmp_path, capsys):
    make_runs(tmp_path, bad=2, runs=2)
    assert main(["index", str(tmp_path)]) == 0
    assert "run-02 is worse than run-01" in capsys.readouterr().out


def test_run_series_reports_more_failed_questions_as_regression(tmp_path):
    make_runs(tmp_path, bad=None, runs=3, noise=0)
    path = tmp_path / "run-03" / "leases" / "eval_results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[4]["reply"] = {"error": "HTTP 503: the server is away", "answer": None}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_sums_again(tmp_path / "run-03")
    [regression] = find_in_folder(tmp_path)
    assert (regression.run.name, regression.more_failed, regression.falls) == ("run-03", 1, {})
    assert regression.lines[0].endswith("on leases, builtin sac: 1 more question failed")


def test_find_regressions_skips_run_that_asked_different_questions():
    system = make_example_series([[0.9] * 20, [0.5] * 20, [0.4] * 20])
    middle = system.runs[1].tables["d"]
    other = Table("d", [id + 100 for id in range(20)], middle.documents, middle.values)
    runs = system.runs[0], SimpleNamespace(name="r2", tables={"d": other}), system.runs[2]
    series = Series("d", "d", runs, ["answer_f1"])  # type: ignore[arg-type]
    [found] = find_regressions(series)
    assert (found.run.name, found.before.name) == ("r3", "r1")


def test_open_runs_sorts_by_time_and_reports_unfinished_runs(tmp_path, capsys):
    make_runs(tmp_path, bad=None, runs=2)
    make_run(tmp_path / "a-third", 3, broken=False)
    make_run(tmp_path / "stopped", 4, broken=False)
    (tmp_path / "stopped" / "summary.json").unlink()
    (tmp_path / "not-a-run").mkdir()
    runs = open_runs(sorted(path.parent for path in tmp_path.glob("*/config.json")), "here")
    assert [run.name for run in runs] == ["run-01", "run-02", "a-third"]
    assert "stopped: has not ended; continue it with --resume" in capsys.readouterr().err


def test_make_series_separates_systems_and_judges(tmp_path):
    make_runs(tmp_path, bad=None, runs=2)
    for name, change in {"served": {"target": "http"}, "judged": {"measured": {"judge": "m"}}}.items():
        config = json.loads((make_run(tmp_path / name, 5, broken=True) / "config.json").read_text())
        write(tmp_path / name / "config.json", config | change)
    runs = open_runs(sorted(tmp_path.iterdir()), "here")
    titles = {system.title: [run.name for run in system.runs] for system in make_series(runs)}
    assert titles == {
        "leases, builtin sac": ["run-01", "run-02"],
        "leases, http": ["served"],
        "leases, builtin sac, judged by m": ["judged"],
    }


def test_open_runs_uses_file_times_when_provenance_is_missing(tmp_path):
    make_runs(tmp_path, bad=None, runs=1)
    (tmp_path / "run-01" / "provenance.json").unlink()
    [run] = open_runs([tmp_path / "run-01"], "here")
    assert run.provenance.started.endswith("+00:00") and run.commit == "" and run.data_version("leases") == "a" * 64


@pytest.mark.parametrize(
    ("scale", "metric", "means"),
    [
        (None, "groundedness", (4.1, 4.0, 3.0, 2.9)),
        (None, "relevance", (4.1, 4.0, 3.0, 2.9)),
        (None, "statute_citation_accuracy", (0.81, 0.8, 0.5, 0.49)),
        (None, "case_law_citation_accuracy", (0.81, 0.8, 0.5, 0.49)),
        (None, "legal_terminology_accuracy", (0.91, 0.9, 0.7, 0.69)),
        (None, "citation_format_compliance", (1.0, 0.99, 0.8, 0.79)),
        (None, "precedent_matching", (0.71, 0.7, 0.5, 0.49)),
        (Path("seed"), "char_precision@1", (0.081, 0.08, 0.06, 0.059)),
        (Path("seed"), "char_precision@8", (0.141, 0.14, 0.12, 0.119)),
        (Path("seed"), "char_recall@64", (0.651, 0.65, 0.60, 0.599)),
        (Path("seed"), "drm@8", (0.249, 0.25, 0.30, 0.301)),
        (Path("seed"), "chunk_essential", (0.401, 0.40, 0.35, 0.349)),
        (Path("seed"), "chunk_neither", (0.549, 0.55, 0.60, 0.601)),
        (Path("seed"), "latency", (1.9, 2.0, 4.0, 4.1)),
        (Path("seed"), "cost", (0.049, 0.05, 0.08, 0.081)),
    ],
)
def test_shipped_scales_give_expected_band_for_each_value(scale, metric, means):
    bands = find_bands(read_scale(scale), metric)
    assert bands and [bands.band(mean) for mean in means] == ["Good", "Acceptable", "Acceptable", "Poor"]
    assert describe_metric(metric).title


def test_find_bands_returns_none_for_a_metric_without_bands():
    assert find_bands(read_scale(), "answer_f1") is None
    assert find_bands(read_scale(Path("seed")), "char_precision@4") is None, "no band in the seed scale"


def test_read_scale_reads_bands_of_metrics_and_of_single_cutoffs(tmp_path):
    file = tmp_path / "bands.toml"
    file.write_text(
        '\ufeff[drm]\ngood = "< 0.1"\npoor = ">= 0.5"\n[gpt_relevance]\ngood = "> 4"\npoor = "< 3"\n'
        '["drm@8"]\ngood = "< 0.2"\npoor = "> 0.6"\n',
        encoding="utf-8",
    )
    scale = read_scale(file)
    general, own = find_bands(scale, "drm@4"), find_bands(scale, "drm@8")
    assert general and own and (general.band(0.15), own.band(0.15)) == ("Acceptable", "Good")
    assert general.band(0.5) == "Poor" and general.poor == ">= 0.5" and find_bands(scale, "relevance")


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [("> 0.8", 0.8, False), (">= 0.8", 0.8, True), ("< 0.5", 0.5, False), (" <= -1 ", -1.0, True), ("<0.5", 0.4, True)],
)
def test_band_is_good_only_when_the_value_meets_the_condition_for_good(text, value, holds):
    other = "< -9" if ">" in text else "> 9"
    assert Bands(good=text, poor=other).band(value) == ("Good" if holds else "Acceptable")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[drm]\ngood = 0.1\npoor = '> 1'\n", "drm.good: .*string.*write good"),
        ("[drm]\ngood = '< 0.1'\n", "drm.poor: .*write good"),
        ("drm = 3 4", "not TOML"),
        ("drm = 3", "and nothing else"),
        ("[drm]\ngood = '=> 1'\npoor = '< 0.5'\n", "drm.good: .*write good"),
    ],
)
def test_read_scale_names_fault_of_invalid_file(tmp_path, text, message):
    (tmp_path / "bands.toml").write_text(text)
    with pytest.raises(ToolkitError, match=message):
        read_scale(tmp_path / "bands.toml")


def test_results_index_prints_failed_checks_and_returns_exit_code_4(folder, tmp_path, capsys):
    out = ["--out", str(tmp_path / "index.html")]
    assert main(["index", str(folder), "--fail-on", "regression", "--fail-on", "band", *out]) == 4
    printed = capsys.readouterr().out
    assert "FAIL: leases, builtin sac: no regression: run-07 is worse than run-06" in printed
    assert "FAIL: leases, builtin sac: statute_citation_accuracy is not poor" not in printed
    assert "pass: leases, builtin sac: statute_citation_accuracy is not poor: 0.600 is acceptable" in printed
    assert f"to see the questions: exhibit results compare {folder / 'run-06'} {folder / 'run-07'}" in printed
    assert main(["index", str(folder), "--fail-on", "band", *out]) == 0


def test_results_index_fail_on_band_fails_when_mean_is_poor(tmp_path):
    make_runs(tmp_path, bad=None, runs=2)
    (tmp_path / "strict.toml").write_text('[answer_f1]\ngood = "> 0.99"\npoor = "< 0.95"\n')
    assert main(["index", str(tmp_path), "--fail-on", "band"]) == 0
    assert main(["index", str(tmp_path), "--fail-on", "band", "--bands", str(tmp_path / "strict.toml")]) == 4


def test_results_index_fail_on_band_uses_seed_scale(tmp_path, capsys):
    make_runs(tmp_path, bad=None, runs=2)
    assert main(["index", str(tmp_path), "--fail-on", "band", "--bands", "seed"]) == 4
    printed = capsys.readouterr().out
    assert "FAIL: leases, builtin sac: drm@8 is not poor" in printed
    assert "pass: leases, builtin sac: latency is not poor" in printed
    with pytest.raises(ToolkitError, match="sede: missing"):
        read_scale(Path("sede"))


def test_results_index_rejects_check_that_is_invalid_or_can_never_fail(folder, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["index", str(folder), "--fail-on", "worse"])
    assert ended.value.code == 2 and "choose from 'regression', 'band'" in capsys.readouterr().err
    out = ["--out", str(tmp_path / "i.html")]
    run = make_run(tmp_path / "runs" / "one", 1, broken=False)
    rows = [json.loads(line) for line in (run / "leases" / "eval_results.jsonl").read_text().splitlines()]
    scored = [row | {"scores": {"answer_f1": row["scores"]["answer_f1"]}} for row in rows]
    (run / "leases" / "eval_results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))
    write_sums_again(run)
    assert main(["index", str(run.parent), "--fail-on", "band", *out]) == 1
    assert "could never fail" in capsys.readouterr().err
    assert main(["index", str(folder), "--metrics", "bleu", *out]) == 1
    assert main(["index", str(tmp_path / "nothing")]) == 1


def test_trend_page_links_regression_to_run_reports(folder, browser):
    with watched(browser, (folder / "index.html").as_uri(), viewport={"width": 1200, "height": 900}) as page:
        assert "1 regression persists" in page.inner_text(".lead")
        assert "run-07 is worse than run-06" in page.inner_text("#regression-1 h3")
        assert "exhibit results compare run-06 run-07" in page.inner_text("#regression-1")
        assert page.locator("figure.trend").count() == 4 and page.locator("circle.worse").count() == 4
        assert page.locator("figure.trend circle.worse title").first.text_content().startswith("run 7, run-07: ")
        page.locator("#run-2 summary").click()
        assert "never-shown" not in page.content()
        page.locator("#run-2 th a").first.click()
        assert page.title() == "report"


def test_trend_page_fits_screen_width_with_readable_contrast(folder, browser):
    with watched(browser, (folder / "index.html").as_uri()) as page:
        for width, theme in ((400, "dark"), (1000, "light"), (1600, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.reload()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, theme
            assert page.evaluate(CONTRASTS) == [], (width, theme)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"), ("config.json", b"[]"), ("config.json", b'{"datasets": {}}'),
        ("provenance.json", b"\xff"), ("provenance.json", b'{"data": 5}'), ("provenance.json", None),
        ("summary.json", b"7"), ("leases/summary.json", b"null"), ("leases/eval_results.jsonl", b"nothing\n"),
        ("leases/eval_results.jsonl", None),
    ],
)  # fmt: skip
def test_results_index_skips_damaged_run_and_shows_other_runs(tmp_path, capsys, name, content):
    made = make_runs(tmp_path / "results", runs=3, bad=None)
    damaged = made / "run-02" / name
    damaged.unlink()
    if content is not None:
        damaged.write_bytes(content)
    assert main(["index", str(made)]) == 0
    output = capsys.readouterr()
    assert "Traceback" not in output.err and (made / "index.html").is_file()
    runs = open_runs(sorted(made.glob("run-*")), "here")
    assert {run.name for run in runs} >= {"run-01", "run-03"}
    assert len(runs) == 3 or "run-02" in output.err
