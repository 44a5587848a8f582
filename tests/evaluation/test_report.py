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

from exhibit.evaluation.report import write_report
from exhibit.evaluation.report.run import Rows, settings
from exhibit.evaluation.report.shell import as_json
from exhibit.evaluation.report.wording import VERDICTS, explain
from tests.evaluation.report_data import (
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
    return list(Rows(results, ["cuad", "leases"]).scan())


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
    """The report on a wide screen as it opens; whatever it complains of, or asks of the world, fails the test."""
    once.set_viewport_size({"width": 1400, "height": 900})
    once.emulate_media(media="screen", color_scheme="light")
    once.evaluate("clearFilters(); closeCase(); document.activeElement.blur(); scrollTo(0, 0)")
    yield once
    assert COMPLAINTS == []


# ---------------------------------------------------------------- the top


def test_the_top_says_what_was_run_and_how_it_went(page):
    assert page.locator("h1").inner_text() == "first"
    assert "32 questions over 2 datasets (cuad, leases)" in page.locator(".lead").inner_text()
    assert "hashing" in page.locator(".facts").inner_text()
    assert page.locator(".plot svg[role=img]").count() == 4
    assert page.locator(".plot polygon.band").count() >= 1


def test_the_table_has_the_numbers_of_summary_json(page, results):
    summary = json.loads((results / "cuad" / "summary.json").read_text(encoding="utf-8"))["char_recall@8"]
    row = page.locator("tr", has=page.locator("th[title^='char_recall@8:']")).first
    cell = row.locator("td").nth(1).inner_text()
    assert f"{100 * summary['mean']:.1f}" in cell and f"n {summary['n']}" in cell


def test_a_secret_in_the_config_is_not_shown(results):
    text = (results / "report.html").read_text(encoding="utf-8")
    assert "sk-never-shown" not in text and "dataset_paths" in text
    assert dict(settings({"llm": {"api_key": "x", "max_tokens": 9}, "token": "y"})) == {"llm.max_tokens": "9"}


def test_the_words_that_a_stranger_does_not_know_are_explained(page):
    words = page.locator("dl.words dt").all_inner_texts()
    assert {"Gold", "Passage", "95% interval", "Verdict"} <= set(words)
    assert all(page.locator("dl.words dd").nth(n).inner_text() for n in range(len(words)))


# ---------------------------------------------------------------- the list


def test_failures_come_first_and_every_question_is_listed(page, rows):
    assert shown(page) == len(rows) == 32
    verdicts = page.evaluate("lines.map(line => facetOf(line, 1))")
    order = [list(VERDICTS).index(verdict) for verdict in verdicts]
    assert order == sorted(order) and len(set(order)) > 3 and verdicts[-1] == "answered"


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


def test_a_verdict_in_the_summary_lists_its_questions(page, rows):
    page.click("[data-pick='wrong document']")
    assert shown(page) == sum(row["verdict"] == "wrong document" for _, row in rows) > 0


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
    assert address.endswith(f"#{key}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_function("() => byId('copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == address
    other = tab.open(address, COMPLAINTS)
    other.wait_for_selector(f"article.case[data-key='{key}']")
    place = other.evaluate("current")
    assert other.locator(f".line[aria-posinset='{place + 1}']").get_attribute("aria-selected") == "true"


def test_a_link_to_what_the_filter_hides_clears_it(page, rows):
    key = f"cuad/{rows[5][1]['id']}"
    narrow(page, dataset="leases")
    page.evaluate("key => { location.hash = key }", key)
    page.wait_for_selector(f"article.case[data-key='{key}']")
    assert shown(page) == 32
    page.evaluate("location.hash = 'cuad/no such'")
    assert page.locator("article.case").get_attribute("data-key") == key


def test_next_and_previous_stay_within_what_is_shown(page):
    first = open_first(page, verdict="answered", dataset="leases")
    assert page.locator(".steps button", has_text="Previous").is_disabled()
    page.click(".steps button:has-text('Next')")
    page.wait_for_function("key => document.querySelector('article.case')?.dataset.key !== key", arg=first)
    assert page.locator("article.case").get_attribute("data-key").startswith("leases/")
    assert "Answered" in page.locator(".case-head .chip").inner_text()


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
    open_first(page, verdict="retrieved but not used", dataset="cuad")
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
    assert "marked by the benchmark's experts" in detail.locator(".legend").inner_text()


def test_both_is_drawn_where_gold_and_a_passage_meet(page):
    open_first(page, verdict="retrieved but not used", dataset="cuad")
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
    open_first(page, verdict="retrieved but not used", dataset="cuad")
    detail = page.locator("article.case")
    detail.locator("button.cite[data-cite='2']").click()
    lit = detail.locator("rect.mark.lit")
    assert lit.count() > 0
    assert all("2" in numbers.split() for numbers in lit.evaluate_all("all => all.map(e => e.dataset.n)"))
    top, bottom = lit.first.evaluate("e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]")
    assert top >= 0 and bottom <= 900


def test_a_year_in_brackets_is_no_citation(page):
    narrow(page, verdict="answered", dataset="cuad")
    page.fill("#search", "EWCA")
    page.locator(".line").first.click()
    page.wait_for_selector("article.case")
    answer = page.locator("article.case .answers .prose").first
    assert answer.locator("button").all_inner_texts() == ["[1]", "[2]"] and "[2024] EWCA" in answer.inner_text()


def test_a_document_without_pages_is_marked_in_its_text(page):
    open_first(page, verdict="answered", dataset="leases")
    excerpt = page.locator("article.case .excerpt")
    assert excerpt.locator("mark.both").first.inner_text() == "The landlord shall pay for the paint."
    assert excerpt.locator("mark.hit").count() > 0


def test_a_failed_question_shows_its_error_and_no_score(page):
    open_first(page, verdict="failed")
    detail = page.locator("article.case")
    assert detail.locator(".error").inner_text() == "the server closed the connection"
    assert detail.locator(".scores").count() == 0


def test_scores_are_given_with_their_meaning(page, rows):
    key = open_first(page, verdict="answered", dataset="cuad")
    row = next(row for name, row in rows if f"{name}/{row['id']}" == key)
    page.click("details.scores summary")
    line = page.locator("details.scores tr", has_text="Gold text retrieved first 8")
    assert f"{100 * row['scores']['char_recall@8']:.1f}" in line.inner_text()
    assert line.locator("td.words").inner_text()


def test_nothing_from_a_document_or_a_model_can_run(page):
    for verdict in ("answered", "wrong document", "right document, wrong passage"):
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
        narrow(page, verdict="retrieved but not used", dataset="cuad")
        page.locator(".line").first.click()
        page.wait_for_selector("rect.mark.both")
        assert page.evaluate("document.querySelector('.page image').getBBox().width") > 400
        assert complaints == []


def test_a_single_file_has_everything_that_fits_and_says_what_does_not(tab, results, bundles, tmp_path, monkeypatch):
    folder = make_results(tmp_path / "single", bundles, limit=60)
    write_report(folder, datasets=bundles, single_file=True)
    assert not (folder / "report_files").exists()
    text = (folder / "report.html").read_text(encoding="utf-8")
    sizes = dict(re.findall(r'id="(piece-[a-z0-9]+)">([^<]*)<', text))
    room = sum(len(sizes[f"piece-{name}"]) for name in ("k0", "i0", "c0")) + 10
    moved = tmp_path / "alone.html"
    (folder / "report.html").rename(moved)
    complaints: list[str] = []
    page = tab.open(moved.as_uri(), complaints)
    open_first(page, verdict="retrieved but not used", dataset="cuad")
    assert page.locator("rect.mark.both").count() > 0
    assert page.locator(".page image").first.get_attribute("href").startswith("data:image/")

    monkeypatch.setattr("exhibit.evaluation.report.write.SINGLE_BUDGET", room)
    write_report(folder, datasets=bundles, single_file=True)
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


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for verdict, dataset in (("retrieved but not used", "cuad"), ("answered", "leases")):
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
    open_first(page, verdict="retrieved but not used", dataset="cuad")
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


def test_every_verdict_is_explained_with_the_ranks_that_show_it():
    gold = [{"filename": "a.pdf", "text": "x", "places": [[[10, 20]], [[90, 99]]], "pages": [1], "how": "exact"}]
    far, near = {"filename": "a.pdf", "span": [30, 40]}, {"filename": "a.pdf", "span": [95, 120]}
    other = {"filename": "b.pdf", "span": [10, 20]}

    def why(verdict: str, *passages: dict, selected: int | None = None, impossible: bool = False) -> str:
        reply = {"answer": "x", "passages": list(passages), "selected": selected, "error": "timed out"}
        return explain({"verdict": verdict, "reply": reply, "gold": gold, "is_impossible": impossible})

    assert why("wrong document", other, other).endswith("None of the 2 passages retrieved is from it.")
    assert "Passage 2 is the first from the right document" in why("right document, wrong passage", other, far)
    late = why("right document, wrong passage", other, far, near, selected=2)
    assert late.endswith("Passage 3 is the first to touch the gold, but only 2 were read.")
    assert why("failed").endswith("The error: timed out")
    assert "rightly" in why("answered", other, impossible=True)
    gold = [{"filename": "a.pdf", "text": None, "places": []}]
    assert "names no words" in why("answered", other, far)
    gold = []
    assert "nothing tells" in why("answered", other)
    gold = [{"filename": "a.pdf", "places": [[[90, 99]]]}]
    assert all(why(verdict, near).startswith(VERDICTS[verdict]) for verdict in VERDICTS)
