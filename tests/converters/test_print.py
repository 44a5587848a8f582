"""Printing: a browser is found or downloaded, one browser page prints all, every character can be extracted."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pypdf
import pytest
from playwright.sync_api import sync_playwright

from exhibit.converters import RawDocument
from exhibit.converters.printing import browser, text_pdf
from exhibit.converters.printing.browser import fetch_browser, find_browser, launch_arguments, require_browser
from exhibit.converters.printing.press import PAGE, PdfPrinter, Printer, describe_printing, make_html, make_pdf_options
from exhibit.converters.printing.text_pdf import find_font, name_printer, read_font_hashes
from exhibit.converters.steps.materialise import make_tasks, materialise
from exhibit.engine import Limits
from exhibit.engine.limits import list_programs
from exhibit.evidence import fold, read_document
from exhibit.schemas.errors import DocumentError, LimitError, ServiceError
from tests.converters.fontconfigs import misleading_fonts, no_fonts
from tests.converters.test_text_pdf import SCRIPTS
from tests.press import SharedPress


def test_the_environment_names_the_browser(monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "mine"))
    assert find_browser() == tmp_path / "mine"


def test_the_systems_browser_comes_first_and_playwrights_last(monkeypatch, tmp_path):
    monkeypatch.delenv("EXHIBIT_BROWSER", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/google-chrome" if name == "google-chrome" else None)
    assert find_browser() == Path("/usr/bin/google-chrome")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (tmp_path / "chrome").touch()
    monkeypatch.setattr(browser, "_find_playwrights", lambda: str(tmp_path / "chrome"))
    assert find_browser() == tmp_path / "chrome"
    monkeypatch.setattr(browser, "_find_playwrights", lambda: str(tmp_path / "gone"))
    monkeypatch.setattr(browser, "_MAC", ())
    assert find_browser() is None
    with pytest.raises(ServiceError, match="exhibit prepare browser"):
        require_browser()


def test_a_browser_is_fetched_by_playwright_then_by_the_distribution(monkeypatch, tmp_path, capsys):
    asked: list[list[str]] = []
    found = {"browser": None}

    def run(command, **_):
        asked.append(command)
        if "install" in command and "apt-get" in command[0]:
            found["browser"] = tmp_path
        stopped = "Downloading …\nError: Download failure, code=1\n    at ChildProcess.<anonymous> (index.js:1)\n}\n"
        return subprocess.CompletedProcess(command, int("playwright" in command), "", stopped)

    monkeypatch.setattr(browser, "find_browser", lambda: found["browser"])
    monkeypatch.setattr(browser.subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    assert fetch_browser() == tmp_path
    lines = [line.partition(" (")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["Playwright's Chromium: not to be had", "the distribution's Chromium: fetched"]
    assert asked[0][-2:] == ["install", "chromium"]
    assert asked[1][:2] == ["apt-get", "update"] and "chromium" in asked[2]

    asked.clear()
    found["browser"] = None
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    with pytest.raises(ServiceError, match="Playwright's Chromium: Error: Download failure, code=1$"):
        fetch_browser()
    assert len(asked) == 1  # an ordinary user cannot install the system's packages


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), Exception("Connection closed while reading")])
def test_a_driver_that_cannot_start_is_one_line(monkeypatch, tmp_path, error):
    def start(self: object) -> None:
        raise error

    for way in ("sync", "async"):
        monkeypatch.setattr(f"playwright.{way}_api._context_manager.PlaywrightContextManager.start", start)
    monkeypatch.setattr("playwright.sync_api._context_manager.PlaywrightContextManager.__enter__", start)
    with pytest.raises(ServiceError, match=r"^Playwright's driver does not start: .*ulimit -v and ulimit -n$"):
        Printer().__enter__()
    monkeypatch.delenv("EXHIBIT_BROWSER", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(browser, "_MAC", ())
    assert find_browser() is None, "nor can it say where its own browser is"


def test_the_sandbox_is_off_for_root_alone(monkeypatch):
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    assert "--no-sandbox" in launch_arguments() and "--disable-background-networking" in launch_arguments()
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    assert "--no-sandbox" not in launch_arguments()


@pytest.mark.parametrize(
    ("root", "fails", "tried"),
    [(True, 0, [False]), (False, 0, [True]), (False, 1, [True, False]), (False, 2, [True, False]), (True, 1, [False])],
)
def test_a_browser_starts_in_its_sandbox_where_there_is_one(monkeypatch, capsys, root, fails, tried):
    asked, ended = [], []

    class Driver:
        chromium = property(lambda self: self)

        async def start(self):
            return self

        async def stop(self):
            ended.append("driver")

        async def launch(self, *, chromium_sandbox, **options):
            asked.append(chromium_sandbox)
            if len(asked) <= fails:
                raise browser.import_browser_error()("No usable sandbox!\nmore")
            return self

        async def close(self):
            ended.append("browser")

    monkeypatch.setattr("playwright.async_api.async_playwright", Driver)
    monkeypatch.setattr(browser, "is_root", lambda: root)
    monkeypatch.setattr(browser, "launch_options", lambda folder: {})

    async def run():
        async with browser.run_browser(tell=True):
            ended.append("used")

    if fails == len(tried):
        with pytest.raises(ServiceError, match="^Chromium does not start: No usable sandbox!$"):
            asyncio.run(run())
        assert ended == ["driver"]
    else:
        asyncio.run(run())
        assert ended == ["used", "browser", "driver"]
    assert asked == tried and ("sandbox is not available here" in capsys.readouterr().err) is (fails > 0 and not root)


@pytest.fixture(scope="module")
def printer():
    with Printer() as ready:
        yield ready


def test_the_same_page_gives_the_same_bytes(printer, tmp_path):
    page = make_html("Clause 1. The parties agree.\n" * 200, title="An Agreement")
    printer.print_html(page, tmp_path / "one.pdf")
    printer.print_html(make_html("something else"), tmp_path / "between.pdf")
    printer.print_html(page, tmp_path / "two.pdf")
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
    document = read_document(tmp_path / "one.pdf")
    assert len(document.pages) > 3 and document.text.startswith("An Agreement\n")


def test_a_page_that_cannot_be_printed_is_one_document_less(printer, tmp_path):
    printer._runner.run(printer._browser.close())
    with pytest.raises(DocumentError, match="bad.pdf: Chromium cannot print it"):
        printer.print_html("<p>Words.</p>", tmp_path / "bad.pdf")
    printer.print_html("<p>Words.</p>", tmp_path / "good.pdf")
    assert read_document(tmp_path / "good.pdf").text == "Words."
    raws = [RawDocument("bad.pdf", "Bad", text="Words."), RawDocument("good.pdf", "Good", text="Words.")]
    first, second = make_tasks(raws, {}, tmp_path, press=_Failing())
    with pytest.raises(LimitError, match="bad.pdf: not done"):
        materialise(first)
    assert materialise(second).entry.characters == 6


class _Failing(PdfPrinter):
    """A printer that exceeds its time limit for the document `bad.pdf`."""

    def print(self, raw: RawDocument, corpus: Path) -> tuple[str, ...]:
        if raw.filename == "bad.pdf":
            raise Limits(seconds=1).late(raw.filename)
        return ()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


ENDLESS = '<div style="height: 33000000px">x</div>' * 300
"""Ten million sheets of paper."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the browser's processes as Linux shows them")
def test_a_page_that_never_ends_is_set_aside_its_browser_replaced_and_the_others_printed(tmp_path, monkeypatch):
    clock = SimpleNamespace(ahead=0.0)
    real = time.monotonic
    monkeypatch.setattr("exhibit.engine.worker.time", SimpleNamespace(monotonic=lambda: real() + clock.ahead))
    with PdfPrinter(Limits(seconds=1000)) as press, ThreadPoolExecutor(1) as pool:
        press.print(RawDocument("first.pdf", "First", html="Rent is due."), tmp_path)
        browser = list_programs(press._worker.place.worker._process.pid)
        bad = pool.submit(press.print, RawDocument("bad.pdf", "Bad", html=ENDLESS), tmp_path)
        assert not wait([bad], 0.2).done, "it is being printed"
        while not wait([bad], 0.1).done:
            clock.ahead += 2000
        with pytest.raises(LimitError, match=r"^bad.pdf: not done after 1000 s \(--item-timeout\); left out"):
            bad.result()
        press.print(RawDocument("last.pdf", "Last", html="Rent was due."), tmp_path)
        assert browser and not any(map(_alive, browser))
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["first.pdf", "last.pdf"]
    assert read_document(tmp_path / "last.pdf").text == "Rent was due."


@pytest.mark.slow
def test_a_conversion_goes_on_after_a_page_that_never_ends(tmp_path, convert):
    for name, html in {"bad": ENDLESS, "good": "<p>The rent is due.</p>"}.items():
        (tmp_path / "files" / f"{name}.html").parent.mkdir(exist_ok=True)
        (tmp_path / "files" / f"{name}.html").write_text(html, encoding="utf-8")
    rows = [{"question": f"When is {name}?", "answer": "x", "document": f"{name}.html"} for name in ("bad", "good")]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = ("--question", "question", "--answer", "answer", "--document", "document")
    flags = ("--documents", tmp_path / "files", *columns, "--item-timeout", "30")
    bundle = convert("table", "--source", tmp_path / "t.jsonl", *flags)
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["counts"]["documents"] == info["counts"]["questions"] == 1
    (told,) = info["left_out"]["document passes a limit of time, memory or nesting"]
    assert told.startswith("bad.html.pdf: ") and told.endswith("left out")
    assert "--item-timeout" in told or "--item-memory" in told, "whichever it passes first on this machine"


def test_nothing_half_written_is_left(printer, tmp_path):
    printer.print_html("<p>x</p>", tmp_path / "a.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["a.pdf"]


# ---------------------------------------------------------------- fonts


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*SCRIPTS.values()], id="all"),
        *(pytest.param([words], marks=pytest.mark.slow, id=script) for script, words in SCRIPTS.items()),
    ],
)
def test_every_script_is_drawn_and_read_back(printer, tmp_path, lines):
    families = ("serif", "sans-serif", "monospace", "Times New Roman", "Arial", "Courier New", "No Such Font")
    written = "".join(f"<p>{words}</p>" for words in lines)
    # a sheet each: where a sheet ends within a line, Chromium draws the marks above its letters on both
    foreign = "".join(f"<div style='font-family: {name}; break-after: page'>{written}</div>" for name in families)
    pages = {
        "ours": (make_html("\n".join(lines), title=lines[-1]), [lines[-1], *lines]),
        "foreign": (f"<meta charset='utf-8'>{foreign}", lines * len(families)),
    }
    for name, (page, expected) in pages.items():
        printer.print_html(page, tmp_path / f"{name}.pdf")
        found = read_document(tmp_path / f"{name}.pdf").text
        # a character without a glyph is read as nothing
        assert fold(found, loose=True) == fold("".join(expected), loose=True)
        assert _font_names(tmp_path / f"{name}.pdf") <= {Path(file).stem for file in read_font_hashes()}


def _font_names(path: Path) -> set[str]:
    """Return the fonts of a PDF; those drawn as pictures (Type 3) have no name."""
    fonts = [font.get_object() for page in pypdf.PdfReader(path).pages for font in page["/Resources"]["/Font"].values()]
    return {font["/BaseFont"].partition("+")[2] for font in fonts if "/BaseFont" in font}


SOURCES = {
    "text.pdf": make_html("Clause 1. The parties agree “as follows”.\n" * 90, title="An Agreement"),
    "scripts.pdf": make_html("\n".join(SCRIPTS.values())),
    "foreign.pdf": "<h1>Terms</h1><p>Of trade, in the browser's own font, office and all.</p><pre>fixed  width</pre>"
    "<p style='font-family: sans-serif'>generic</p><p style='font-family: Verdana, sans-serif'>named</p>" * 9,
}


T = TypeVar("T")


def _apart(action: Callable[[], T]) -> T:
    """Run an action in another thread, so that it can start its own browser; this thread has the module's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result()


def _bytes_under(configuration: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.setenv("FONTCONFIG_FILE", str(configuration))
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    folder.mkdir()

    def print_all() -> None:
        with Printer() as printer:
            for name, page in SOURCES.items():
                printer.print_html(page, folder / name)

    _apart(print_all)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow  # test_web.py prints its sample on such a machine
@pytest.mark.parametrize("fonts", [misleading_fonts, no_fonts])
def test_the_machine_s_fonts_do_not_change_a_byte(printer, tmp_path, monkeypatch, fonts):
    for name, page in SOURCES.items():
        printer.print_html(page, tmp_path / name)  # as this machine is
    here = {name: (tmp_path / name).read_bytes() for name in SOURCES}
    assert _bytes_under(fonts(tmp_path), tmp_path / "there", monkeypatch) == here


@pytest.mark.slow  # that the test above could fail
def test_the_misleading_configuration_does_mislead_a_browser_that_heeds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("FONTCONFIG_FILE", str(misleading_fonts(tmp_path)))

    def print_unsealed() -> None:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=require_browser(), args=launch_arguments())
            page = browser.new_page(**PAGE)
            page.set_content(SOURCES["foreign.pdf"])
            (tmp_path / "foreign.pdf").write_bytes(page.pdf(**make_pdf_options()))
            browser.close()

    _apart(print_unsealed)
    assert _font_names(tmp_path / "foreign.pdf") == {"ExhibitMono-Bold"}


def test_a_font_that_is_not_the_pinned_one_is_refused(monkeypatch, tmp_path):
    (tmp_path / "ExhibitSerif-Regular.ttf").write_bytes(b"another font")
    monkeypatch.setattr(text_pdf, "_FOLDER", tmp_path)
    find_font.cache_clear()
    monkeypatch.setattr(
        text_pdf, "read_font_hashes", lambda: {"ExhibitSerif-Regular.ttf": "0" * 64, "Other.ttf": "1" * 64}
    )
    with pytest.raises(ServiceError, match="not the font that documents are printed with"):
        find_font(text_pdf.SERIF)
    with pytest.raises(ServiceError, match="is missing"):
        find_font("Other.ttf")


def test_set_up_refuses_a_font_that_is_not_the_pinned_one(monkeypatch, capsys):
    monkeypatch.setattr(browser, "fetch_browser", lambda: Path("chromium"))
    find_font.cache_clear()
    assert browser.main() == 0 and capsys.readouterr().out == f"chromium, {len(read_font_hashes())} fonts\n"
    find_font.cache_clear()
    changed = {**read_font_hashes(), "ExhibitMono-Bold.ttf": "0" * 64}
    monkeypatch.setattr(text_pdf, "read_font_hashes", lambda: changed)
    assert browser.main() == 1 and "is not the font that documents are printed with" in capsys.readouterr().err
    find_font.cache_clear()


def test_the_bundle_is_told_what_was_printed_with_and_only_then(tmp_path):
    with SharedPress() as press:
        assert describe_printing([""]) is None
        first = press.print(RawDocument("a.pdf", "A", text="Words."), tmp_path)
        record = describe_printing([first.printer, ""])
        assert record is not None and record.fonts == read_font_hashes() and len(record.fonts) == 14
        assert record.printer == name_printer() and record.printer.startswith("ReportLab ")
        page = press.print(RawDocument("b.pdf", "B", html="<p>Words.</p>"), tmp_path)
        chinese = press.print(RawDocument("c.pdf", "C", text="本协议"), tmp_path)
    record = describe_printing([first.printer, page.printer, chinese.printer])
    assert record is not None and record.printer.startswith("Chromium ") and record.printer.endswith(name_printer())
