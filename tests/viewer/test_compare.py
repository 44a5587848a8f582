"""Runs side by side: every step of the page clicked through in a real Chromium, from a file and from a server."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from exhibit.evaluation.runs import RunResults, read_tables
from exhibit.evaluation.statistics import compare, summarise_run
from exhibit.schemas.run import RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.compare import write_comparison
from exhibit.viewer.questions import CHANGES, _find_change
from exhibit.viewer.results import main
from tests.viewer.report_data import Tab, make_results, narrow, open_first, shown
from tests.viewer.trend_data import make_runs, write_sums_again

COMPLAINTS: list[str] = []


@pytest.fixture(scope="module")
def runs(report_bundles, tmp_path_factory) -> tuple[Path, Path]:
    """Two runs over the same bundles that differ in a third of their replies; the second lacks a question."""
    root = tmp_path_factory.mktemp("results")
    before = make_results(root / "before", report_bundles, limit=24)
    after = make_results(root / "after", report_bundles, limit=24, turn=1)
    path = after / "leases" / "eval_results.jsonl"
    path.write_text("\n".join(path.read_text(encoding="utf-8").split("\n")[:-2]) + "\n", encoding="utf-8")
    write_sums_again(after)
    config = json.loads((after / "config.json").read_text(encoding="utf-8"))
    (after / "config.json").write_text(json.dumps({**config, "embedder": "other"}), encoding="utf-8")
    assert main(["compare", str(before), str(after)]) == 0
    return before, after


@pytest.fixture(scope="module")
def expected(runs) -> dict[str, str]:
    """How the outcome of each question changed between the two runs, computed from their rows."""
    ones, others = ({f"{row.dataset}/{row.id}": row for row in RunResults(run).rows} for run in runs)
    return {key: _find_change([ones.get(key), others.get(key)]) for key in {**ones, **others}}


@pytest.fixture(scope="module")
def open_page(browser, runs) -> Page:
    return Tab(browser).open((runs[1] / "compare.html").as_uri(), COMPLAINTS)


@pytest.fixture
def page(open_page) -> Iterator[Page]:
    open_page.set_viewport_size({"width": 1400, "height": 900})
    open_page.evaluate("closeCase(); clearFilters(); document.activeElement.blur(); scrollTo(0, 0)")
    yield open_page
    assert COMPLAINTS == []


def row(outcome: str, *, error: str = "", recall: float | None = 0.5) -> RunQuestion:
    fields = {"id": 1, "question": "q", "truth": "t", "outcome": outcome, "reply": {"error": error}}
    return RunQuestion.model_validate(strict=False, obj={**fields, "scores": {"char_recall@8": recall}})


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [
        (row("wrong"), row("right"), "won"),
        (row("failed", error="x"), row("right"), "won"),
        (row("right"), row("wrong"), "lost"),
        (row("right"), row("failed", error="x"), "failed"),
        (row("wrong"), row("failed", error="x"), "failed"),
        (row("failed", error="x"), row("failed", error="y"), "same"),
        (row("failed", error="x"), row("wrong"), "another outcome"),
        (row("right"), row("right", recall=0.4), "worse"),
        (row("right"), row("right", recall=0.6), "better"),
        (row("right"), row("right"), "same"),
        (row("right", recall=None), row("right"), "same"),
        (None, row("right"), "not asked by all"),
        (row("right"), None, "not asked by all"),
    ],
)
def test_find_change_classifies_question_by_outcome_error_and_recall(first, second, change):
    assert _find_change([first, second]) == change


def test_find_change_returns_worst_change_of_several_runs():
    first, won, worse = row("right"), row("right", recall=0.6), row("right", recall=0.4)
    assert _find_change([first, won, worse]) == "worse" and _find_change([first, won, first]) == "better"
    assert _find_change([first, won, row("wrong")]) == "lost"


def test_comparison_summary_counts_questions_by_change(page, expected):
    counts = Counter(expected.values())
    for change, count in counts.items():
        button = page.locator(f"[data-pick='{change}']")
        assert button.inner_text().split() == [str(count), *change.split()]
    assert "31 questions were asked in both runs" in page.locator(".lead").inner_text()
    assert {"won", "lost", "failed", "same", "not asked by all"} <= set(counts)


def test_comparison_table_shows_each_run_with_interval_and_paired_change(page, runs):
    before, after = (read_tables(RunFolder(run)) for run in runs)
    found, own = compare(before, after)["char_recall@8"], summarise_run(after)["char_recall@8"]
    grid = page.locator("details.figures[open]")
    groups = grid.locator("h3").all_inner_texts()
    assert groups[:2] == ["Retrieval", "Answers"] and grid.locator("h3 + p.note").count() == len(groups)
    assert grid.locator("thead th").all_inner_texts() == ["Measure", "before", "after"] * len(groups)
    mark = grid.locator("th[title^='char_recall@8:'] details.what")
    assert not mark.locator("p").is_visible(), "the explanation is hidden until clicked"
    mark.locator("summary").click()
    assert mark.locator("p").inner_text().endswith("char_recall@8")
    first, second = grid.locator("tr", has=page.locator("th[title^='char_recall@8:']")).locator("td").all_inner_texts()
    assert "chance" not in first and "mean of 2 benchmarks" in first
    change = f"{100 * found.mean:+.1f}".replace("-", "−")
    assert f"{100 * own.mean:.1f}" in second and change in second
    if own.ci95:  # with few documents there is no interval
        assert f"{100 * own.ci95[0]:.1f}–{100 * own.ci95[1]:.1f}" in second
    assert second.count("better") + second.count("worse") + second.count("within chance") == 1
    titles = page.locator("details.figures > summary").all_inner_texts()
    assert titles == ["All benchmarks, with equal weights", "cuad", "leases"]


def test_comparison_lists_questions_in_order_of_change_with_lost_first(page, expected):
    values = page.evaluate("lines.map(line => facetOf(line, 0))")
    order = [list(CHANGES).index(change) for change in values]
    assert order == sorted(order) and Counter(values) == Counter(expected.values())


def test_comparison_line_shows_both_runs_and_opens_their_answers_and_pages(page):
    page.click("[data-pick='lost']")
    narrow(page, **{"change": "lost", "dataset": "cuad", "outcome-1": "right", "outcome-2": "wrong"})
    line = page.locator("#lines .line").first
    assert line.locator(".system .chip").all_inner_texts() == ["Right", "Wrong"]
    assert all(line.locator(".system .words").all_inner_texts())
    line.locator(".system").nth(1).click()
    page.wait_for_selector("article.case .side-run")
    sides = page.locator("article.case .side-run")
    assert [sides.nth(n).locator("h4.run").inner_text() for n in (0, 1)] == ["before", "after"]
    assert [sides.nth(n).locator(".outcome").inner_text() for n in (0, 1)] == ["Right", "Wrong"]
    for number in (0, 1):
        assert sides.nth(number).locator(".prose").first.inner_text()
        assert sides.nth(number).locator(".page image").count() > 0
    assert sides.nth(0).locator("rect.mark.both").count() > 0 and sides.nth(1).locator("rect.mark.both").count() == 0
    page.click("details.scores summary")
    assert page.locator("details.scores thead").inner_text().split("\t")[:3] == ["Measure", "before", "after"]
    assert page.locator("details.scores td.worse").count() > 0


def test_compare_shows_three_runs(runs, report_bundles, browser, tmp_path):
    third = make_results(tmp_path / "third", report_bundles, limit=24, turn=2)
    out = tmp_path / "three.html"
    assert main(["compare", *map(str, runs), str(third), "--out", str(out), "--pages", "0"]) == 0
    shown_page = Tab(browser).open(out.as_uri(), complaints := [])
    assert shown_page.locator("details.figures[open] thead").first.locator("th").all_inner_texts()[1:] == [
        "before",
        "after",
        "third",
    ]
    assert shown_page.locator("#lines .line").first.locator(".system").count() == 3
    open_first(shown_page, **{"outcome-3": "wrong"})
    assert shown_page.locator("article.case .side-run").count() == 3
    assert "all runs" in shown_page.locator(".lead").inner_text() and complaints == []
    shown_page.close()


def test_compare_refuses_single_run(runs, capsys):
    assert main(["compare", str(runs[0])]) == 1 and "needs at least two runs" in capsys.readouterr().err


def test_comparison_case_marks_run_that_did_not_ask_question(page):
    open_first(page, change="not asked by all")
    assert "did not ask the question" in page.locator(".side-run").nth(1).inner_text()


@pytest.mark.parametrize(
    "wanted",
    [{"change": "won"}, {"outcome-1": "wrong"}, {"outcome-2": "failed"}, {"dataset": "leases", "change": "same"}],
)
def test_comparison_filters_by_change_outcome_and_dataset(page, runs, wanted):
    narrow(page, **wanted)
    count = shown(page)
    values = "META.facets.map((facet, at) => [facet.name, facetOf(lines[indexAt(place)], at)])"
    records = page.evaluate(f"Array.from({{ length: shownCount() }}, (_, place) => Object.fromEntries({values}))")
    assert count == len(records) > 0
    assert all(value == record[name] for record in records for name, value in wanted.items())


def test_comparison_search_finds_labels_and_errors(page, expected):
    page.fill("#search", "parity:1")
    assert shown(page) == 4
    narrow(page)
    page.fill("#search", "server closed")
    assert shown(page) > 0 and page.evaluate(
        "META.runs.some((_, run) => facetOf(lines[indexAt(0)], SIDES + run) === 'failed')"
    )


def test_comparison_lists_settings_that_differ(page):
    assert page.locator("section:has(#settings) tbody tr").all_inner_texts() == ["embedder\thashing\tother"]


@pytest.mark.parametrize("width", [400, *(pytest.param(width, marks=pytest.mark.slow) for width in (1000, 1600))])
def test_comparison_page_fits_screen_width(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("toList()")
    open_first(page, change="lost", dataset="cuad")
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_compare_refuses_runs_without_common_dataset_and_metric(runs, tmp_path, capsys):
    config = json.loads((runs[0] / "config.json").read_text(encoding="utf-8"))
    other = make_results(tmp_path / "other", {"third": Path(config["datasets"]["cuad"]["path"])}, limit=3)
    assert main(["compare", str(runs[0]), str(other)]) == 1
    assert "have no dataset and metric in common" in capsys.readouterr().err
    assert not (other / "compare.html").exists()


def test_comparison_of_single_dataset_shows_bands(tmp_path):
    folder = make_runs(tmp_path, runs=2, bad=2)
    page = write_comparison([folder / "run-01", folder / "run-02"], pages=0).read_text(encoding="utf-8")
    cells = re.findall(r'chip grade (good|acceptable|poor)"', page)
    assert cells[:2] == ["good", "acceptable"], "90% and 60% of the expected rules are cited"
