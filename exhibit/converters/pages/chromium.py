"""Prints documents to PDF in a separate process: HTML with Chromium, plain text with ReportLab.

It finds a Chromium, or installs Playwright's or, as root on Debian, the distribution's (`exhibit doctor --fix browser`,
which `make` runs).
"""

from __future__ import annotations

import asyncio
import html
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from exhibit.converters import Block, RawDocument
from exhibit.converters.pages import text_pdf
from exhibit.engine import Limits, Worker
from exhibit.engine.limits import lift_memory_limit, watch_programs
from exhibit.evidence.files import decode_page
from exhibit.evidence.read import has_page, read_document, read_printable
from exhibit.evidence.readers.html import HTML_SUFFIXES as HTML
from exhibit.evidence.readers.html import Printable
from exhibit.evidence.readers.text import decode_file
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import DocumentError, ServiceError
from exhibit.schemas.models import Printing
from exhibit.storage.atomic import make_scratch_folder, write_whole
from exhibit.storage.programs import find_program

if TYPE_CHECKING:
    from playwright.async_api import Browser, Error, Page, Route

NEEDED = (
    "HTML, office files and mails, and texts in Chinese, Japanese or Korean are printed by Playwright, "
    "which is not installed: pip install 'exhibit-rag[print]', then exhibit doctor --fix browser"
)
HERE = importlib.util.find_spec("playwright") is not None
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
# flags that stop background requests
FLAGS = re.findall(r"^--.*", Path(__file__).with_suffix(".txt").read_text(encoding="ascii"), re.MULTILINE)


def find_browser() -> Path | None:
    """Return a browser's executable; None if there is none. `EXHIBIT_BROWSER` overrides the search."""
    chosen = os.environ.get("EXHIBIT_BROWSER") or next(filter(None, map(find_program, _NAMES)), None)
    if chosen:
        return Path(chosen)
    if HERE:
        from playwright.sync_api import sync_playwright

        with suppress(Exception), sync_playwright() as playwright:  # Playwright's driver may fail with any error
            path = Path(playwright.chromium.executable_path)
            return path if path.is_file() else None
    return None


def launch_options(folder: Path) -> dict[str, Any]:
    """Return the launch options of a browser for printing; `folder` is the folder for its configuration."""
    browser = find_browser()
    if browser is None:
        raise ServiceError("no Chromium to print with; run exhibit doctor --fix browser, or set EXHIBIT_BROWSER")
    return {
        "executable_path": browser,
        "args": [*FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND"],
        "env": text_pdf.make_sealed_environment(folder),
        "proxy": {"server": "http://nowhere.invalid:9", "bypass": "<-loopback>"},
    }


@asynccontextmanager
async def run_browser() -> AsyncIterator[Browser]:
    if not HERE:
        raise ServiceError(NEEDED)
    from playwright.async_api import async_playwright

    async with AsyncExitStack() as stack:
        # call it in a thread: inside a running event loop, Playwright cannot return its browser's path
        options = await asyncio.to_thread(launch_options, stack.enter_context(make_scratch_folder()))
        try:
            driver = await async_playwright().start()
        except Exception as error:  # Playwright raises errors of its pipe to the driver, even plain Exception
            needs = "raise the limits of memory (ulimit -v) and of open files (ulimit -n)"
            raise ServiceError(f"Playwright's driver does not start ({error!r:.200}); {needs}") from error
        stack.push_async_callback(driver.stop)
        for sandbox in (False,) if is_root() else (True, False):  # root and some systems have no sandbox
            try:
                browser = await driver.chromium.launch(chromium_sandbox=sandbox, **options)
                break
            except import_browser_error() as error:
                problem = error.message.splitlines()[0]
        else:
            raise ServiceError(f"Chromium does not start: {problem}; run exhibit doctor --fix browser")
        stack.push_async_callback(browser.close)
        yield browser


def import_browser_error(*, late: bool = False) -> type[Error]:
    from playwright.async_api import Error, TimeoutError

    return TimeoutError if late else Error


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def install_browser() -> list[str]:
    """Install Playwright's Chromium or, as root on Debian, the distribution's; return why each attempt failed."""
    attempts = {"Playwright's Chromium": [[sys.executable, "-m", "playwright", "install", "chromium"]]}
    if find_program("apt-get") and is_root():
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        attempts["the distribution's Chromium"] = [["apt-get", "update", "-qq"], install]
    environment, problems = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, []
    for name, commands in attempts.items():
        for command in commands:
            done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
            if done.returncode:
                break
        if not done.returncode and find_browser() is not None:
            return []
        # later lines of the output are a stack trace
        lines = re.findall(r"^(?:E: |\w*Error: ).*", done.stdout + done.stderr, re.MULTILINE)
        problems.append(f"{name} cannot be installed: {lines[0] if lines else f'exit {done.returncode}'}")
    return problems


@guarded()
def main() -> int:
    """Find or install a browser and verify the pinned fonts; print the browser's path and the number of fonts."""
    fonts = list(map(text_pdf.find_font, text_pdf.read_font_hashes()))
    if not HERE:
        raise ServiceError(NEEDED)
    problems = [] if find_browser() else install_browser()
    if problems:
        raise ServiceError(f"{'; '.join(problems)}; set EXHIBIT_BROWSER to the executable of a Chromium")
    print(f"{find_browser()}, {len(fonts)} fonts")
    return 0


_DATE = re.compile(rb"(?:(?<=/CreationDate \()|(?<=/ModDate \())D:[^()]*(?=\))")
_EPOCH = b"D:20000101000000+00'00'"
# elements that cannot be played are drawn differently in each print, but their fallback text is not
_VIDEO = re.compile(r"(</?)(?=video\b)", re.IGNORECASE)
_ADDRESS = "http://document.invalid/"
_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    # `sandbox` stops refreshes, even inside noscript; a page may show only its own content
    "content-security-policy": (
        "sandbox; default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline' data:; "
        "frame-src data:; object-src data:"
    ),
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
        self._runner, self._running = asyncio.Runner(), run_browser()
        with lift_memory_limit():
            self._browser = self._runner.run(self._running.__aenter__())
        self.version = self._browser.version
        return self

    def __exit__(self, *error: object) -> None:
        with self._runner:
            self._runner.run(self._running.__aexit__(None, None, None))

    def print_html(self, html: str, path: Path) -> None:
        """Print a self-contained HTML page to a PDF; its CSS may set the paper size with `@page { size: … }`."""
        try:
            data = self._runner.run(self._print_html(_VIDEO.sub(r"\1no-", html).encode("utf-8", "replace")))
        except import_browser_error() as error:
            self.__exit__()
            self.__enter__()  # a crashed page may have crashed the browser
            raise DocumentError(f"{path.name}: Chromium cannot print it: {error.message.splitlines()[0]}") from error
        write_whole(path, data)

    async def _print_html(self, html: bytes) -> bytes:
        async def answer_request(route: Route) -> None:
            request = route.request
            if request.url == _ADDRESS and request.frame.parent_frame is None and request.is_navigation_request():
                await route.fulfill(status=200, headers=_HEADERS, body=html)
            else:
                # an aborted navigation leaves the page unchanged; a failed navigation does not
                await route.abort("aborted")

        # a new page for each document, so that refreshes and timers cannot affect another document
        # the user agent is written into the PDF, and the browser's own contains the system's name
        page = await self._browser.new_page(
            offline=True, java_script_enabled=False, locale="en-GB", timezone_id="UTC", user_agent="exhibit-rag"
        )
        await page.route("**/*", answer_request)
        # the item's own limit applies: `page.pdf` has no timeout
        await page.goto(_ADDRESS, wait_until="load", timeout=0)
        data = await make_pdf(page, "22mm")
        await page.close()
        return data


async def make_pdf(page: Page, margin: str) -> bytes:
    """Return a page as a PDF, with a fixed date of equal length, so that offsets in the file stay valid."""
    data = await page.pdf(
        print_background=True,
        prefer_css_page_size=True,
        margin={"top": margin, "bottom": margin, "left": margin, "right": margin},
        tagged=False,  # tags contain the browser's node numbers, which differ between prints
    )
    return _DATE.sub(lambda match: _EPOCH[: len(match[0])].ljust(len(match[0]), b"0"), data)


def describe_printing(printers: Iterable[str]) -> Printing | None:
    names = sorted(set(printers) - {""})
    return Printing(printer=", ".join(names), fonts=text_pdf.read_font_hashes()) if names else None


def needs_missing_browser(document: RawDocument) -> bool:
    path = document.original
    return not HERE and path is not None and (path.suffix.lower() in HTML or has_page(path))


Press = Callable[[RawDocument], Printed]


@contextmanager
def start_printing(corpus: Path, limits: Limits) -> Iterator[Press]:
    """Yield a function that prints a document into a corpus; one process prints all documents, with one browser."""
    with make_scratch_folder() as folder:  # removed with the files of a killed browser
        worker = Worker[RawDocument, Printed].of(partial(_print, folder, corpus.absolute(), limits), limits=limits)
        browserless = True

        def print_document(raw: RawDocument) -> Printed:
            nonlocal browserless
            before, browserless = browserless, False  # a document that fails may leave a browser
            printed = worker.run(raw)
            browserless = before and printed.printer == text_pdf.name_printer()
            return printed

        try:
            yield print_document
        finally:
            (worker.rest if browserless else worker.close)()


@cache
def _start_printer(folder: Path) -> Printer:
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return Printer().__enter__()


def _print(folder: Path, corpus: Path, limits: Limits, raw: RawDocument) -> Printed:
    page, path = _read_page(raw), corpus / raw.filename
    if page is None:
        blocks: Sequence[Block] = raw.blocks or [Block("p", raw.text or "")]
        notes: tuple[str, ...] = ()
        if raw.original is not None:
            document = read_document(raw.original)
            blocks, notes = [Block("p", document.text)], document.notes
        if not any(text_pdf.needs_browser(block.text) for block in blocks):
            write_whole(path, text_pdf.pdf_of(blocks, title=raw.title, subject=raw.subject))
            return Printed(text_pdf.name_printer(), notes)
        page = Printable(make_html("\n\n".join(block.text for block in blocks)), notes)
    printer = _start_printer(folder)
    with watch_programs(limits, str(raw)):
        printer.print_html(page.html, path)
    return Printed(f"Chromium {printer.version}", page.notes)


def make_html(text: str) -> str:
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><style>{text_pdf.read_style('text')}</style>"
        f"<body><pre>{html.escape(text_pdf.make_printable(text), quote=False)}</pre></body></html>"
    )


def _read_page(raw: RawDocument) -> Printable | None:
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
    return _ENVELOPE.sub("", decode_page(data))


def split_filed_text(page: str) -> tuple[Block, ...]:
    """Return the blocks to print for a plain-text filing: monospaced, 80 columns by 66 lines."""
    return (Block("pre", page.replace("<PAGE>", text_pdf.PAGE_BREAK)),)


if __name__ == "__main__":
    sys.exit(main())
