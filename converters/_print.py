"""HTML to PDF by Chromium: one browser, one page, used again for every document."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from converters._browser import is_root, launch_arguments, require_browser
from schemas.errors import DocumentError, ServiceError

_DATE = re.compile(rb"/(CreationDate|ModDate) \(D:[^()]*\)")
_EPOCH = b"D:20000101000000+00'00'"


class Printer:
    """Prints HTML; the same HTML and browser give the same bytes, whenever it is printed."""

    def __enter__(self) -> Printer:
        self._playwright: Playwright = sync_playwright().start()
        self._browser = self._launch()
        # what is printed here is already on this disk: its pictures and scripts elsewhere are not asked for
        self._page: Page = self._browser.new_page(offline=True, java_script_enabled=False)
        return self

    def _launch(self) -> Browser:
        """Start Chromium in its sandbox; without it for root, and where the system grants none."""
        for sandbox in (False,) if is_root() else (True, False):
            try:
                return self._playwright.chromium.launch(
                    executable_path=require_browser(), args=launch_arguments(), chromium_sandbox=sandbox
                )
            except PlaywrightError as error:
                problem = error
        raise ServiceError(f"Chromium does not start: {problem.message.splitlines()[0]}") from problem

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._browser.close()
        self._playwright.stop()

    def print_html(self, html: str, path: Path, *, header: str = "", footer: str = "", margins: str = "22mm") -> None:
        """Print a page that stands by itself; its own CSS may set the paper with `@page { size: … }`."""
        try:
            self._page.set_content(html, wait_until="load")
            data = self._page.pdf(**pdf_options(header=header, footer=footer, margins=margins))
        except PlaywrightError as error:
            raise DocumentError(f"{path.name}: Chromium cannot print it: {error.message.splitlines()[0]}") from error
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(fix_dates(data))
        partial.replace(path)


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


def _same_length(match: re.Match[bytes]) -> bytes:
    """Replace a date by a fixed one of the same length, so that the file's offsets stay true."""
    name = match.group(1)
    room = len(match.group()) - len(name) - 4
    return b"/" + name + b" (" + _EPOCH[:room].ljust(room, b"0") + b")"
