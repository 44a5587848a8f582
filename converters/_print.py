"""HTML to PDF by Chromium: one browser, one page, used again for every document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from exhibit.converters import _playwright
from exhibit.converters._browser import is_root, launch_options
from exhibit.converters._fonts import font_hashes
from exhibit.engine.limits import programs_unlimited
from exhibit.schemas.errors import DocumentError, ServiceError
from exhibit.schemas.models import Printing
from exhibit.storage.place import write_whole
from exhibit.storage.scratch import scratch_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright, Route

_DATE = re.compile(rb"/(CreationDate|ModDate) \(D:[^()]*\)")
_ARABIC = re.compile("[\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
_ACTUAL_TEXT = re.compile(rb"/Span<</ActualText <[0-9A-F]*> >> BDC\n")
_ENDS = b"EMC\n"
"""What ends the stretch that such a line begins."""
# what is drawn for one that cannot be played differs from print to print; its words for such a browser do not
_VIDEO = re.compile(r"(</?)(?=video\b)", re.IGNORECASE)
_EPOCH = b"D:20000101000000+00'00'"
PAGE: dict[str, Any] = {
    "offline": True,
    "java_script_enabled": False,
    "locale": "en-GB",
    "timezone_id": "UTC",
    "user_agent": "exhibit-rag",  # it stands in the PDF; the browser's own names the system
}


_ADDRESS = "http://document.invalid/"
_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    # `sandbox` stops refreshes, also those that noscript holds; what a page may show, it has in itself
    "content-security-policy": (
        "sandbox; default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline' data:; "
        "frame-src data:; object-src data:"
    ),
    "x-dns-prefetch-control": "off",
    "referrer-policy": "no-referrer",
}


class Printer:
    """Prints HTML; the same HTML and browser give the same bytes, whenever and wherever it is printed."""

    def __enter__(self) -> Printer:
        with ExitStack() as stack:
            self._folder = stack.enter_context(scratch_folder())
            with programs_unlimited():
                self._playwright: Playwright = stack.enter_context(_playwright.driver())
                self._browser = self._launch()
            self._stack = stack.pop_all()
        return self

    @property
    def browser(self) -> str:
        """The browser's version."""
        return self._browser.version

    def _launch(self) -> Browser:
        """Start Chromium in its sandbox; without it for root, and where the system grants none."""
        options = launch_options(self._folder)
        for sandbox in (False,) if is_root() else (True, False):
            try:
                return self._playwright.chromium.launch(chromium_sandbox=sandbox, **options)
            except _playwright.PlaywrightError as error:
                problem = error
        raise ServiceError(f"Chromium does not start: {problem.message.splitlines()[0]}") from problem

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack, suppress(_playwright.PlaywrightError):  # it may have ended by itself
            self._browser.close()

    def print_html(self, html: str, path: Path, *, header: str = "", footer: str = "", margins: str = "22mm") -> None:
        """Print a page that stands by itself; its own CSS may set the paper with `@page { size: … }`."""
        try:
            # each in a page of its own: what one has begun, a refresh or a timer, never comes to another
            page = self._browser.new_page(**PAGE)
            page.route("**/*", partial(_hand_over, _VIDEO.sub(r"\1no-", html).encode("utf-8", "replace")))
            # how long it may take is for the limit of an item to say: `page.pdf` knows no timeout of its own
            page.goto(_ADDRESS, wait_until="load", timeout=0)
            data = page.pdf(**pdf_options(header=header, footer=footer, margins=margins))
            page.close()
        except _playwright.PlaywrightError as error:
            self._renew()
            raise DocumentError(f"{path.name}: Chromium cannot print it: {error.message.splitlines()[0]}") from error
        write_whole(path, in_order(fix_dates(data), html))

    def _renew(self) -> None:
        """Open another browser: a page that crashed may have taken the old one with it."""
        with suppress(_playwright.PlaywrightError):
            self._browser.close()
        self._browser = self._launch()


def _hand_over(html: bytes, route: Route) -> None:
    """Answer the browser: the document itself, and to whatever it asks for besides nothing at all."""
    request = route.request
    if request.url == _ADDRESS and request.frame.parent_frame is None and request.is_navigation_request():
        route.fulfill(status=200, headers=_HEADERS, body=html)
    else:
        route.abort("aborted")  # a navigation that is aborted leaves the page as it is; one that fails does not


def printing(printers: Iterable[str]) -> Printing | None:
    """Return what documents were printed with, for `bundle.json`; None when nothing was printed."""
    names = sorted(set(printers) - {""})
    return Printing(printer=", ".join(names), fonts=font_hashes()) if names else None


def pdf_options(*, header: str = "", footer: str = "", margins: str = "22mm") -> dict[str, Any]:
    """Return what `page.pdf` is told, whoever calls it."""
    return {
        "print_background": True,
        "prefer_css_page_size": True,
        "display_header_footer": bool(header or footer),
        "header_template": header or "<span></span>",
        "footer_template": footer or "<span></span>",
        "margin": {"top": margins, "bottom": margins, "left": margins, "right": margins},
        "tagged": False,  # tags carry the browser's own node numbers, which differ from print to print
    }


def fix_dates(data: bytes) -> bytes:
    """Return a PDF with the dates of its making replaced by a fixed one, so that it does not change from day to day."""
    return _DATE.sub(_same_length, data)


def in_order(data: bytes, html: str) -> bytes:
    """Return the PDF of a page, its Arabic so that it is read in order.

    For a joined letter Chromium writes which one it is beside the glyph (`ActualText`), and PDFium then reads a word
    of such letters backwards; from the glyphs alone, which tell the same, it reads all of them rightly.
    """
    if html.isascii() or not _ARABIC.search(html):
        return data
    # here, as Arabic is seldom printed: a tenth of a second in every command and every worker
    from pypdf import PdfWriter
    from pypdf.generic import StreamObject

    writer = PdfWriter(clone_from=BytesIO(data))
    for page in writer.pages:
        contents = page["/Contents"].get_object()
        if isinstance(contents, StreamObject):
            before, *stretches = _ACTUAL_TEXT.split(contents.get_data())
            contents.set_data(b"".join([before, *(stretch.replace(_ENDS, b"", 1) for stretch in stretches)]))
    buffer = BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def _same_length(match: re.Match[bytes]) -> bytes:
    """Replace a date by a fixed one of the same length, so that the file's offsets stay true."""
    name = match.group(1)
    room = len(match.group()) - len(name) - 4
    return b"/" + name + b" (" + _EPOCH[:room].ljust(room, b"0") + b")"
