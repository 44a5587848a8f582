"""Printing: the browser's settings, reproducible bytes, and the record of printer and fonts."""

import pytest

from exhibit.converters import RawDocument
from exhibit.converters.pages.chromium import Printer, describe_printing, make_html, start_printing
from exhibit.converters.pages.text_pdf import name_printer, read_font_hashes
from exhibit.engine import Limits
from exhibit.evidence import read_document


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


def test_describe_printing_returns_printer_name_and_font_hashes(tmp_path):
    with start_printing(tmp_path, Limits()) as press:
        assert describe_printing([""]) is None
        first = press(RawDocument("a.pdf", "A", text="Words."))
        record = describe_printing([first.printer, ""])
        assert record is not None and record.fonts == read_font_hashes() and len(record.fonts) == 14
        assert record.printer == name_printer() and record.printer.startswith("ReportLab ")
        page = press(RawDocument("b.pdf", "B", html="<p>Words.</p>"))
        chinese = press(RawDocument("c.pdf", "C", text="本协议"))
    record = describe_printing([first.printer, page.printer, chinese.printer])
    assert record is not None and record.printer.startswith("Chromium ") and record.printer.endswith(name_printer())
