"""The look of `exhibit view`: axe reports no violation on any page, and no page is wider than the screen."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Page

from exhibit.conversion import main as convert
from exhibit.schemas.bundle import read_questions
from exhibit.viewer.report import main as evaluate
from exhibit.viewer.server.library import key_of
from tests.browser import PATIENCE
from tests.loopback import free_port
from tests.viewer.watching import viewing

pytestmark = [pytest.mark.slow, pytest.mark.extra]

LEASE = (
    "Lease of Mill House\n\nThis Lease is made on 4 May 2022 between Harrow Mills Ltd and Pell Joinery Ltd.\n\n"
    "1. Rent. The Tenant shall pay a rent of 1,200 pounds on the first day of each month.\n\n"
    "2. Notice. Either party may end this Lease by three months' notice in writing.\n"
)
VIOLATIONS = "axe.run(document, { resultTypes: ['violations'] })"
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """A folder with a bundle of PDFs, drafted questions on a text, two runs, and two runs that went wrong."""
    root = tmp_path_factory.mktemp("look")
    bundle, results, replies = root / "datasets_out" / "policies", root / "results", root / "replies.jsonl"
    words = ["privacyqa", "--source", str(samples / "privacyqa"), "--out", str(bundle), "--engine", "serial"]
    assert convert(words) == 0
    rows = read_questions(bundle / "train.json")
    replies.write_text("".join(json.dumps({"id": row.id, "answer": "No."}) + "\n" for row in rows), encoding="utf-8")
    for name in ("first", "second"):
        words = [str(bundle), "--target", f"predictions:{replies}", "--output-dir", str(results)]
        assert evaluate([*words, "--run-name", name]) == 0
    for name, config in (("broken", "{"), ("died", (results / "first" / "config.json").read_text(encoding="utf-8"))):
        (results / name).mkdir()
        (results / name / "config.json").write_text(config, encoding="utf-8")
    documents = root / "datasets_out" / "leases-documents"
    documents.mkdir()
    (documents / "lease.txt").write_text(LEASE, encoding="utf-8")
    words = ["draft", "--source", str(documents), "--out", str(root / "datasets_out" / "leases")]
    subprocess.run([sys.executable, "-m", "exhibit", *words], check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a server for that folder."""
    with viewing(folder, free_port()) as (one, _):
        yield one


@pytest.fixture(params=[("light", 390), ("light", 1400), ("dark", 390), ("dark", 1400)], ids=lambda value: f"{value}")
def screen(request: pytest.FixtureRequest, browser) -> Page:
    """A browser page with a given width and colour scheme."""
    scheme, width = request.param
    page: Page = browser.new_page(
        color_scheme=scheme, reduced_motion="reduce", viewport={"width": width, "height": 900}
    )
    page.set_default_timeout(PATIENCE)
    return page


def faults(page: Page) -> list[str]:
    """Return the violations that axe reports, and by how much the page is wider than the screen."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    found = page.evaluate(VIOLATIONS)["violations"]
    wide = page.evaluate(TOO_WIDE)
    shown = [f"{v['impact']} {v['id']}: {node['html'][:200]}" for v in found for node in v["nodes"]]
    return [*shown, *([f"{wide} pixels too wide"] if wide > 0 else [])]


def visit(page: Page, address: str) -> Iterator[str]:
    """Open every page in the order of a user's clicks; yield the name of each."""
    page.goto(address)
    page.wait_for_selector("[data-result] b")
    yield "home"
    page.click("th >> text=policies")
    yield "bundle"
    page.fill("input[name=text]", "personal information")
    page.click("button:has-text('Search')")
    page.wait_for_selector(".found mark")
    yield "search in texts"
    page.click(".found a >> nth=0")
    page.wait_for_selector(".sheet .word.hit")
    yield "document with words that were looked for"
    page.go_back()
    page.click("section:has(#documents) li a >> nth=0")
    page.wait_for_selector(".sheet .word")
    yield "document"
    page.go_back()
    page.click("section:has(#questions) li a >> nth=0")
    page.wait_for_selector(".sheet .word")
    page.locator(".sheet svg").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#marked li")
    yield "question, with words marked"
    for name in ("run", "compare", "trend"):
        page.goto(address)
        yield from _runs(page, name)
    page.goto(address)
    page.click("th >> text=leases")
    page.wait_for_selector("text=A program proposed these questions")
    yield "drafted bundle"
    page.click("section:has(#documents) li a >> nth=0")
    page.wait_for_selector(".sheet .word")
    yield "document of text"
    page.go_back()
    page.click("text=Review the proposed questions")
    page.wait_for_selector("#gold-right")
    yield "drafts"


def _runs(page: Page, name: str) -> Iterator[str]:
    if name == "run":
        page.click("th >> text=first")
    elif name == "compare":
        for box in page.locator("input[name=run]").all():
            box.check()
        page.click("text=Compare the ticked runs")
    else:
        page.click("#trend")
    page.wait_for_url("**/drawn/**")
    yield name


def test_view_pages_have_no_accessibility_violations_and_fit_screen_width(screen, address):
    assert {name: told for name in visit(screen, address) if (told := faults(screen))} == {}


def test_view_pages_of_failed_runs_and_reviews_have_no_accessibility_violations(screen, address, folder):
    problems = {}
    for name in ("died", "broken"):
        screen.goto(f"{address}run/{key_of((folder / 'results' / name).resolve())}")
        problems[name] = faults(screen)
    screen.goto(f"{address}review/{key_of((folder / 'results' / 'first').resolve())}")
    screen.wait_for_selector("#gold-right")
    problems["review of a run"] = faults(screen)
    assert problems == {"died": [], "broken": [], "review of a run": []}


def test_view_of_empty_folder_has_no_accessibility_violations(screen, tmp_path):
    with viewing(tmp_path, free_port()) as (address, _):
        screen.goto(address)
        screen.wait_for_selector("text=No bundle yet")
        assert faults(screen) == []
        screen.fill("#name", "leases")
        screen.set_input_files("#files", [{"name": "a.txt", "mimeType": "text/plain", "buffer": LEASE.encode()}])
        screen.click("text=Draft questions on them")
        screen.wait_for_selector("#state")
        assert faults(screen) == [], "the page of a running job has violations"
        screen.wait_for_selector("#open:visible", timeout=10 * PATIENCE)
        assert faults(screen) == [], "the page of a finished job has violations"
