"""The report of a large run, measured in a real browser, compared with the documented figures for 20,000 cases."""

from __future__ import annotations

import json

import pytest

from bench.report import cut_documents, draw_apart, first_paint, main, make_run, open_times, size_of
from tests.browser import browsing
from tests.viewer.report_data import opened

TEXT = " ".join(f"The party of part {n} shall not assign clause {n * 7} of schedule {n % 13}." for n in range(3000))


def test_a_made_up_run_is_the_same_each_time_and_has_as_many_rows(tmp_path):
    rows = []
    for name in ("one", "other"):
        folder = make_run(tmp_path / name, cut_documents([TEXT])[:3], cases=90)
        rows.append((folder / "contracts" / "eval_results.jsonl").read_text(encoding="utf-8"))
    assert rows[0] == rows[1] and rows[0].count("\n") == 90
    row = json.loads(rows[0].split("\n")[41])
    text = cut_documents([TEXT])[1]
    assert row["gold"][0]["text"] == text[slice(*row["gold"][0]["places"][0][0])]
    assert all(one["text"] == text[slice(*one["span"])] for one in row["reply"]["passages"][:1])


@pytest.mark.slow
def test_the_bench_prints_one_table(capsys):
    assert main(["--cases", "300", "--open", "7"]) == 0
    told = capsys.readouterr().out
    for words in ("A report of 300 cases", "first paint", "a case by a link", "without page images", "at its peak"):
        assert words in told


@pytest.mark.slow
def test_twenty_thousand_cases_stay_small_and_open(tmp_path):
    folder = make_run(tmp_path / "run", cut_documents([TEXT]), cases=20_000)
    report, drawing = draw_apart(folder)
    size, files = size_of(folder / "report_files")
    assert size < 60_000_000 and files < 1000 and report.stat().st_size < 1_000_000
    assert drawing.memory < 600, "megabytes, however many rows"
    complaints: list[str] = []
    with browsing() as browser:
        assert first_paint(browser, report).clock > 0
        keys = ["contracts/7000", "contracts/19999"]
        times = open_times(browser, report, keys)
        assert all(took.clock > 0 for found in times.values() for took in found)
        page = opened(browser, f"{report.as_uri()}#contracts/7000", complaints)
        page.wait_for_selector("article.case[data-key='contracts/7000']")
        assert page.locator(".line").count() < 40, "only those in sight are drawn"
        page.fill("#search", "contract_170 clause 31")
        page.wait_for_function("() => byId('count').textContent.includes('of 20,000')")
        assert page.evaluate("matching.length") >= 1
        page.close()
    assert complaints == []
