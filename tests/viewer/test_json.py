"""The JSON output of commands on runs: one JSON value on stdout, and nothing else."""

from __future__ import annotations

import json

import pytest

from exhibit.viewer.results import main as results
from exhibit.viewer.review.__main__ import main as review


@pytest.fixture
def printed(capsys):
    def run(command, *words):
        assert command([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_results(printed, report_results, report_bundles, tmp_path):
    run, bundle = report_results, next(iter(report_bundles.values()))
    summary = printed(results, "summary", run)
    name = run.name if run.name in summary else next(iter(summary))
    assert summary[name]["document_hit@1"]["n"] > 0
    told = printed(results, "diff", run, run)
    assert told["metrics"]["document_hit@1"]["change"] == 0.0 and told["worse"] == []
    assert sum(printed(results, "gold", bundle)[bundle.name].values()) > 0
    page = printed(results, "compare", run, run, "--pages", "none", "--out", tmp_path / "both.html")["page"]
    assert page == str(tmp_path / "both.html")
    assert printed(results, "index", run.parent, "--out", tmp_path / "index.html")["regressions"] == []


def test_review(printed, report_results, tmp_path):
    made = printed(review, "make", report_results, "--sample", "2", "--out", tmp_path / "page.html")
    assert made["cases"] == 2 and made["path"] == str(tmp_path / "page.html")
