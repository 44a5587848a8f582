"""A metric describes itself completely: with one new file, tables, report and diff include it."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest

from exhibit.evaluation import metrics
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.metrics import GROUPS, abouts_of, describe_metric, import_metrics, list_metrics, shorten_metrics
from exhibit.evaluation.settings import parse_settings
from exhibit.models.embedders.hashing import Hashing
from exhibit.viewer import write_report
from exhibit.viewer.results import main
from tests.rag.bundles import rows_of, write_bundle
from tests.viewer.trend_data import write_sums_again

WASTE = '''
"""Wasted tokens: how many tokens of a reply nobody needed."""

from exhibit.evaluation.metrics import About
from exhibit.evaluation.metrics import score_each

NAMES = ("wasted",)
ABOUT = {"wasted": About("Wasted tokens", "tokens nobody needed", "Cost", unit="tokens", better="less")}


def measure(cases, options):
    return {"wasted": score_each(cases, lambda case: 200.0 + len(case.reply.answer or ""))}
'''


@pytest.mark.parametrize("file", import_metrics())
def test_every_name_that_a_file_yields_is_described_and_no_other(file):
    module = import_metrics()[file]
    assert set(abouts_of(module)) == {name.partition("@")[0] for name in module.NAMES}
    for told in abouts_of(module).values():
        assert told.title and told.meaning and told.group in GROUPS and told.group != "Other"
        assert told.needs


def test_a_judged_metric_says_so_and_what_it_lacks():
    judged = {file for file, module in import_metrics().items() if "judge" in describe_metric(module.NAMES[0]).needs}
    assert judged == {file for file, module in import_metrics().items() if hasattr(module, "PROMPT_VERSION")}
    assert {"groundedness", "relevance"} <= judged


def test_figures_have_the_places_of_their_unit():
    assert (
        describe_metric("answer_f1").figure(0.25) == "0.250" and describe_metric("answer_f1").in_words(0.25) == "25.0"
    )
    assert describe_metric("latency").figure(1.234) == "1.23" == describe_metric("latency").in_words(1.234)
    assert describe_metric("answer_length").figure(1234.4) == "1,234"
    assert describe_metric("groundedness").figure(4.25, signed=True) == "+4.25"
    assert describe_metric("answer_f1").figure(None) == describe_metric("answer_f1").in_words(float("inf")) == "–"
    assert [describe_metric("answer_f1").improves(change) for change in (-1, 0, 1)] == [False, False, True]
    assert [describe_metric("latency").improves(change) for change in (-1, 0, 1)] == [True, False, False]
    unknown = describe_metric("somebody_elses@3")
    assert (unknown.title, unknown.figure(2.0), unknown.improves(1)) == ("somebody elses", "2.000", None)


def test_a_short_table_has_the_depths_that_a_metric_names_or_the_nearest():
    names = shorten_metrics(list_metrics())
    assert [name for name in names if name.startswith("char_")] == [
        "char_precision@1", "char_precision@8", "char_recall@8", "char_recall@64",
    ]  # fmt: skip
    assert shorten_metrics(["char_recall@1", "char_recall@4"]) == ["char_recall@4"]
    assert "span_f1" not in names and "span_f1" in shorten_metrics(list_metrics(), all_families=True)
    groups = [GROUPS.index(describe_metric(name).group) for name in names]
    assert groups == sorted(groups)


@pytest.fixture
def wasted(tmp_path, monkeypatch):
    """Add a metric file to the package, as a user might."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "wasted.py").write_text(WASTE, encoding="utf-8")
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(folder)])
    metrics.import_metrics.cache_clear()
    metrics._describe_all.cache_clear()
    yield
    sys.modules.pop("exhibit.evaluation.metrics.wasted", None)
    metrics.import_metrics.cache_clear()
    metrics._describe_all.cache_clear()


def test_one_more_file_is_in_table_report_and_diff(wasted, tmp_path, capsys):
    bundle = write_bundle(tmp_path / "leases")
    told = {"dataset_paths": [str(bundle)], "output_dir": tmp_path / "results", "chunk_size": 120, "report_cases": 0}
    parts = {"cache": tmp_path / "cache", "embedder": Hashing(256)}
    before = evaluate(parse_settings({**told, "run_name": "before"}), parts=parts, draw=write_report)
    after = shutil.copytree(before.folder, tmp_path / "results" / "after")  # a second run would give the same
    path = after / "leases" / "eval_results.jsonl"
    rows = rows_of(path)
    for row in rows:
        row["scores"]["wasted"] += 100
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write_sums_again(after)

    assert main(["summary", str(before.folder)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wasted")]
    assert re.match(r"wasted tokens ↓ +\d{3} \[\d{3}, \d{3}\] SD \d+ \(n 9\)", line), line

    report = before.report.read_text(encoding="utf-8")
    [head] = re.findall(r"<th scope=\"row\" title=\"wasted: tokens nobody needed\">(.*?)</th>", report)
    assert head.startswith("Wasted tokens, tokens") and "lower is better" in head
    [cell] = re.findall(r"title=\"wasted: .*?</th>\s*<td[^>]*>(.*?)</td>", report, re.DOTALL)
    mean = before.summary["wasted"].mean
    assert f"<b>{mean:.0f}</b>" in cell and "level" not in cell, "no bar behind what is no share"

    runs = [str(before.folder), str(after)]
    assert main(["diff", *runs, "--fail-on-regression", "--metrics", "wasted"]) == 1
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wasted tokens")]
    assert "+100 [+100, +100]" in line and line.endswith("▲ worse")
    assert main(["diff", *reversed(runs), "--fail-on-regression", "--metrics", "wasted"]) == 0
