"""Printing: a browser is found or fetched, one page serves all, and every character can be found again."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from converters import _browser, _materialise
from converters._benchmark import RawDocument
from converters._browser import fetch_browser, find_browser, launch_arguments, require_browser
from converters._materialise import materialise, tasks
from converters._print import Printer
from converters._typeset import html_from_text
from evidence import fold, read_document
from schemas.errors import DocumentError, ServiceError


def test_the_environment_names_the_browser(monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "mine"))
    assert find_browser() == tmp_path / "mine"


def test_the_systems_browser_comes_first_and_playwrights_last(monkeypatch, tmp_path):
    monkeypatch.delenv("EXHIBIT_BROWSER", raising=False)
    monkeypatch.setattr(
        _browser.shutil, "which", lambda name: "/usr/bin/google-chrome" if name == "google-chrome" else None
    )
    assert find_browser() == Path("/usr/bin/google-chrome")
    monkeypatch.setattr(_browser.shutil, "which", lambda name: None)
    (tmp_path / "chrome").touch()
    monkeypatch.setattr(_browser, "_playwrights", lambda: str(tmp_path / "chrome"))
    assert find_browser() == tmp_path / "chrome"
    monkeypatch.setattr(_browser, "_playwrights", lambda: str(tmp_path / "gone"))
    monkeypatch.setattr(_browser, "_MAC", ())
    assert find_browser() is None
    with pytest.raises(ServiceError, match="python -m converters._browser"):
        require_browser()


def test_a_browser_is_fetched_by_playwright_then_by_the_distribution(monkeypatch, tmp_path):
    asked: list[list[str]] = []
    found = {"browser": None}

    def run(command, **_):
        asked.append(command)
        if "install" in command and "apt-get" in command[0]:
            found["browser"] = tmp_path
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(_browser, "find_browser", lambda: found["browser"])
    monkeypatch.setattr(_browser.subprocess, "run", run)
    monkeypatch.setattr(_browser.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(_browser.os, "geteuid", lambda: 0)
    assert fetch_browser() == tmp_path
    assert asked[0][-2:] == ["install", "chromium"]
    assert asked[1][:2] == ["apt-get", "update"] and "chromium" in asked[2]

    asked.clear()
    found["browser"] = None
    monkeypatch.setattr(_browser.os, "geteuid", lambda: 1000)
    with pytest.raises(ServiceError):
        fetch_browser()
    assert len(asked) == 1  # an ordinary user cannot install the system's packages


def test_the_sandbox_is_off_for_root_alone(monkeypatch):
    monkeypatch.setattr(_browser.os, "geteuid", lambda: 0)
    assert "--no-sandbox" in launch_arguments() and "--disable-background-networking" in launch_arguments()
    monkeypatch.setattr(_browser.os, "geteuid", lambda: 1000)
    assert "--no-sandbox" not in launch_arguments()


@pytest.fixture(scope="module")
def printer():
    with Printer() as ready:
        yield ready


def test_every_character_is_found_again(printer, tmp_path):
    lines = [
        "ARTICLE I — “Definitions” ‘and’ § 1.01 ¶ 2; ½ × € £ ¥ ° ™ ® ©",
        "Société Générale, Škoda, Łódź, Ærø, ñandú, ﬁnal ﬂoor, Ελλάδα, Москва",
        "non-exclusive, re-\u00adentry, zero\u200bwidth, NBSP\u00a0here, tab\there",
        '<script>alert(1)</script> & <b>not bold</b> &amp; "quotes"',
        "a" * 300,
        "    indented by four, and      spaced",
    ]
    text = "\n".join(lines)
    printer.print_html(html_from_text(text), tmp_path / "a.pdf")
    found = read_document(tmp_path / "a.pdf").text
    assert fold(found, loose=True) == fold(text, loose=True)


def test_the_same_page_gives_the_same_bytes(printer, tmp_path):
    page = html_from_text("Clause 1. The parties agree.\n" * 200, title="An Agreement")
    printer.print_html(page, tmp_path / "one.pdf")
    printer.print_html(html_from_text("something else"), tmp_path / "between.pdf")
    printer.print_html(page, tmp_path / "two.pdf")
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
    document = read_document(tmp_path / "one.pdf")
    assert len(document.pages) > 3 and document.text.startswith("An Agreement\n")


def test_a_page_that_cannot_be_printed_is_one_document_less(printer, tmp_path, monkeypatch):
    refresh = "<meta http-equiv='refresh' content='0; url=http://127.0.0.1:9/'><p>Words.</p>"
    raws = [
        RawDocument("bad.pdf", "Bad", html=refresh),
        RawDocument("good.pdf", "Good", text="The parties agree."),
    ]
    monkeypatch.setattr(_materialise, "Printer", lambda: nullcontext(_Failing(printer)))
    first, second = tasks(raws, {}, tmp_path)
    with pytest.raises(DocumentError, match="bad.pdf: Chromium cannot print it"):
        materialise(first)
    assert materialise(second).entry.characters > 10


class _Failing:
    """A printer whose first page ends in the browser's own error."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    def print_html(self, html: str, path: Path) -> None:
        if "refresh" in html:
            self._printer._page.close()
            try:
                self._printer.print_html(html, path)
            finally:
                self._printer._page = self._printer._browser.new_page(offline=True, java_script_enabled=False)
        self._printer.print_html(html, path)


def test_nothing_half_written_is_left(printer, tmp_path):
    printer.print_html("<p>x</p>", tmp_path / "a.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pdf"]
