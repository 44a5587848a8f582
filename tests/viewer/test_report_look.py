"""The look of result pages: readable contrast in light, dark and print; axe reports no violation."""

import re
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from exhibit.evidence import read_document
from exhibit.viewer.compare import write_comparison
from exhibit.viewer.page import format_page, read
from exhibit.viewer.report import write_report
from tests.viewer.report_data import Tab, make_results, open_first

WORDS = ("ink", "soft", "accent", "bad-ink", "good-ink", "gold-ink", "hit-ink", "both-ink")
"""The colours of text."""
GROUNDS = ("paper", "card", "faint", "picked")
"""The background colours of text."""
DOTS = ("ok", "calm", "bad", "near", "unused", "bold", "shy", "lost", "broken", "one", "two", "edge")
"""The colours of dots, lines and borders that have a meaning."""
WORDS_STAND_OUT, DOTS_STAND_OUT = 4.5, 3.0
"""The least contrast by WCAG 2.2 for text (1.4.3) and for other meaningful parts (1.4.11)."""


def luminance(colour: str) -> float:
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def themes() -> dict[str, dict[str, str]]:
    """The colours of each theme by name."""
    light, dark, *_ = read("viewer.css").split("@media (prefers-color-scheme: dark)")
    colours = [dict(re.findall(r"--([a-z-]+): #([0-9a-f]{3,6})\b", part)) for part in (light, dark.split("\n}")[0])]
    printed = read("viewer.css").split(":root:root {")[1].split("}")[0]
    paper = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{3,6})\b", printed))
    return {"light": colours[0], "dark": colours[0] | colours[1], "print": colours[0] | colours[1] | paper}


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_text_colours_have_readable_contrast_on_every_background(theme):
    colours = themes()[theme]
    faint = {
        (word, ground): round(contrast(colours[word], colours[ground]), 2)
        for word, ground in product(WORDS, GROUNDS)
        if contrast(colours[word], colours[ground]) < WORDS_STAND_OUT
    }
    assert faint == {}


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_dot_and_line_colours_have_sufficient_contrast_with_background(theme):
    colours = themes()[theme]
    pairs = product(DOTS, ("paper", "card"))
    assert [pair for pair in pairs if contrast(*(colours[name] for name in pair)) < DOTS_STAND_OUT] == []


def test_format_page_escapes_title_and_restricts_scripts_by_content_policy():
    text = format_page("A <title>", "<p>body</p>", scripts=["build.js"], data={"told": '{"a":1}'})
    assert "<title>A &lt;title&gt;</title>" in text and 'id="told">{"a":1}</script>' in text
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy and "file:" not in policy and "unsafe" not in policy
    assert "script-src 'none'" in format_page("x", "y") and "'self' file:" in format_page(
        "x", "y", scripts=["build.js"], pieces=True
    )


@pytest.fixture(scope="module")
def pages(report_bundles, tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("look")
    before = make_results(root / "before", report_bundles, limit=24)
    after = make_results(root / "after", report_bundles, limit=24, turn=1)
    return {"report": write_report(before), "compare": write_comparison([before, after])}


@pytest.mark.extra
@pytest.mark.parametrize(
    ("kind", "scheme", "width"),
    [("report", "light", 1400), ("report", "dark", 400), ("compare", "light", 400), ("compare", "dark", 1400)],
)
def test_result_pages_have_no_accessibility_violations(browser, pages, kind, scheme, width):
    complaints: list[str] = []
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    shown = Tab(browser).open(pages[kind].as_uri(), complaints)
    shown.emulate_media(color_scheme=scheme)
    shown.set_viewport_size({"width": width, "height": 900})
    wanted = {"outcome": "wrong"} if kind == "report" else {"change": "lost"}

    def violations() -> list[str]:
        shown.evaluate(axe)
        found = shown.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        return [f"{v['impact']} {v['id']}: {v['nodes'][0]['html'][:90]}" for v in found["violations"]]

    assert violations() == []
    open_first(shown, dataset="cuad", **wanted)
    shown.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert violations() == []
    open_first_of_text(shown)
    assert violations() == []
    shown.evaluate("byId('help').showModal()")
    assert violations() == []
    shown.close()
    assert complaints == []


def open_first_of_text(shown) -> None:
    """Open a question about a document without pages."""
    shown.evaluate("toList()")
    open_first(shown, dataset="leases")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["report", "compare"])
def test_printing_open_case_to_pdf_includes_question_and_expected_answer(browser, pages, kind, tmp_path):
    shown = Tab(browser).open(pages[kind].as_uri(), [])
    wanted = {"outcome": "wrong"} if kind == "report" else {"change": "lost"}
    open_first(shown, dataset="cuad", **wanted)
    question = shown.locator("#case-title").inner_text()
    shown.pdf(path=tmp_path / "case.pdf", format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "15mm"))
    shown.close()
    document = read_document(tmp_path / "case.pdf")
    text = " ".join(document.text.split())
    assert question[:60] in text and "The expected answer" in text and "Copy link" not in text
    assert len(document.pages) < 25
