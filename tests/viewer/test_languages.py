"""The report in other languages: all its texts are in a language's file, and the page opens in it."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from exhibit import viewer
from exhibit.evaluation.metrics import GROUPS, describe_metric, list_metrics
from exhibit.viewer.matching import CHANGES, OUTCOMES
from exhibit.viewer.page import GROUP_MEANINGS, list_languages
from exhibit.viewer.results import main
from tests.viewer.report_data import Tab

FOLDER = Path(viewer.__file__).parent
TEMPLATES = ("report.html.j2", "compare.html.j2", "questions.j2", "plots.j2")
TEXT = re.compile(r'>([^<>{}]*[a-z]{2}[^<>{}]*)<|(?:title|aria-label|placeholder)="([^"{}]*[a-z]{2}[^"{}]*)"')
FILLED = re.compile(r'"([^"]*[A-Za-z]{2}[^"]*)"\)? \| t\b')
SAME = {"exhibit results report", "exhibit results compare", "Enter", "Esc"}
"""Commands and keys, which have one name everywhere."""


def texts_of(language: str) -> dict:
    return tomllib.loads((FOLDER / "languages" / f"{language}.toml").read_text("utf-8"))


@pytest.mark.parametrize("language", list_languages()[1:])
def test_every_text_of_the_report_has_its_translation(language):
    texts = texts_of(language)
    words = texts.pop("words")
    for name in TEMPLATES:
        source = (FOLDER / "static" / name).read_text("utf-8")
        plain = {match[1] or match[2] for match in TEXT.finditer(source)} - SAME
        assert plain <= texts.keys(), name
        assert set(FILLED.findall(source)) <= words.keys(), name
    outcomes = {**OUTCOMES, **CHANGES}
    assert outcomes.keys() | {one.meaning for one in outcomes.values()} <= words.keys()
    named = {text for name in list_metrics() for text in (describe_metric(name).title, describe_metric(name).meaning)}
    assert named | set(GROUPS) | set(GROUP_MEANINGS.values()) <= words.keys()
    assert set(GROUP_MEANINGS) == set(GROUPS), "each group says what it answers"


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=[pytest.mark.slow] * (name != "cs")) for name in list_languages()[1:]]
)
def test_the_report_opens_in_another_language(report_results, tmp_path, browser, language):
    words = texts_of(language)["words"]
    complaints: list[str] = []
    run = shutil.copytree(report_results, tmp_path / "run", ignore=shutil.ignore_patterns("report*"))
    assert main(["report", str(run), "--language", language, "--pages", "none", "--single-file"]) == 0
    page = Tab(browser).open((run / "report.html").as_uri(), complaints)
    assert page.locator("html").get_attribute("lang") == language
    assert page.locator("#questions").inner_text() == texts_of(language)["The questions"]
    assert words["gold passage found"] in page.locator(".tiles").inner_text()
    assert words["Answered rightly"] in page.locator(".headline").first.inner_text()
    pick = page.locator(".picks button").first
    outcome = pick.get_attribute("data-pick")
    assert words[outcome] in pick.inner_text()
    pick.click()
    assert page.locator("#lines .chip").first.inner_text().lower() == words[outcome].lower()
    page.keyboard.press("Enter")
    assert words[OUTCOMES[outcome].meaning] in page.locator(".why").inner_text()
    assert complaints == []
