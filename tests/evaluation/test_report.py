"""The report: opened in a real Chromium from a file, read, filtered, walked, and attacked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, sync_playwright

from converters._browser import find_browser, launch_arguments
from converters._cli import main
from evaluation.report import write_report
from evaluation.report.pages import Gallery, page_marks
from evaluation.report.records import in_order
from evaluation.report.run import Run, read_run, settings
from evaluation.report.spans import Placed, marks, placed
from evaluation.report.wording import VERDICTS, explain
from evaluation.report.write import as_json
from evidence import Span, read_document
from evidence.readers.pdf import boxes
from schemas.errors import ToolkitError
from storage.bundle import open_bundle
from tests.evaluation.report_data import make_results

HOSTILE = "<img src=x onerror='window.pwned=1'></script><script>window.pwned=2</script>\u2028{{ 7*7 }}"
LAW = f"The tenant shall paint the fence each spring. {HOSTILE} The landlord shall pay for the paint.\n" * 9


@pytest.fixture(scope="module")
def bundles(samples, tmp_path_factory) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and one of text whose every field attacks the page."""
    root = tmp_path_factory.mktemp("bundles")
    flags = ["--source", str(samples / "cuad"), "--out", str(root / "cuad"), "--jobs", "1"]
    assert main(import_module("converters.cuad"), flags) == 0
    corpus = root / "leases" / "corpus"
    corpus.mkdir(parents=True)
    for name in ("first.txt", "second.txt"):
        (corpus / name).write_text(LAW, encoding="utf-8")
    quote = "The landlord shall pay for the paint."
    rows, lines = [], []
    for number in range(8):
        name = ("first.txt", "second.txt")[number // 4]
        contexts = [{"filename": name, "text": quote}]
        rows.append({"id": number, "question": f"Who pays? {HOSTILE}", "answer": HOSTILE, "contexts": contexts})
        spans = [[LAW.index(quote), LAW.index(quote) + len(quote)]]
        gold = {"id": number, "context": 0, "filename": name, "pages": [], "spans": spans, "alternatives": []}
        lines.append({**gold, "how": "exact", "score": 1.0, "labels": {"kind": HOSTILE, "parity": number % 2}})
    (root / "leases" / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    (root / "leases" / "gold.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return {"cuad": root / "cuad", "leases": root / "leases"}


@pytest.fixture(scope="module")
def results(bundles, tmp_path_factory) -> Path:
    """The results of a made-up run, with its report."""
    folder = make_results(tmp_path_factory.mktemp("results") / "first", bundles, limit=24)
    write_report(folder, datasets=bundles, cases=20)
    return folder


@pytest.fixture(scope="module")
def run(results, bundles) -> Run:
    return read_run(results, bundles)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_browser()), args=launch_arguments())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(browser, results) -> Page:
    """The report, opened once: all tests read the same page."""
    page = browser.new_page(reduced_motion="reduce")
    page.set_default_timeout(8000)
    page.on("console", lambda message: COMPLAINTS.append(message.text))
    page.on("pageerror", lambda error: COMPLAINTS.append(str(error)))
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or COMPLAINTS.append(request.url))
    page.goto((results / "report.html").as_uri())
    return page


@pytest.fixture
def page(opened) -> Iterator[Page]:
    """The report on a wide screen as it opens; whatever it complains of, or asks of the world, fails the test."""
    opened.set_viewport_size({"width": 1400, "height": 900})
    opened.emulate_media(media="screen", color_scheme="light")
    opened.evaluate("byId('filters').reset(); fillValues(); filter(); document.activeElement.blur(); scrollTo(0, 0)")
    yield opened
    assert COMPLAINTS == []


COMPLAINTS: list[str] = []


def open_one(page: Page, verdict: str, dataset: str = "cuad") -> None:
    page.select_option("#dataset", dataset)
    page.select_option("#verdict", verdict)
    page.locator("button.open", has_text="page" if dataset == "cuad" else "").first.click()


def data_of(results: Path, name: str = "data") -> dict:
    text = (results / "report.html").read_text(encoding="utf-8")
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


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


# ---------------------------------------------------------------- the list


def test_failures_come_first_and_every_question_is_listed(page):
    verdicts = page.locator("article .chip").all_inner_texts()
    assert len(verdicts) == 32
    failures = [verdict != "answered" for verdict in verdicts]
    assert failures == sorted(failures, reverse=True) and any(failures) and not all(failures)


def test_filters_narrow_the_list_and_say_so(page, run):
    page.select_option("#dataset", "leases")
    assert page.locator("article").count() == 8 and page.locator("#count").inner_text() == "8 of 32 questions"
    page.select_option("#label", "parity")
    page.select_option("#value", "1")
    assert page.locator("article").count() == 4
    page.select_option("#verdict", "wrong document")
    expected = [r for r in run.datasets[1].rows if r["labels"]["parity"] == 1 and r["verdict"] == "wrong document"]
    assert page.locator("article").count() == len(expected) > 0


def test_search_finds_words_of_the_question_in_any_order(page, run):
    question = run.datasets[0].rows[3]["question"]
    page.fill("#search", " ".join(reversed(question.upper().split())))
    assert page.locator("article .question").all_inner_texts() == [question]
    page.fill("#search", "no such words anywhere")
    assert page.locator("article").count() == 0


def test_a_verdict_in_the_summary_lists_its_questions(page, run):
    page.click("[data-pick='wrong document']")
    wrong = sum(row["verdict"] == "wrong document" for d in run.datasets for row in d.rows)
    assert page.locator("article").count() == wrong > 0


def test_a_keyboard_is_enough(page):
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    second = page.locator("article").nth(1)
    assert second.locator("button.open").evaluate("e => e === document.activeElement")
    page.keyboard.press("Enter")
    assert second.locator(".detail").is_visible()
    page.keyboard.press("Enter")
    assert not second.locator(".detail").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("jk")
    assert page.input_value("#search") == "jk"
    page.keyboard.press("Escape")
    assert page.input_value("#search") == "" and page.locator("article").count() == 32


def test_a_link_opens_its_question(page, results):
    key = page.locator("article").nth(5).get_attribute("data-key")
    page.goto(f"{(results / 'report.html').as_uri()}#{key}")
    page.locator(f"article[data-key='{key}'] .detail").wait_for()
    assert page.locator(f"article[data-key='{key}'] .detail").is_visible()


# ---------------------------------------------------------------- a case


def test_a_case_opens_to_its_pages_with_gold_and_retrieved_drawn_on_them(page):
    open_one(page, "retrieved but not used")
    detail = page.locator(".detail:visible")
    assert "Passage 1 is the first to touch the gold." in detail.locator(".why").inner_text()
    assert detail.locator("rect.mark.both").count() > 0 and detail.locator("rect.mark.hit").count() > 0
    source = detail.locator(".page image").first.get_attribute("href")
    size = page.evaluate("s => { const i = new Image(); i.src = s; return i.decode().then(() => i.width); }", source)
    assert size == 830
    words = [detail.locator("section", has_text=title).count() for title in ("Expected answer", "Scores", "Gold")]
    assert all(words)


def test_a_wrong_document_shows_both_pages(page):
    open_one(page, "wrong document")
    captions = page.locator(".detail:visible .page figcaption").all_inner_texts()
    assert any("· gold" in caption for caption in captions)
    assert any("passage" in caption and "gold" not in caption for caption in captions)


def test_a_citation_leads_to_the_boxes_of_its_passage(page):
    open_one(page, "retrieved but not used")
    detail = page.locator(".detail:visible")
    detail.locator("button.cite[data-cite='2']").click()
    lit = detail.locator("rect.mark.lit")
    assert lit.count() > 0
    assert all("2" in numbers.split() for numbers in lit.evaluate_all("all => all.map(e => e.dataset.n)"))
    top, bottom = lit.first.evaluate("e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]")
    assert top >= 0 and bottom <= 900


def test_a_year_in_brackets_is_no_citation(page):
    open_one(page, "answered")
    answer = page.locator(".detail:visible .answers .prose").first
    assert answer.locator("button").all_inner_texts() == ["[1]", "[2]"] and "[2024] EWCA" in answer.inner_text()


def test_a_document_without_pages_is_marked_in_its_text(page):
    open_one(page, "answered", "leases")
    excerpt = page.locator(".detail:visible .excerpt")
    assert excerpt.locator("mark.both").first.inner_text() == "The landlord shall pay for the paint."
    assert excerpt.locator("mark.hit").count() > 0


def test_nothing_from_a_document_or_a_model_can_run(page, browser, results):
    for verdict in ("answered", "wrong document", "right document, wrong passage"):
        open_one(page, verdict, "leases")
        shown = page.locator(".detail:visible").first.inner_text()
        assert "<img src=x onerror" in shown and "</script><script>" in shown and "{{ 7*7 }}" in shown
    page.wait_for_timeout(50)
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0 and page.locator("body script").count() == 3
    # were anything to get through, the page would not let it run
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy and "unsafe" not in policy


# ---------------------------------------------------------------- how it looks


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for verdict, dataset in (("retrieved but not used", "cuad"), ("answered", "leases")):
        open_one(page, verdict, dataset)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(page, scheme):
    page.emulate_media(color_scheme=scheme)
    open_one(page, "retrieved but not used")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(ground) < 0.1) == (scheme == "dark")
    for selector in (
        "p.lead",
        ".note",
        ".chip",
        ".meta",
        "summary",
        ".cite",
        ".source",
        ".why",
        "em.both",
        ".plot text",
    ):
        colour, under = page.locator(f"{selector}:visible").first.evaluate(GROUND)
        low, high = sorted((luminance(colour), luminance(under)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector


WORDS = (
    "p.lead",
    ".note",
    ".chip",
    ".meta",
    "summary",
    ".cite",
    ".source",
    ".why",
    "em.both",
    ".plot text",
    "td small",
)
GROUND = """element => {
  const colour = getComputedStyle(element)[element.closest('svg') ? 'fill' : 'color'];
  while (getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)') element = element.parentElement;
  return [colour, getComputedStyle(element).backgroundColor];
}"""


def luminance(colour: str) -> float:
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_print_keeps_what_is_open_and_drops_the_controls(page):
    open_one(page, "retrieved but not used")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("#filters").is_visible() and page.locator(".detail .page").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


# ---------------------------------------------------------------- pages and budgets


def test_the_boxes_are_those_of_the_words(run, bundles):
    row = next(r for r in run.datasets[0].rows if r["verdict"] == "answered" and not r["is_impossible"])
    filename = row["gold"][0]["filename"]
    document = read_document(open_bundle(bundles["cuad"]).files[filename])
    at = Placed(placed(row)[filename].gold, {})
    number = document.pages_of(at.gold[0])[0]
    drawn = page_marks(document, document.pages[number - 1], at)
    expected = [b for span in at.gold for b in boxes(document, span) if b.page == number]
    assert sorted(mark[:2] for mark in drawn) == sorted([round(b.left, 1), round(b.top, 1)] for b in expected)
    assert {mark[4] for mark in drawn} == {"gold"}


def test_a_page_is_kept_once_however_many_cases_show_it(results):
    shown = [p["page"] for case in data_of(results)["cases"] for p in case["detail"].get("pages", ())]
    pages = data_of(results, "pages")
    assert len(shown) > len(pages) == len(set(shown)) == len({(p["filename"], p["number"]) for p in pages.values()})


def test_only_the_cases_asked_for_have_pages_failures_of_all_datasets_first(run, results, bundles, tmp_path):
    _, drawn = in_order(run, cases=6)
    verdicts = [row["verdict"] for d in run.datasets for row in d.rows if (d.name, row["id"]) in drawn]
    assert len(drawn) == 6 and "answered" not in verdicts and {name for name, _ in drawn} == {"cuad", "leases"}
    assert len(set(verdicts)) > 2
    assert in_order(run, cases=0)[1] == set()


def test_a_full_gallery_takes_no_more(bundles):
    path = next(p for p in open_bundle(bundles["cuad"]).files.values())
    document = read_document(path)
    one = Gallery()
    assert one.add(document, document.pages[0]) == "p1" == one.add(document, document.pages[0])
    size = len(one.pages["p1"]["src"])
    small = Gallery(budget=size)
    assert small.add(document, document.pages[0]) == "p1"
    assert small.add(document, document.pages[1]) is None and list(small.pages) == ["p1"]


def test_the_same_results_give_the_same_report(results, bundles):
    before = (results / "report.html").read_bytes()
    write_report(results, datasets=bundles, cases=20)
    assert (results / "report.html").read_bytes() == before
    assert len(before) < 3_000_000 and not (results / "report.html.partial").exists()


def test_a_failed_question_has_no_score_even_where_minus_one_was_written(results, bundles, tmp_path):
    row = json.loads((results / "leases" / "eval_results.jsonl").read_text(encoding="utf-8").split("\n")[-2])
    assert row["verdict"] == "failed"
    row["scores"] = dict.fromkeys(row["scores"], -1)
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / "eval_results.jsonl").write_text(json.dumps(row), encoding="utf-8")
    write_report(tmp_path, datasets={"leases": bundles["leases"]})
    case = data_of(tmp_path)["cases"][0]
    assert case["recall"] is None and case["detail"]["scores"] == {}


def test_missing_results_are_all_named(tmp_path):
    with pytest.raises(ToolkitError) as caught:
        write_report(tmp_path, datasets={"cuad": tmp_path, "maud": tmp_path})
    assert "cuad" in str(caught.value) and "maud" in str(caught.value)


# ---------------------------------------------------------------- laws


def spans(most: int = 60):
    return st.tuples(st.integers(0, most), st.integers(1, most)).map(lambda pair: Span(pair[0], pair[0] + pair[1]))


@given(st.lists(spans(), max_size=4), st.lists(spans(), max_size=4), spans())
def test_marks_say_of_every_character_what_it_is(gold, retrieved, window):
    found = marks(Placed(gold, dict(enumerate(retrieved, 1))), window)
    said = {at: (mark.gold, mark.passages) for mark in found for at in range(*mark.span)}
    for at in range(*window):
        numbers = tuple(n for n, span in enumerate(retrieved, 1) if span.start <= at < span.end)
        is_gold = any(span.start <= at < span.end for span in gold)
        assert said.get(at, (False, ())) == (is_gold, numbers)
    assert set(said) <= set(range(*window)) and len(said) == sum(m.span.end - m.span.start for m in found)


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
