"""The report: opened in a real Chromium from a file, read, filtered, walked, and attacked."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page

from exhibit.evaluation.runs import RunResults
from exhibit.schemas.run import RunQuestion
from exhibit.viewer import write_report
from exhibit.viewer.listing import as_json
from exhibit.viewer.matching import OUTCOMES, explain_outcome, find_outcome
from tests.rag.bundles import rows_of
from tests.viewer.report_data import (
    Tab,
    block_of,
    make_results,
    narrow,
    open_first,
    pick,
    served,
    shown,
)

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
def once(browser, results) -> Page:
    """The report, opened once: all tests read the same page."""
    return Tab(browser).open((results / "report.html").as_uri(), COMPLAINTS)


@pytest.fixture(scope="module")
def tab(browser) -> Tab:
    """Another tab, for whatever else is opened."""
    return Tab(browser)


@pytest.fixture
def page(once) -> Iterator[Page]:
    """The report in its initial state on a wide screen; console errors and external requests fail the test."""
    once.set_viewport_size({"width": 1400, "height": 900})
    once.emulate_media(media="screen", color_scheme="light")
    once.evaluate("sort.value = ''; closeCase(); clearFilters(); document.activeElement.blur(); scrollTo(0, 0)")
    yield once
    assert COMPLAINTS == []


# ---------------------------------------------------------------- the top


def test_the_first_screen_says_what_was_tested_when_and_what_came_of_it(page, results):
    assert page.locator("h1").inner_text() == "first"
    lead = page.locator(".lead").first.inner_text()
    assert "The built-in pipeline, preset sac, was asked 32 questions of cuad and leases on " in lead and "UTC" in lead
    rows = [row for row in RunResults(results).rows if not row.reply.error and not row.is_impossible]
    right = sum(row.scores["answered_rightly"] == 1 for row in rows)
    headline = page.locator(".headline").inner_text()
    assert headline.startswith(
        f"Answered rightly: {right} of {len(rows)} judged answers, {100 * right / len(rows):.1f}%"
    )
    assert "%; 95% interval " in headline
    tiles = page.locator(".tiles li").all_inner_texts()
    assert [tile.split("\n")[1].strip() for tile in tiles] == [
        "answered rightly", "gold passage found", "wrongly refused", "rightly refused", "failed",
    ]  # fmt: skip
    assert page.locator(".looks li").count() == 3
    bottom = page.locator(".looks").evaluate("e => e.getBoundingClientRect().bottom")
    assert bottom < 1000, "what matters most is on the first screen"
    assert page.locator(".plot svg[role=img]").count() == 4 and page.locator(".plot polygon.band").count() >= 1


def test_the_counts_in_words_are_those_of_the_rows(page, rows):
    told = {}
    for tile in page.locator(".tiles li").all_inner_texts():
        _, words, of = (part.strip() for part in tile.split("\n"))
        told[words] = of
    answered = [row for _, row in rows if not row["reply"]["error"]]
    found = [row["scores"]["recall@10"] for row in answered if row["scores"]["recall@10"] is not None]
    assert told["gold passage found"] == f"{sum(map(bool, found))} of {len(found)} questions with located gold"
    possible = [row for row in answered if not row["is_impossible"]]
    refused = [
        row["scores"]["false_refusal_rate"] for row in possible if row["scores"]["false_refusal_rate"] is not None
    ]
    assert told["wrongly refused"] == f"{sum(map(bool, refused))} of {len(refused)} questions that the documents answer"
    right = sum(row["verdict"] == "answered" for row in possible)
    assert told["answered rightly"] == f"{right} of {len(possible)} judged answers"


def test_a_question_worth_looking_at_is_one_click_away(page):
    look = page.locator(".looks a").first
    words = look.locator("q").inner_text()[:60]
    look.click()
    page.wait_for_selector("article.case")
    assert page.locator("#case-title").inner_text().startswith(words)


def test_the_figures_are_in_groups_of_which_the_first_is_open(page):
    groups = page.locator("details.figures")
    assert groups.count() >= 3 and [one.get_attribute("open") is not None for one in groups.all()][:2] == [True, False]
    assert groups.first.locator("> summary").inner_text().startswith("Retrieval")


def test_a_click_on_the_head_of_a_column_sorts_the_table(page):
    table = page.locator("details.figures[open] table").first
    head = table.locator("thead th").nth(1)

    def values() -> list[float]:
        words = table.locator("tbody tr td:nth-child(2) b").all_inner_texts()
        return [float(one.replace(",", "")) for one in words if one != "–"]

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending" and values() == sorted(values(), reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and values() == sorted(values())


def test_the_table_has_the_numbers_of_summary_json(page, results):
    summary = json.loads((results / "cuad" / "summary.json").read_text(encoding="utf-8"))["char_recall@8"]
    row = page.locator("tr", has=page.locator("th[title^='char_recall@8:']")).first
    cell = row.locator("td").nth(1).inner_text()
    assert f"{100 * summary['mean']:.1f}" in cell and f"n {summary['n']}" in cell


def test_a_secret_in_the_config_is_not_shown(results):
    text = (results / "report.html").read_text(encoding="utf-8")
    assert "sk-never-shown" not in text and "dataset_paths" in text


def test_the_words_that_a_stranger_does_not_know_are_explained(page):
    words = page.locator("dl.words dt").all_inner_texts()
    assert {"Gold", "Passage", "95% interval, SD", "Wrongly refused"} <= set(words)
    assert all(page.locator("dl.words dd").nth(n).inner_text() for n in range(len(words)))


# ---------------------------------------------------------------- the list


def test_failures_come_first_and_every_question_is_listed(page, rows):
    assert shown(page) == len(rows) == 32
    verdicts = page.evaluate("lines.map(line => facetOf(line, MAIN))")
    order = [list(OUTCOMES).index(verdict) for verdict in verdicts]
    assert order == sorted(order) and len(set(order)) > 3 and verdicts[-1] == "answered rightly"


def test_only_the_lines_in_sight_are_drawn(page):
    heights = page.evaluate("[list.firstElementChild.offsetHeight, rowHeight(), list.clientHeight]")
    assert heights[0] == 32 * heights[1] > heights[2]
    assert page.locator(".line").count() < 32
    page.evaluate("list.scrollTop = list.scrollHeight")
    page.wait_for_selector(".line[aria-posinset='32']")
    assert page.locator(".line[aria-posinset='1']").count() == 0


def test_filters_narrow_the_list_and_say_so(page, rows):
    narrow(page, dataset="leases")
    assert page.locator("#count").inner_text() == "8 of 32 questions" and page.locator(".line").count() == 8
    page.select_option("#label", label="parity")
    page.select_option("#value", label="1 (4)")
    assert shown(page) == 4
    pick(page, "verdict", "wrong document")
    expected = [r for name, r in rows if name == "leases" and r["labels"]["parity"] == 1]
    assert shown(page) == sum(r["verdict"] == "wrong document" for r in expected) > 0
    page.click("#clear")
    assert shown(page) == 32 and page.locator("#clear").is_hidden()


def test_an_error_is_found_by_its_kind_and_by_its_words(page, rows):
    failed = sum(bool(row["reply"]["error"]) for _, row in rows)
    narrow(page, error="the server closed the connection")
    assert shown(page) == failed > 0
    page.evaluate("clearFilters()")
    page.fill("#search", "connection CLOSED")
    assert shown(page) == failed


def test_search_finds_words_of_the_question_in_any_order(page, rows):
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


def test_a_verdict_in_the_summary_lists_its_questions(page, rows):
    page.click("[data-pick='wrong document']")
    assert shown(page) == sum(row["verdict"] == "wrong document" for _, row in rows) > 0
    assert page.locator("[data-pick='wrong document']").get_attribute("aria-pressed") == "true"
    page.evaluate("scrollTo(0, 0)")
    page.click("[data-pick='wrong document']")
    assert shown(page) == 32, "a second click takes it back"


def test_counts_follow_the_filter(page, rows):
    narrow(page, dataset="leases")
    wanted = sum(name == "leases" and row["verdict"] == "wrong document" for name, row in rows)
    assert page.locator("[data-pick='wrong document'] b").inner_text() == str(wanted)
    assert f"wrong document ({wanted})" in page.locator("#facet-verdict").inner_text()
    assert "cuad (24)" in page.locator("#facet-dataset").inner_text(), "of a facet, what would be if it alone changed"


def test_what_the_list_is_narrowed_and_sorted_by_is_in_the_address(page, tab):
    narrow(page, dataset="leases", verdict="wrong document")
    page.fill("#search", "who pays")
    page.select_option("#sort", "least")
    words, count = page.evaluate("location.hash"), shown(page)
    assert words == "#?q=who+pays&verdict=wrong+document&dataset=leases&sort=least"
    other = tab.open(page.evaluate("location.href"), COMPLAINTS)
    other.wait_for_function("() => byId('count').textContent.includes(' of ')")
    assert shown(other) == count and other.input_value("#search") == "who pays"
    assert other.evaluate("selects[0].selectedOptions[0].textContent").startswith("wrong document")


def test_the_list_is_sorted(page):
    page.select_option("#sort", "least")
    found = page.evaluate("Array.from({length: shownCount()}, (_, place) => lines[indexAt(place)][FOUND] ?? 2)")
    assert found == sorted(found) and len(set(found)) > 2
    page.select_option("#sort", "question")
    asked = page.evaluate("Array.from({length: shownCount()}, (_, place) => lines[indexAt(place)][FIELD.question])")
    assert asked[0].startswith("Consider") and asked[-1].startswith("Who pays")
    page.select_option("#sort", "")


def test_an_enlarged_page_fills_the_window(page):
    open_first(page, verdict="right passage not used", dataset="cuad")
    page.locator(".page button").first.click()
    box = page.locator(".page.large").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1400, 900)
    page.keyboard.press("Escape")
    assert page.locator(".page.large").count() == 0 and page.locator("article.case").count() == 1


def test_a_keyboard_is_enough(page):
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
    assert page.evaluate("current") == 2, "with a case open, the next one opens"
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
    assert page.locator("#help").is_visible() and "copy the link" in page.locator("#help").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()


def test_the_address_follows_the_case_and_leads_to_it(page, tab):
    key = open_first(page, verdict="wrong document", dataset="leases")
    address = page.evaluate("location.href")
    assert address.endswith(f"#{key}?verdict=wrong+document&dataset=leases")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_function("() => byId('copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == address
    other = tab.open(address, COMPLAINTS)
    other.wait_for_selector(f"article.case[data-key='{key}']")
    assert other.locator(".line[aria-selected='true']").count() == 1 and shown(other) < 32


def test_a_link_to_what_the_filter_hides_clears_it(page, rows):
    key = f"cuad/{rows[5][1]['id']}"
    narrow(page, dataset="leases")
    page.evaluate("key => { location.hash = key }", key)
    page.wait_for_selector(f"article.case[data-key='{key}']")
    assert shown(page) == 32
    page.evaluate("location.hash = 'cuad/no such'")
    assert page.locator("article.case").get_attribute("data-key") == key


def test_next_and_previous_stay_within_what_is_shown(page):
    first = open_first(page, verdict="answered rightly", dataset="leases")
    assert page.locator(".steps button", has_text="Previous").is_disabled()
    page.click(".steps button:has-text('Next')")
    page.wait_for_function("key => document.querySelector('article.case')?.dataset.key !== key", arg=first)
    assert page.locator("article.case").get_attribute("data-key").startswith("leases/")
    assert "Answered rightly" in page.locator(".case-head .chip").inner_text()


def test_all_pieces_of_a_passage_are_on_the_page_and_its_added_words_are_named(results, browser, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(results, run, ignore=shutil.ignore_patterns("report*"))
    path = run / "cuad" / "eval_results.jsonl"
    lines = rows_of(path)
    # gold of which the ends are far apart
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
    assert "has added words, which no document has" in item.inner_text()
    assert page.locator("figure.page rect.hit").count() >= 2, "both ends are marked, and nothing between them"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_is_shown_is_exported(page, rows, kind):
    narrow(page, dataset="leases", verdict="wrong document")
    with page.expect_download() as told:
        page.click(f"#export-{kind}")
    text = Path(told.value.path()).read_text(encoding="utf-8-sig")
    lines = text.split("\n")[:-1]
    found = list(csv.DictReader(io.StringIO(text))) if kind == "csv" else [json.loads(line) for line in lines]
    wanted = [row for name, row in rows if name == "leases" and row["verdict"] == "wrong document"]
    assert [str(one["id"]) for one in found] == [str(row["id"]) for row in wanted]
    assert [one["question"] for one in found] == [row["question"] for row in wanted]
    labels = found[0]["labels"] if kind == "jsonl" else json.loads(found[0]["labels"])
    assert labels["parity"] == str(wanted[0]["labels"]["parity"])


# ---------------------------------------------------------------- a case


def test_a_case_opens_to_its_pages_with_gold_and_retrieved_drawn_on_them(page):
    open_first(page, verdict="right passage not used", dataset="cuad")
    detail = page.locator("article.case")
    assert "Passage 1 is the first to touch the gold." in detail.locator(".why").inner_text()
    for kind in ("both", "hit", "gold"):
        assert detail.locator(f"rect.mark.{kind}").count() > 0, kind
    source = detail.locator(".page image").first.get_attribute("href")
    size = page.evaluate("s => { const i = new Image(); i.src = s; return i.decode().then(() => i.width); }", source)
    assert size == 830 and source.startswith("report_files/pages/")
    titles = " ".join(detail.locator("h4, summary").all_inner_texts())
    for words in (
        "What the system answered",
        "What an expert would answer",
        "On the page",
        "Gold",
        "retrieved",
        "Scores",
    ):
        assert words in titles
    assert "proposed by a program" in detail.locator(".legend").inner_text()


def test_both_is_drawn_where_gold_and_a_passage_meet(page):
    open_first(page, verdict="right passage not used", dataset="cuad")
    inside = page.evaluate("""() => [...document.querySelectorAll('rect.both')].every((rect) => {
      const box = (one) => ['x', 'y', 'width', 'height'].map((name) => Number(one.getAttribute(name)));
      const [x, y, w, h] = box(rect);
      const holds = ([a, b, c, d]) => a <= x + 2.1 && b <= y + h / 2 && a + c >= x + w - 2.1 && b + d >= y + h / 2;
      const near = (kind) => [...rect.parentNode.querySelectorAll(`rect.${kind}`)].some((other) => holds(box(other)));
      return near('gold') && near('hit');
    })""")
    assert inside


def test_a_wrong_document_shows_both_pages(page):
    open_first(page, verdict="wrong document", dataset="cuad")
    captions = page.locator("article .page figcaption").all_inner_texts()
    assert any("· gold" in caption for caption in captions)
    assert any("passage" in caption and "gold" not in caption for caption in captions)


def test_a_citation_leads_to_the_boxes_of_its_passage(page):
    open_first(page, verdict="right passage not used", dataset="cuad")
    detail = page.locator("article.case")
    detail.locator("button.cite[data-cite='2']").click()
    lit = detail.locator("rect.mark.lit")
    assert lit.count() > 0
    assert all("2" in numbers.split() for numbers in lit.evaluate_all("all => all.map(e => e.dataset.n)"))
    top, bottom = lit.first.evaluate("e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]")
    assert top >= 0 and bottom <= 900


def test_a_year_in_brackets_is_no_citation(page):
    narrow(page, verdict="answered rightly", dataset="cuad")
    page.fill("#search", "EWCA")
    page.locator(".line").first.click()
    page.wait_for_selector("article.case")
    answer = page.locator("article.case .answers .prose").first
    assert answer.locator("button").all_inner_texts() == ["[1]", "[2]"] and "[2024] EWCA" in answer.inner_text()


def test_a_document_without_pages_is_marked_in_its_text(page):
    open_first(page, verdict="answered rightly", dataset="leases")
    excerpt = page.locator("article.case .excerpt")
    assert excerpt.locator("mark.both").first.inner_text() == "The landlord shall pay for the paint."
    assert excerpt.locator("mark.hit").count() > 0


def test_a_failed_question_shows_its_error_and_no_score(page):
    open_first(page, verdict="failed")
    detail = page.locator("article.case")
    assert detail.locator(".error").inner_text() == "the server closed the connection"
    assert detail.locator(".scores").count() == 0


def test_scores_are_given_with_their_meaning(page, rows):
    key = open_first(page, verdict="answered rightly", dataset="cuad")
    row = next(row for name, row in rows if f"{name}/{row['id']}" == key)
    page.click("details.scores summary")
    line = page.locator("details.scores tr", has_text="Gold text retrieved first 8")
    assert f"{100 * row['scores']['char_recall@8']:.1f}" in line.inner_text()
    assert line.locator("td.words").inner_text()


def test_nothing_from_a_document_or_a_model_can_run(page):
    for verdict in ("answered rightly", "wrong document", "right document, wrong passage"):
        open_first(page, verdict=verdict, dataset="leases")
        text = page.locator("article.case").inner_text()
        assert "<img src=x onerror" in text and "</script><script>" in text and "{{ 7*7 }}" in text
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0 and page.locator("body script:not([type])").count() == 1
    # were anything to get through, the page would not let it run
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy and "unsafe" not in policy


def test_an_id_of_any_characters_has_an_address(tab, results, tmp_path):
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


def test_a_piece_that_is_gone_is_named(tab, results, tmp_path):
    shutil.copy(results / "report.html", tmp_path / "report.html")
    page = tab.open((tmp_path / "report.html").as_uri(), [])
    page.locator(".line").first.click()
    page.wait_for_selector("#case .error")
    assert (
        page.locator("#case .error")
        .inner_text()
        .endswith("report_files/c0.js is missing: keep the folder beside the page")
    )


# ---------------------------------------------------------------- elsewhere than on disk


def test_a_static_server_will_do(tab, results, rows):
    complaints: list[str] = []
    key = f"cuad/{rows[5][1]['id']}"
    with served(results) as address:
        page = tab.open(f"{address}/report.html#{key}", complaints)
        page.wait_for_selector(f"article.case[data-key='{key}']")
        narrow(page, verdict="right passage not used", dataset="cuad")
        page.locator(".line").first.click()
        page.wait_for_selector("rect.mark.both")
        assert page.evaluate("document.querySelector('.page image').getBBox().width") > 400
        assert complaints == []


def test_a_single_file_has_everything_that_fits_and_says_what_does_not(tab, results, bundles, tmp_path, monkeypatch):
    folder = make_results(tmp_path / "single", bundles, limit=60)
    write_report(folder, datasets=bundles, single_file=True, pages=20)
    assert not (folder / "report_files").exists()
    text = (folder / "report.html").read_text(encoding="utf-8")
    sizes = dict(re.findall(r'id="(piece-[a-z0-9]+)">([^<]*)<', text))
    room = sum(len(sizes[f"piece-{name}"]) for name in ("i0", "c0")) + 10
    moved = tmp_path / "alone.html"
    (folder / "report.html").rename(moved)
    complaints: list[str] = []
    page = tab.open(moved.as_uri(), complaints)
    open_first(page, verdict="right passage not used", dataset="cuad")
    assert page.locator("rect.mark.both").count() > 0
    assert page.locator(".page image").first.get_attribute("href").startswith("data:image/")

    monkeypatch.setattr("exhibit.viewer.page_output.SINGLE_BUDGET", room)
    write_report(folder, datasets=bundles, single_file=True, pages=20)
    page = tab.open((folder / "report.html").as_uri(), complaints)
    notes = " ".join(page.locator("#list > .note").all_inner_texts())
    assert "has room for the first 50 of 68 questions" in notes and "pictures of pages" in notes
    page.evaluate("openCase(67)")
    page.wait_for_selector("article.case")
    assert "no room for its passages" in page.locator("article.case").inner_text()
    page.evaluate("openCase(0)")
    page.wait_for_function("() => current === 0 && document.querySelector('article.case .passages')")
    assert complaints == []


# ---------------------------------------------------------------- how it looks


@pytest.mark.parametrize("width", [400, *(pytest.param(width, marks=pytest.mark.slow) for width in (1000, 1600))])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for verdict, dataset in (("right passage not used", "cuad"), ("answered rightly", "leases")):
        page.evaluate("toList()")
        open_first(page, verdict=verdict, dataset=dataset)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_telephone_list_and_case_take_turns(page):
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("byId('list').scrollIntoView()")
    open_first(page, verdict="wrong document", dataset="cuad")
    assert page.locator("#lines").is_hidden() and page.locator("article.case").is_visible()
    page.click("text=Back to the list")
    assert page.locator("#lines").is_visible() and page.locator("article.case").is_hidden()


def test_print_keeps_what_is_open_and_drops_the_controls(page):
    open_first(page, verdict="right passage not used", dataset="cuad")
    page.emulate_media(media="print", color_scheme="dark")
    for control in ("#filters", "#lines", "nav", ".steps"):
        assert page.locator(control).is_hidden(), control
    assert page.locator("article .page").first.is_visible() and page.locator("table").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


# ---------------------------------------------------------------- laws


def test_the_same_results_give_the_same_report(results, bundles):
    def bytes_of() -> dict[str, bytes]:
        files = [results / "report.html", *(results / "report_files").rglob("*")]
        return {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}

    before = bytes_of()
    write_report(results, datasets=bundles)
    assert bytes_of() == before
    assert not list(results.glob("*.partial"))
    assert block_of(results / "report.html", "meta")["total"] == 32


@given(st.text())
def test_json_in_a_script_says_the_same_and_ends_nothing(text):
    written = as_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert not set(written) & set("<>&\u2028\u2029")


def test_half_a_character_does_not_stop_the_report():
    assert json.loads(as_json(["\ud83d"])) == ["?"]


@pytest.mark.parametrize(
    ("verdict", "impossible", "scores", "name"),
    [
        ("answered", False, {"answer_correctness": 4.0}, "answered rightly"),
        ("answered", False, {"answer_correctness": 3.0, "answered_rightly": 1.0}, "answered rightly"),
        ("answered", False, {"answered_rightly": 0.5}, "right passage, another answer"),
        ("answered", False, {"answer_f1": 0.9}, "right passage used"),
        ("answered", True, {}, "rightly refused"),
        ("refused though answerable", False, {}, "wrongly refused"),
        ("figures that no passage has", False, {"answered_rightly": 1.0}, "invented figures"),
        ("a verdict of another version", False, {}, "cannot be judged"),
    ],
)
def test_what_became_of_a_question_is_said_in_words_a_lawyer_knows(verdict, impossible, scores, name):
    told = {"id": 1, "question": "q", "truth": "t", "is_impossible": impossible, "reply": {"error": ""}}
    row = RunQuestion.model_validate({**told, "scores": scores, "verdict": verdict, "evidence": "Passage 2 has it."})
    assert find_outcome(row) == name
    assert explain_outcome(row) == [OUTCOMES[name].meaning, "Passage 2 has it."]


def test_a_failure_is_explained_by_its_error():
    told = {"id": 1, "question": "q", "truth": "t", "verdict": "failed", "reply": {"error": "timed out"}}
    assert explain_outcome(RunQuestion.model_validate(told))[1:] == ["The error:", "timed out"]
