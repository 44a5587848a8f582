"""`exhibit view` in a real browser, by clicks alone: from an empty folder to a reviewed bundle and a report."""

import os
import signal
import subprocess
import sys

import pytest
from playwright.sync_api import Browser, Page

from exhibit.schemas.review import read_review
from exhibit.storage.bundle import open_bundle
from tests.browser import PATIENCE
from tests.loopback import free_port
from tests.viewer.watching import viewing

pytestmark = pytest.mark.slow
# the timeout in milliseconds for a job, which reads documents and runs models in a separate process
JOB_PATIENCE = 300_000

LETTER = (
    "Confidentiality Agreement\n\nThis Confidentiality Agreement is made on 3 March 2021 between Marlow Pumps Ltd "
    "and Otterby Valves plc.\n\n1. Term. This Agreement ends three years after its date.\n\n2. Governing law. This "
    "Agreement is governed by the laws of England and Wales.\n\n3. Return. On request the Recipient shall return all "
    "Confidential Information within thirty (30) days.\n"
)


def open_page(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    return page


def test_clicks_in_view_lead_from_empty_folder_to_reviewed_bundle_and_report(browser, tmp_path):
    port = free_port()
    with viewing(tmp_path, port) as (address, _):
        page = open_page(browser, address)
        page.fill("#name", "Smith letters 12")
        files = [{"name": f"{name}.txt", "mimeType": "text/plain", "buffer": LETTER.replace("Marlow", name).encode()}
                 for name in ("Marlow", "Tarn")]  # fmt: skip
        page.set_input_files("#files", files)
        page.click("text=Draft questions on them")
        page.click("#open:visible", timeout=JOB_PATIENCE)  # as soon as the drafts are ready
        page.wait_for_selector("text=A program proposed these questions")
        page.click("text=Review the proposed questions")
        page.fill("#reviewer", "Ada Lovell")
        page.click("#gold-right")
        page.wait_for_selector("#told:has-text('Saved.')")
        bundle = tmp_path / "datasets_out" / "Smith-letters-12"
        [kept] = (tmp_path / "datasets_out" / "Smith-letters-12-review").glob("review-*.json")
        assert [case.gold for case in read_review(kept).cases] == ["right"], "a judgment is saved at once"
        write_a_question(page, address)
        page.click("text=Make a bundle from")
        page.click("#open:visible", timeout=JOB_PATIENCE)
        reviewed = open_bundle(bundle.with_name("Smith-letters-12-reviewed"))
        assert reviewed.questions[-1].question == "When must papers go back?"
        assert any(line.labels.get("judged_by") == "Ada Lovell" for line in reviewed.gold)
        page.click("summary:has-text('More')")
        page.select_option("#preset", "bm25")
        page.fill("#run-name", "First test")
        page.click("#evaluate button")
        page.click("#open:visible", timeout=JOB_PATIENCE)
        page.wait_for_selector("text=What was run")
        assert "First-test" in page.inner_text("h1")
        page.click("text=All bundles and runs")
        page.wait_for_selector("text=answered correctly")


def write_a_question(page: Page, address: str) -> None:
    page.goto(address)
    page.click("th >> text=Smith-letters-12")
    page.click("section:has(#documents) li a >> nth=0")
    page.wait_for_selector(".sheet .word")
    page.fill("#reviewer", "Ada Lovell")
    page.fill("#question", "When must papers go back?")
    page.fill("#answer", "within thirty days")
    words = page.locator(".sheet .word")
    texts = [words.nth(at).get_attribute("data-at") for at in range(3)]
    assert texts == ["0", "1", "2"]
    page.locator(".sheet svg").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#marked li")
    page.click("text=Add the question")
    page.wait_for_selector("[role=status]:has-text('Saved: 1')")
    page.goto(address)
    page.click("th >> text=Smith-letters-12")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_review_page_saves_judgment_after_killed_server_is_restarted(browser, tmp_path):
    """A judgment that is made while the server is down is sent when it is up again, without reloading the page."""
    documents = tmp_path / "datasets_out" / "letters-documents"
    documents.mkdir(parents=True)
    (documents / "marlow.txt").write_text(LETTER, encoding="utf-8")
    words = ["draft", "--source", str(documents), "--out", str(tmp_path / "datasets_out" / "letters")]
    subprocess.run([sys.executable, "-m", "exhibit", *words], check=True, capture_output=True)
    port = free_port()
    with viewing(tmp_path, port) as (address, process):
        page = open_page(browser, address)
        page.click("th >> text=letters")
        page.click("text=Review the proposed questions")
        page.fill("#reviewer", "Ada Lovell")
        page.click("#gold-right")
        page.wait_for_selector("#told:has-text('Saved.')")
        process.send_signal(signal.SIGKILL)
        process.wait()
        page.click("text=Next question")
        page.click("#gold-wrong")
        page.wait_for_selector("#told:has-text('Not saved yet')")
    with viewing(tmp_path, port):
        page.wait_for_selector("#told:has-text('Saved.')")
        [kept] = (tmp_path / "datasets_out" / "letters-review").glob("review-*.json")
        assert [case.gold for case in read_review(kept).cases] == ["right", "wrong"]
