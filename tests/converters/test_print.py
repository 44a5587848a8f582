"""Printing: the browser's settings, reproducible bytes, time-outs, and the record of printer and fonts."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit.converters import RawDocument
from exhibit.converters.pages import chromium as browser
from exhibit.converters.pages.chromium import launch_arguments
from exhibit.converters.pages.print import PdfPrinter, Printer, describe_printing, make_html
from exhibit.converters.pages.text_pdf import name_printer, read_font_hashes
from exhibit.engine import Limits
from exhibit.engine.limits import list_programs
from exhibit.evidence import read_document
from exhibit.schemas.errors import LimitError


def test_launch_arguments_disable_the_sandbox_for_root_only(monkeypatch):
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    assert "--no-sandbox" in launch_arguments() and "--disable-background-networking" in launch_arguments()
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    assert "--no-sandbox" not in launch_arguments()


@pytest.fixture(scope="module")
def printer():
    with Printer() as ready:
        yield ready


def test_print_html_writes_the_same_bytes_for_the_same_page(printer, tmp_path):
    page = make_html("An Agreement\n" + "Clause 1. The parties agree.\n" * 200)
    printer.print_html(page, tmp_path / "one.pdf")
    printer.print_html(make_html("something else"), tmp_path / "between.pdf")
    printer.print_html(page, tmp_path / "two.pdf")
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
    document = read_document(tmp_path / "one.pdf")
    assert len(document.pages) > 3 and document.text.startswith("An Agreement\n")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


ENDLESS = '<div style="height: 33000000px">x</div>' * 300
"""Ten million sheets of paper."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the browser's processes as Linux shows them")
def test_pdf_printer_restarts_the_browser_after_a_page_timeout(tmp_path, monkeypatch):
    clock = SimpleNamespace(ahead=0.0)
    real = time.monotonic
    monkeypatch.setattr("exhibit.engine.worker.time", SimpleNamespace(monotonic=lambda: real() + clock.ahead))
    with PdfPrinter(Limits(seconds=1000)) as press, ThreadPoolExecutor(1) as pool:
        press.print(RawDocument("first.pdf", "First", html="Rent is due."), tmp_path)
        browser = list_programs(press._worker.process.pid)
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


# ---------------------------------------------------------------- fonts


def test_describe_printing_records_printer_and_fonts(tmp_path):
    with PdfPrinter(Limits()) as press:
        assert describe_printing([""]) is None
        first = press.print(RawDocument("a.pdf", "A", text="Words."), tmp_path)
        record = describe_printing([first.printer, ""])
        assert record is not None and record.fonts == read_font_hashes() and len(record.fonts) == 14
        assert record.printer == name_printer() and record.printer.startswith("ReportLab ")
        page = press.print(RawDocument("b.pdf", "B", html="<p>Words.</p>"), tmp_path)
        chinese = press.print(RawDocument("c.pdf", "C", text="本协议"), tmp_path)
    record = describe_printing([first.printer, page.printer, chinese.printer])
    assert record is not None and record.printer.startswith("Chromium ") and record.printer.endswith(name_printer())
