"""Prints documents to PDF in a separate process: HTML with Chromium, plain text with ReportLab."""

from __future__ import annotations

import asyncio
import html
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from exhibit.converters import Block, RawDocument
from exhibit.converters.pages import text_pdf
from exhibit.converters.pages.chromium import HERE, import_browser_error, run_browser
from exhibit.engine import Limits, Worker
from exhibit.engine.limits import lift_memory_limit, watch_programs
from exhibit.evidence.files import decode_page
from exhibit.evidence.read import has_page, read_document, read_printable
from exhibit.evidence.readers.html import HTML_SUFFIXES as HTML
from exhibit.evidence.readers.html import Printable
from exhibit.evidence.readers.text import decode_file
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.models import Printing
from exhibit.storage.atomic import make_scratch_folder, write_whole

if TYPE_CHECKING:
    from playwright.async_api import Route

_DATE = re.compile(rb"(?:(?<=/CreationDate \()|(?<=/ModDate \())D:[^()]*(?=\))")
_EPOCH = b"D:20000101000000+00'00'"
# elements that cannot be played are drawn differently in each print, but their fallback text is not
_VIDEO = re.compile(r"(</?)(?=video\b)", re.IGNORECASE)
PAGE: dict[str, Any] = {
    "offline": True,
    "java_script_enabled": False,
    "locale": "en-GB",
    "timezone_id": "UTC",
    "user_agent": "exhibit-rag",  # this name is written into the PDF; the browser's own name contains the system's
}
_ADDRESS = "http://document.invalid/"
_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    # `sandbox` stops refreshes, even inside noscript; a page may show only its own content
    "content-security-policy": (
        "sandbox; default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline' data:; "
        "frame-src data:; object-src data:"
    ),
    "x-dns-prefetch-control": "off",
    "referrer-policy": "no-referrer",
}
_WHOLE_PAGE = "@page { margin: 0 } body { margin: 0 } img.scan { width: 210mm; height: 297mm; object-fit: contain }"
# EDGAR wraps each document of a filing in tags, which are not part of the document; page ends are also tags
_ENVELOPE = re.compile(r"\A\s*<DOCUMENT>.*?<TEXT>[ \r]*\n?|</TEXT>\s*</DOCUMENT>\s*\Z", re.IGNORECASE | re.DOTALL)


class Printed(NamedTuple):
    """The program that printed a document, and remarks on the source file, such as `converted by LibreOffice`."""

    printer: str
    notes: tuple[str, ...] = ()


class Printer:
    """Prints HTML; the same HTML and browser give the same bytes at any time and on any machine."""

    def __enter__(self) -> Printer:
        self._runner = asyncio.Runner()
        self._start()
        return self

    def _start(self) -> None:
        self._running = run_browser()
        with lift_memory_limit():
            self._browser = self._runner.run(self._running.__aenter__())

    @property
    def browser(self) -> str:
        """The version of the browser that prints the pages."""
        return self._browser.version

    def __exit__(self, *error: object) -> None:
        with self._runner:
            self._runner.run(self._running.__aexit__(None, None, None))

    def print_html(self, html: str, path: Path) -> None:
        """Print a self-contained HTML page to a PDF; its CSS may set the paper size with `@page { size: … }`."""
        try:
            data = self._runner.run(self._print_html(_VIDEO.sub(r"\1no-", html).encode("utf-8", "replace")))
        except import_browser_error() as error:
            # a crashed page may have crashed the browser
            self._runner.run(self._running.__aexit__(None, None, None))
            self._start()
            raise DocumentError(f"{path.name}: Chromium cannot print it: {error.message.splitlines()[0]}") from error
        write_whole(path, fix_dates(data))

    async def _print_html(self, html: bytes) -> bytes:
        # a new page for each document, so that refreshes and timers cannot affect another document
        page = await self._browser.new_page(**PAGE)
        await page.route("**/*", partial(_answer_request, html))
        # the item's own limit applies: `page.pdf` has no timeout
        await page.goto(_ADDRESS, wait_until="load", timeout=0)
        data = await page.pdf(**make_pdf_options("22mm"))
        await page.close()
        return data


async def _answer_request(html: bytes, route: Route) -> None:
    """Answer the browser's request for the document with its HTML, and abort all other requests."""
    request = route.request
    if request.url == _ADDRESS and request.frame.parent_frame is None and request.is_navigation_request():
        await route.fulfill(status=200, headers=_HEADERS, body=html)
    else:
        await route.abort("aborted")  # an aborted navigation leaves the page unchanged; a failed navigation does not


def make_pdf_options(margin: str) -> dict[str, Any]:
    """Return the options of `page.pdf`, the same for all callers."""
    return {
        "print_background": True,
        "prefer_css_page_size": True,
        "margin": dict.fromkeys(("top", "bottom", "left", "right"), margin),
        "tagged": False,  # tags contain the browser's node numbers, which differ between prints
    }


def fix_dates(data: bytes) -> bytes:
    """Return a PDF whose dates are replaced by a fixed date of equal length, so that offsets in the file stay valid."""
    return _DATE.sub(lambda match: _EPOCH[: len(match[0])].ljust(len(match[0]), b"0"), data)


def describe_printing(printers: Iterable[str]) -> Printing | None:
    """Return the programs that printed documents, for `bundle.json`; None if no document was printed."""
    names = sorted(set(printers) - {""})
    return Printing(printer=", ".join(names), fonts=text_pdf.read_font_hashes()) if names else None


def needs_missing_browser(document: RawDocument) -> bool:
    """Return whether a document must be printed by a browser, and Playwright is not installed."""
    path = document.original
    return not HERE and path is not None and (path.suffix.lower() in HTML or has_page(path))


@dataclass(frozen=True)
class _Sheet:
    """A task for the printing process."""

    document: RawDocument
    corpus: Path
    folder: Path  # the folder for the browser's files while it runs
    limits: Limits

    def __str__(self) -> str:
        return str(self.document.original or self.document.filename)


Press = Callable[[RawDocument, Path], Printed]


@contextmanager
def start_printing(limits: Limits) -> Iterator[Press]:
    """Yield a function that prints a document, from its original file if it has one, and writes it into a corpus.

    One process prints all documents. It is started for the first document, and starts a browser when a document first
    needs one.
    """
    with make_scratch_folder() as folder:  # removed with the files of a killed browser
        worker = Worker[_Sheet, Printed].of(_print_sheet, limits=limits)
        browserless = True

        def print_document(raw: RawDocument, corpus: Path) -> Printed:
            nonlocal browserless
            before, browserless = browserless, False  # a document that fails may leave a browser
            printed = worker.run(_Sheet(raw, corpus.absolute(), folder, limits))
            browserless = before and printed.printer == text_pdf.name_printer()
            return printed

        try:
            yield print_document
        finally:
            (worker.rest if browserless else worker.close)()


@cache
def _start_printer(folder: Path) -> Printer:
    """Return the browser of the printing process, which prints all documents; `folder` holds the browser's files."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return Printer().__enter__()


def _print_sheet(sheet: _Sheet) -> Printed:
    raw, path = sheet.document, sheet.corpus / sheet.document.filename
    page = _read_page(raw)
    if page is None:
        blocks: Sequence[Block] = raw.blocks or [Block("p", raw.text or "")]
        notes: tuple[str, ...] = ()
        if raw.original is not None:
            document = read_document(raw.original)
            blocks, notes = [Block("p", document.text)], document.notes
        if not any(text_pdf.needs_browser(block.text) for block in blocks):
            text_pdf.print_blocks(blocks, path, title=raw.title, subject=raw.subject)
            return Printed(text_pdf.name_printer(), notes)
        page = Printable(make_html("\n\n".join(block.text for block in blocks)), notes)
    printer = _start_printer(sheet.folder)
    with watch_programs(sheet.limits, str(sheet)):
        printer.print_html(page.html, path)
    return Printed(f"Chromium {printer.browser}", page.notes)


def make_html(text: str) -> str:
    """Return an HTML page that shows a plain text with the same lines."""
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><style>{text_pdf.read_style('text')}</style>"
        f"<body><pre>{html.escape(text_pdf.make_printable(text), quote=False)}</pre></body></html>"
    )


def _read_page(raw: RawDocument) -> Printable | None:
    """Return the HTML page from which a document, such as a Word file, is printed; None for plain text."""
    if raw.original is None:
        return None if raw.html is None else Printable(raw.html)
    if raw.original.suffix.lower() in HTML:
        return Printable(decode_file(raw.original).text)  # an HTML file has its own style
    page = read_printable(raw.original)
    if page is None:
        return None
    css = text_pdf.read_style("office") + (_WHOLE_PAGE if 'class="scan"' in page.html[:200] else "")
    head = make_html("").partition("<body>")[0]  # the same fonts as in every other print
    return Printable(f"{head}<style>{css}</style><body>{text_pdf.make_printable(page.html)}</body></html>", page.notes)


def strip_filing(data: bytes) -> str:
    """Return a document filed with the SEC, without EDGAR's tags around it."""
    return _ENVELOPE.sub("", decode_page(data))


def split_filed_text(page: str) -> tuple[Block, ...]:
    """Return the blocks to print for a plain-text filing: monospaced, 80 columns by 66 lines."""
    return (Block("pre", page.replace("<PAGE>", text_pdf.PAGE_BREAK)),)
