"""Draws the pictures of the README from the samples.

    python -m docs.pictures           after `make demo`
    python -m docs.pictures --view    the pictures of `exhibit view`, also after `make demo`
    python -m docs.pictures --drafts mixed-bundle-review.html mixed-run/report.html

The last command draws the pictures of the guide on drafting, from a review page and a report.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from exhibit.converters.pages.chromium import FLAGS, find_browser
from exhibit.evidence import Span, read_document
from exhibit.evidence.show import draw_spans
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.bundle import open_bundle

IMAGES = Path(__file__).parent / "images"
BUNDLE = Path("datasets_out/cuad")
REPORT = Path("results/demo/report.html")
CLAUSE = "Audit Rights"
"""A clause of the first sample that continues on the next page, after a page foot and a page head."""


def draw_gold() -> Image.Image:
    """Return a picture of two pages side by side: a clause that continues on the second page, marked as gold."""
    bundle = open_bundle(BUNDLE)
    line = next(g for g in bundle.gold if g.labels["clause"] == CLAUSE and len(g.pages) == 2)
    document = read_document(bundle.files[str(line.filename)])
    pages = list(draw_spans(document, [Span(*span) for span in line.spans], scale=1.25).values())
    gap = 12
    sheet = Image.new("RGB", (sum(p.width for p in pages) + gap * 3, pages[0].height + gap * 2), (225, 228, 232))
    left = gap
    for page in pages:
        sheet.paste(page, (left, gap))
        left += page.width + gap
    return sheet.quantize(64)


def report_screens(report: Path) -> Iterator[tuple[str, Image.Image]]:
    """Yield name and image of four screenshots of a report: top, open case, open case in dark mode, narrow window."""
    if not report.is_file():
        raise ToolkitError(f"{report}: no such report")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_browser()), args=FLAGS)
        page = _open_report(browser, report, width=1400, height=1240, scheme="light")
        yield "report-top", _decode_picture(page.screenshot())
        _open_case(page)
        yield "report-case", _decode_picture(page.screenshot())
        page = _open_report(browser, report, width=1400, height=1240, scheme="dark")
        _open_case(page)
        yield "report-dark", _decode_picture(page.screenshot())
        page = _open_report(browser, report, width=400, height=1000, scheme="dark")
        page.evaluate("document.getElementById('list').scrollIntoView()")
        yield "report-narrow", _decode_picture(page.screenshot())
        browser.close()


def draft_screens(review: Path, report: Path) -> Iterator[tuple[str, Image.Image]]:
    """Yield names and screenshots of the page on which drafts are reviewed, and of the report on the drafts."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_browser()), args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
        page.goto(review.resolve().as_uri())
        page.wait_for_selector("svg image")
        page.evaluate("document.querySelector('details').open = false")
        yield "draft-review", _decode_picture(page.screenshot())
        yield (
            "draft-report",
            _decode_picture(_open_report(browser, report, width=1200, height=700, scheme="light").screenshot()),
        )
        browser.close()


def view_screens() -> Iterator[tuple[str, Image.Image]]:
    """Yield names and screenshots of two pages that `exhibit view` serves: the start page and a document."""
    command = [sys.executable, "-m", "exhibit", "view", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        try:
            address = (server.stderr or io.StringIO()).readline().partition("http")
            browser = playwright.chromium.launch(executable_path=str(find_browser()), args=FLAGS)
            page = browser.new_page(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
            page.goto("".join(address[1:]).strip())
            yield "view-home", _decode_picture(page.screenshot())
            page.click("th >> text=cuad")
            page.fill("input[name=find]", CLAUSE)
            page.keyboard.press("Enter")
            page.click("section:has(#questions) li a >> nth=0")
            page.wait_for_selector(".word.gold")
            page.wait_for_load_state("networkidle")
            yield "view-document", _decode_picture(page.screenshot())
            browser.close()
        finally:
            server.terminate()


def _open_report(browser: Browser, report: Path, *, width: int, height: int, scheme: Literal["dark", "light"]) -> Page:
    size: ViewportSize = {"width": width, "height": height}
    page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.goto(report.resolve().as_uri())
    page.wait_for_selector(".line .question")
    return page


def _open_case(page: Page) -> None:
    """Open the first case of the report in which a highlighted passage overlaps gold.

    If no such case is among the first 60 cases, open the first case.
    """
    for number in (*range(min(int(page.evaluate("META.total")), 60)), 0):
        page.evaluate("number => openCase(number)", number)
        page.wait_for_function("number => current === number && panel.dataset.took && !panel.ariaBusy", arg=number)
        if page.locator("rect.mark.both").count():
            break
    page.evaluate("byId('list').scrollIntoView()")
    page.wait_for_load_state("networkidle")


def _decode_picture(data: bytes) -> Image.Image:
    # choose the palette by coverage, not by frequency, so that the small red dot of an outcome stays red
    return Image.open(io.BytesIO(data)).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Write the pictures that the options choose into docs/images/."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures", description=__doc__)
    parser.add_argument("--report", type=Path, default=REPORT, help=f"the report to show (default {REPORT})")
    parser.add_argument("--view", action="store_true", help="the pages of exhibit view, over datasets_out and results")
    parser.add_argument("--drafts", type=Path, nargs=2, metavar="FILE", help="a review page of drafts, and its report")
    options = parser.parse_args(argv)
    IMAGES.mkdir(exist_ok=True)
    if options.view:
        for name, picture in view_screens():
            picture.save(IMAGES / f"{name}.png", optimize=True)
        return 0
    if options.drafts:
        for name, picture in draft_screens(*options.drafts):
            picture.save(IMAGES / f"{name}.png", optimize=True)
        return 0
    if not options.report.is_file():
        raise ToolkitError(f"{options.report}: no such file; run make demo first")
    draw_gold().save(IMAGES / "gold-on-the-page.png", optimize=True)
    for name, picture in report_screens(options.report):
        picture.save(IMAGES / f"{name}.png", optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
