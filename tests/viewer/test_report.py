"""The report, opened in a real Chromium from a file: reading, filters, keyboard navigation, and attacks."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page

from exhibit.evaluation.runs import RunResults
from exhibit.schemas.run import Estimate, RunQuestion
from exhibit.viewer.page import as_json
from exhibit.viewer.plots import plot_over_k
from exhibit.viewer.questions import OUTCOMES, explain_outcome
from exhibit.viewer.report import write_report
from tests.rag.bundles import rows_of
from tests.viewer.report_data import Tab, block_of, narrow, open_first, pick, shown
from tests.viewer.watching import served

COMPLAINTS: list[str] = []


@pytest.fixture(scope="module")
def bundles(report_bundles) -> dict[str, Path]:
    return report_bundles


@pytest.fixture(scope="module")
def results(report_results) -> Path:
    return report_results


@pytest.fixture(scope="module")
def rows(results) -> list[tuple[str, dict]]:
    return [(name, row) for name in ("cuad", "leases") for row in rows_of(results / name / "eval_results.jsonl")]


@pytest.fixture(scope="module")
def open_page(browser, results) -> Page:
    """The report, opened once: all tests read the same page."""
    return Tab(browser).open((results / "report.html").as_uri(), COMPLAINTS)


@pytest.fixture(scope="module")
def tab(browser) -> Tab:
    """A tab for pages other than the shared report."""
    return Tab(browser)


@pytest.fixture
def page(open_page) -> Iterator[Page]:
    """The report in its initial state on a wide screen; console errors and external requests fail the test."""
    open_page.set_viewport_size({"width": 1400, "height": 900})
    open_page.emulate_media(media="screen", color_scheme="light")
    open_page.evaluate("closeCase(); clearFilters(); document.activeElement.blur(); scrollTo(0, 0)")
    yield open_page
    assert COMPLAINTS == []


def test_report_first_screen_shows_system_datasets_date_and_outcomes(page, results):
    assert page.locator("h1").inner_text() == "first"
    lead = page.locator(".lead").first.inner_text()
    assert "The built-in pipeline, preset sac, was asked 32 questions of cuad and leases on " in lead and "UTC" in lead
    outcomes = Counter(row.outcome for row in RunResults(results).rows if not row.is_impossible)
    right, most = outcomes["right"], outcomes["right"] + outcomes["not judged"]
    headline = page.locator(".headline").inner_text()
    assert headline.startswith(f"{right} to {most} of {outcomes.total()} answered correctly, ")
    tiles = page.locator(".tiles li").all_inner_texts()
    assert [tile.split("\n")[1].strip() for tile in tiles] == [
        "answered correctly", "not judged", "wrongly refused", "rightly refused", "failed",
    ]  # fmt: skip
    bottom = page.locator(".picks").first.evaluate("e => e.getBoundingClientRect().bottom")
    assert bottom < 1000, "the outcomes must be on the first screen"
    assert page.locator(".plot svg[role=img]").count() == 2
    assert page.locator(".plot polygon.band").count() == 0, "six documents are too few for an interval"


def test_plot_over_k_draws_interval_as_band():
    means = {f"char_recall@{k}": Estimate(0.5, 20, ci95=(0.4, 0.6)) for k in (1, 2)}
    plot = plot_over_k(means, ["char_recall"], "Recall")
    assert plot and len(plot.lines[0].band.split()) == 4


def test_report_tiles_count_outcomes_of_rows(page, rows):
    tiles = [[part.strip() for part in tile.split("\n")] for tile in page.locator(".tiles li").all_inner_texts()]
    answerable = Counter(row["outcome"] for _, row in rows if not row["is_impossible"])
    counts = {words: of.split(" questions")[0] for _, words, of in tiles}
    assert counts["answered correctly"] == f"{answerable['right']} of {answerable.total()}"
    assert counts["not judged"] == f"{answerable['not judged']} of {answerable.total()}"
    assert counts["failed"] == f"{answerable['failed']} of {len(rows)}"


def test_report_figures_are_grouped_with_first_group_open(page):
    groups = page.locator("details.figures")
    assert groups.count() >= 3 and [one.get_attribute("open") is not None for one in groups.all()][:2] == [True, False]
    assert groups.first.locator("> summary").inner_text().startswith("Retrieval")


def test_report_table_shows_numbers_of_summary_json(page, results):
    summary = json.loads((results / "cuad" / "summary.json").read_text(encoding="utf-8"))["char_recall@8"]
    row = page.locator("tr", has=page.locator("th[title^='char_recall@8:']")).first
    cell = row.locator("td").nth(1).inner_text()
    assert f"{100 * summary['mean']:.1f}" in cell and f"n {summary['n']}" in cell


def test_report_does_not_show_secret_from_config(results):
    text = (results / "report.html").read_text(encoding="utf-8")
    assert "sk-never-shown" not in text and "dataset_paths" in text


def test_report_lists_every_question_in_order_of_outcome_with_right_last(page, rows):
    assert shown(page) == len(rows) == 32
    outcomes = page.evaluate("lines.map(line => facetOf(line, MAIN))")
    order = [list(OUTCOMES).index(outcome) for outcome in outcomes]
    assert order == sorted(order) and len(set(order)) > 3 and outcomes[-1] == "right"


def test_report_list_renders_only_visible_lines(page):
    heights = page.evaluate("[list.firstElementChild.offsetHeight, rowHeight(), list.clientHeight]")
    assert heights[0] == 32 * heights[1] > heights[2]
    assert page.locator(".line").count() < 32
    page.evaluate("list.scrollTop = list.scrollHeight")
    page.wait_for_selector(".line[aria-posinset='32']")
    assert page.locator(".line[aria-posinset='1']").count() == 0


def test_report_filters_narrow_list_and_show_count(page, rows):
    narrow(page, dataset="leases")
    assert page.locator("#count").inner_text() == "8 of 32 questions" and page.locator(".line").count() == 8
    page.fill("#search", "parity:1")
    assert shown(page) == 4
    pick(page, "outcome", "wrong")
    expected = [r for name, r in rows if name == "leases" and r["labels"]["parity"] == 1]
    assert shown(page) == sum(r["outcome"] == "wrong" for r in expected) > 0
    page.click("#clear")
    assert shown(page) == 32 and page.locator("#clear").is_hidden()


def test_report_search_finds_error_messages(page, rows):
    page.fill("#search", "connection CLOSED")
    assert shown(page) == sum(bool(row["reply"]["error"]) for _, row in rows) > 0


def test_report_search_finds_question_words_in_any_order(page, rows):
    question = rows[3][1]["question"]
    page.fill("#search", " ".join(reversed(question.upper().split())))
    [line] = page.locator(".line .question").all()
    assert line.get_attribute("title") == question
    assert line.inner_text().startswith(question[:20]) and line.inner_text().endswith(question[-20:])
    page.fill("#search", "no such words anywhere")
    assert shown(page) == 0 and page.locator(".line").count() == 0
    assert page.locator("#nothing").inner_text().startswith("No question matches.")
    page.click("#clear-all")
    assert shown(page) == 32 and page.locator("#nothing").is_hidden()


def test_report_outcome_button_filters_list_and_second_click_clears_filter(page, rows):
    page.click("[data-pick='wrong']")
    assert shown(page) == sum(row["outcome"] == "wrong" for _, row in rows) > 0
    assert page.locator("[data-pick='wrong']").get_attribute("aria-pressed") == "true"
    page.evaluate("scrollTo(0, 0)")
    page.click("[data-pick='wrong']")
    assert shown(page) == 32, "a second click removes the filter"


def test_report_stage_button_lists_questions_that_lost_gold_at_that_stage(tab, results, tmp_path):
    kept, lost = rows_of(results / "leases" / "eval_results.jsonl")[:2]
    kept["gold_stages"] = [{"retrieved": {"rank": 1}, "lost_at": None}]
    lost |= {"gold_stages": [{"retrieved": {"rank": None}, "lost_at": "retrieved"}], "lost_at": "retrieved"}
    (tmp_path / "leases").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in (kept, lost))
    (tmp_path / "leases" / "eval_results.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "config.json").write_text('{"datasets": {"leases": {}}}', encoding="utf-8")
    page = tab.open(write_report(tmp_path).as_uri(), COMPLAINTS)
    assert page.locator(".funnel .lost-here b").inner_text() == "1"
    page.click(".funnel [data-pick='retrieved']")
    assert shown(page) == 1 and page.evaluate("keyOf(lines[indexAt(0)])") == f"leases/{lost['id']}"


def test_report_address_stores_filters_and_search(page, tab):
    narrow(page, dataset="leases", outcome="wrong")
    page.fill("#search", "who pays")
    words, count = page.evaluate("location.hash"), shown(page)
    assert words == "#?q=who+pays&outcome=wrong&dataset=leases"
    other = tab.open(page.evaluate("location.href"), COMPLAINTS)
    other.wait_for_function("() => byId('count').textContent.includes(' of ')")
    assert shown(other) == count and other.input_value("#search") == "who pays"
    assert other.evaluate("selects[0].selectedOptions[0].textContent").startswith("wrong")


def test_report_can_be_operated_with_only_the_keyboard(page):
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    assert page.evaluate("[active, current, document.activeElement.id]") == [1, -1, "lines"]
    assert page.locator("#lines").get_attribute("aria-activedescendant") == "line-1"
    page.keyboard.press("Enter")
    page.wait_for_selector("article.case")
    assert page.evaluate("document.activeElement.id") == "case-title"
    second = page.locator("article.case").get_attribute("data-key")
    page.keyboard.press("j")
    page.wait_for_function("key => document.querySelector('article.case')?.dataset.key !== key", arg=second)
    assert page.evaluate("current") == 2, "the key opens the next case"
    page.keyboard.press("Escape")
    assert page.locator("article.case").count() == 0 and page.evaluate("location.hash") == ""
    page.keyboard.press("End")
    assert page.evaluate("active") == 31
    page.keyboard.press("/")
    page.keyboard.type("jk")
    assert page.input_value("#search") == "jk"
    page.keyboard.press("Escape")
    assert page.input_value("#search") == "" and shown(page) == 32
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible() and "next and previous" in page.locator("#help").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()


def test_report_address_stores_open_case_and_opens_same_case_in_new_tab(page, tab):
    key = open_first(page, outcome="wrong", dataset="leases")
    address = page.evaluate("location.href")
    assert address.endswith(f"#{key}?outcome=wrong&dataset=leases")
    other = tab.open(address, COMPLAINTS)
    other.wait_for_selector(f"article.case[data-key='{key}']")
    assert other.locator(".line[aria-selected='true']").count() == 1 and shown(other) < 32


def test_report_link_to_filtered_out_case_clears_filter(page, rows):
    key = f"cuad/{rows[5][1]['id']}"
    narrow(page, dataset="leases")
    page.evaluate("key => { location.hash = key }", key)
    page.wait_for_selector(f"article.case[data-key='{key}']")
    assert shown(page) == 32
    page.evaluate("location.hash = 'cuad/no such'")
    assert page.locator("article.case").get_attribute("data-key") == key


def test_report_marks_all_pieces_of_passage_and_words_that_the_system_added(results, browser, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(results, run, ignore=shutil.ignore_patterns("report*"))
    path = run / "cuad" / "eval_results.jsonl"
    lines = rows_of(path)
    # gold whose ends are far apart
    row = next(row for row in lines if row["gold"] and row["gold"][0]["places"] and len(row["gold"][0]["text"]) > 200)
    gold = row["gold"][0]
    start, end = gold["places"][0][0]
    # the system returns the two ends of the gold below a summary of its own
    words, summary = [gold["text"][:20], gold["text"][-20:]], "A summary that it wrote. "
    passage = {"filename": gold["filename"], "span": [start, start + 20], "more": [[end - 20, end]], "score": 0.5}
    passage |= {"page": gold["pages"][0], "text": summary + " ".join(words), "added": [[0, len(summary)]]}
    row["reply"] |= {"passages": [passage], "error": "", "answer": row["truth"], "citations": []}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write_report(run)
    page = Tab(browser).open((run / "report.html").as_uri(), [])
    page.evaluate("key => { location.hash = key }", f"cuad/{row['id']}")
    item = page.locator("article.case .passages li[data-n='1']")
    item.wait_for()
    assert item.locator("mark.added").inner_text() == summary and "in 2 pieces" in item.inner_text()
    assert "has words that no document contains" in item.inner_text()
    assert page.locator("figure.page rect.hit").count() >= 2, "both spans of the passage are marked"


def test_report_case_draws_gold_and_retrieved_boxes_on_pages(page):
    open_first(page, outcome="not judged", dataset="cuad")
    detail = page.locator("article.case")
    assert "Passage 1 is the first to touch the gold." in detail.locator(".why").inner_text()
    for kind in ("both", "hit", "gold"):
        assert detail.locator(f"rect.mark.{kind}").count() > 0, kind
    source = detail.locator(".page image").first.get_attribute("href")
    size = page.evaluate("s => { const i = new Image(); i.src = s; return i.decode().then(() => i.width); }", source)
    assert size == 830 and source.startswith("report_files/pages/")
    titles = " ".join(detail.locator("h4, summary").all_inner_texts())
    for words in ("What the system answered", "The expected answer", "On the page", "Gold", "retrieved", "Scores"):
        assert words in titles
    assert "proposed by a program" in detail.locator(".legend").inner_text()


def test_report_case_with_wrong_document_shows_gold_and_retrieved_pages(page):
    open_first(page, outcome="wrong", dataset="cuad")
    captions = page.locator("article .page figcaption").all_inner_texts()
    assert any("· gold" in caption for caption in captions)
    assert any("passage" in caption and "gold" not in caption for caption in captions)


def test_report_citation_highlights_boxes_of_its_passage(page):
    open_first(page, outcome="not judged", dataset="cuad")
    detail = page.locator("article.case")
    detail.locator("button.cite[data-cite='2']").click()
    lit = detail.locator("rect.mark.lit")
    assert lit.count() > 0
    assert all("2" in numbers.split() for numbers in lit.evaluate_all("all => all.map(e => e.dataset.n)"))
    top, bottom = lit.first.evaluate("e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]")
    assert top >= 0 and bottom <= 900


def test_report_case_marks_gold_in_text_when_document_has_no_pages(page):
    open_first(page, outcome="right", dataset="leases")
    excerpt = page.locator("article.case .excerpt")
    assert excerpt.locator("mark.both").first.inner_text() == "The landlord shall pay for the paint."
    assert excerpt.locator("mark.hit").count() > 0


def test_report_case_of_failed_question_shows_error_without_scores(page):
    open_first(page, outcome="failed")
    detail = page.locator("article.case")
    assert detail.locator(".error").inner_text() == "the server closed the connection"
    assert detail.locator(".scores").count() == 0


def test_report_case_shows_scores_with_explanation(page, rows):
    key = open_first(page, outcome="right", dataset="cuad")
    row = next(row for name, row in rows if f"{name}/{row['id']}" == key)
    page.click("details.scores summary")
    line = page.locator("details.scores tr", has_text="Gold text retrieved first 8")
    assert f"{100 * row['scores']['char_recall@8']:.1f}" in line.inner_text()
    assert line.locator("td.words").inner_text()


def test_report_runs_no_script_from_documents_or_answers(page):
    for outcome in ("right", "wrong", "wrongly refused"):
        open_first(page, outcome=outcome, dataset="leases")
        text = page.locator("article.case").inner_text()
        assert "<img src=x onerror" in text and "</script><script>" in text and "{{ 7*7 }}" in text
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0 and page.locator("body script:not([type])").count() == 1
    # even if a script were in the page, its policy would not run it
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy and "unsafe" not in policy


def test_report_address_opens_case_whose_id_has_special_characters(tab, results, tmp_path):
    lines = (results / "leases" / "eval_results.jsonl").read_text(encoding="utf-8").split("\n")
    row = json.loads(lines[0]) | {"id": 'ä #1/2% "x"'}
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / "eval_results.jsonl").write_text(f"{json.dumps(row)}\n{lines[1]}\n", encoding="utf-8")
    (tmp_path / "config.json").write_text('{"datasets": {"leases": {}}}', encoding="utf-8")
    complaints: list[str] = []
    page = tab.open(write_report(tmp_path).as_uri(), complaints)
    page.evaluate("openCase(keyOf(lines[0]).includes('#') ? 0 : 1)")
    page.wait_for_selector("article.case")
    address = page.evaluate("location.href")
    page = tab.open(address, complaints)
    page.wait_for_selector("article.case")
    assert page.locator("article.case").get_attribute("data-key") == 'leases/ä #1/2% "x"'
    assert complaints == []


def test_report_names_missing_data_file(tab, results, tmp_path):
    shutil.copy(results / "report.html", tmp_path / "report.html")
    page = tab.open((tmp_path / "report.html").as_uri(), [])
    page.locator(".line").first.click()
    page.wait_for_selector("#case .error")
    assert (
        page.locator("#case .error")
        .inner_text()
        .endswith("report_files/c0.js is missing: keep the folder beside the page")
    )


def test_report_works_from_static_server(tab, results, rows):
    complaints: list[str] = []
    key = f"cuad/{rows[5][1]['id']}"
    with served(results) as address:
        page = tab.open(f"{address}/report.html#{key}", complaints)
        page.wait_for_selector(f"article.case[data-key='{key}']")
        narrow(page, outcome="not judged", dataset="cuad")
        page.locator(".line").first.click()
        page.wait_for_selector("rect.mark.both")
        assert page.evaluate("document.querySelector('.page image').getBBox().width") > 400
        assert complaints == []


@pytest.mark.parametrize("width", [400, *(pytest.param(width, marks=pytest.mark.slow) for width in (1000, 1600))])
def test_report_page_fits_screen_width(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for outcome, dataset in (("not judged", "cuad"), ("right", "leases")):
        page.evaluate("toList()")
        open_first(page, outcome=outcome, dataset=dataset)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_report_shows_either_list_or_case_on_narrow_screen(page):
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("byId('list').scrollIntoView()")
    open_first(page, outcome="wrong", dataset="cuad")
    assert page.locator("#lines").is_hidden() and page.locator("article.case").is_visible()
    page.click("text=Back to the list")
    assert page.locator("#lines").is_visible() and page.locator("article.case").is_hidden()


def test_write_report_gives_identical_files_for_same_results(results, bundles):
    def bytes_of() -> dict[str, bytes]:
        files = [results / "report.html", *(results / "report_files").rglob("*")]
        return {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}

    before = bytes_of()
    write_report(results, datasets=bundles)
    assert bytes_of() == before
    assert not list(results.glob("*.partial"))
    assert block_of(results / "report.html", "meta")["total"] == 32


@given(st.text())
def test_as_json_round_trips_text_and_escapes_script_delimiters(text):
    written = as_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert not set(written) & set("<>&\u2028\u2029")


def test_as_json_replaces_lone_surrogate():
    assert json.loads(as_json(["\ud83d"])) == ["?"]


def test_explain_outcome_shows_error_of_failed_question():
    fields = {"id": 1, "question": "q", "truth": "t", "outcome": "failed", "reply": {"error": "timed out"}}
    assert explain_outcome(RunQuestion.model_validate(fields, strict=False))[1:] == ["The error:", "timed out"]
