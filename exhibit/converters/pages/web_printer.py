"""Prints web pages with one Chromium, which has no network access and uses a new profile for each page.

Our own client, which connects only to checked addresses, fetches whatever a page requests and passes it to
the browser.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from exhibit.converters.pages.chromium import import_browser_error, run_browser
from exhibit.converters.pages.download import USER_AGENT, Downloader, FetchError, PageReply, Resource
from exhibit.converters.pages.print import fix_dates, make_html, make_pdf_options
from exhibit.storage.http import REDIRECTS, HttpError

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Route

UNFINISHED = "printed before everything on the page had loaded"
_NOWHERE = "leads to an address that cannot be reached"
# the server's headers that change how a page looks; Content-Disposition would make it a download
_KEPT_HEADERS = ("content-language", "content-security-policy", "referrer-policy")
_IDLE_SECONDS = 10.0  # seconds to wait until the network is idle: pages that poll are never idle
_CLOSE_SECONDS = 10.0  # seconds after which a browser that hangs is killed
_REVEAL = Path(__file__).with_name("reveal.js").read_text(encoding="utf-8")


class PagePrinter:
    """Prints pages whose HTML is already downloaded; their images, styles and scripts are fetched for the browser."""

    def __init__(self, downloader: Downloader, *, timeout: float, pages: int) -> None:
        self._downloader = downloader
        self._timeout = timeout
        self._places = asyncio.Semaphore(pages)
        self._launching = asyncio.Lock()
        self._browser: Browser | None = None
        self._stack = AsyncExitStack()

    @property
    def browser(self) -> str:
        """The version of the browser that printed the last page."""
        return self._browser.version if self._browser else ""

    async def aclose(self) -> None:
        """Close the browser."""
        await self._stack.aclose()

    async def print(self, reply: PageReply, url: str) -> tuple[bytes, str, str]:
        """Return a page's PDF, its final address, and a note, which is empty if the page had loaded completely."""
        async with self._places:
            browser = await self.started_browser()
            with suppress(GoneError):
                return await self._attempt(browser, reply, url)
            # this page or another may have crashed the browser: try it again in a browser of its own
            async with run_browser(tell=True) as browser:
                with suppress(GoneError):
                    return await self._attempt(browser, reply, url)
            raise FetchError("the browser cannot print the page", "it makes the browser crash", fate="failed", url=url)

    async def _attempt(self, browser: Browser, reply: PageReply, url: str) -> tuple[bytes, str, str]:
        context = None
        try:
            async with asyncio.timeout(2 * self._timeout):
                context = await browser.new_context(
                    user_agent=f"Mozilla/5.0 (compatible; {USER_AGENT})",
                    locale="en-GB",
                    timezone_id="UTC",
                    service_workers="block",
                    accept_downloads=False,
                )
                return await self.print_page(await context.new_page(), reply, url)
        except (TimeoutError, import_browser_error(late=True)):
            detail = f"in the browser, after {self._timeout:g} s"
            raise FetchError("timed out", detail, fate="failed", url=url, status=reply.status) from None
        except import_browser_error() as error:
            if not browser.is_connected() or re.search(r"has been closed|crashed|ERR_ABORTED", error.message):
                raise GoneError from error
            detail = error.message.splitlines()[0]
            raise FetchError("the browser cannot print the page", detail, fate="failed", url=url) from error
        finally:
            if context is not None:
                # a page in an endless loop may not answer; its process ends with the browser
                with suppress(import_browser_error(), TimeoutError):
                    await asyncio.wait_for(context.close(), _CLOSE_SECONDS)

    async def print_page(self, page: Page, reply: PageReply, url: str) -> tuple[bytes, str, str]:
        """Load a reply into a browser page and print it; return the PDF, the final address, and a note."""
        visit = _Visit(page, self._downloader, reply)
        # one route for all requests: when a route ends, requests may be lost on a busy machine
        await page.context.route("**/*", visit.answer)
        await page.goto(url, wait_until="domcontentloaded", timeout=1000 * self._timeout)
        note = "" if await self._await_settled(page) else UNFINISHED
        if visit.astray is not None:
            raise visit.astray
        if not page.url.startswith(("http://", "https://")):
            raise FetchError(_NOWHERE, page.url, fate="refused", url=page.url, status=reply.status)
        data = await page.pdf(**make_pdf_options(margins="15mm"))
        return fix_dates(data), page.url, note

    async def _await_settled(self, page: Page) -> bool:
        """Wait until the page and its images have loaded and the network is idle; return False on a timeout."""
        idle = min(_IDLE_SECONDS, self._timeout / 2)
        try:
            async with asyncio.timeout(self._timeout / 2 + idle):
                await page.wait_for_load_state("load", timeout=500 * self._timeout)
                with suppress(import_browser_error()):  # the page moved on: wait for the load of the new page below
                    await asyncio.wait_for(page.evaluate(_REVEAL), idle)
                await page.wait_for_load_state("load", timeout=1000 * idle)
                await page.wait_for_load_state("networkidle", timeout=1000 * idle)
        except (TimeoutError, import_browser_error(late=True)):
            return False
        return True

    async def started_browser(self) -> Browser:
        """Return the browser; start it at first use, and again after a crash."""
        async with self._launching:
            if self._browser is None or not self._browser.is_connected():
                self._browser = await self._stack.enter_async_context(run_browser(tell=True))
            return self._browser


class GoneError(Exception):
    """The browser, or the page's process, ended during printing."""


class _Visit:
    """A page in the browser, and the replies to its requests."""

    def __init__(self, page: Page, downloader: Downloader, reply: PageReply) -> None:
        self._page, self._downloader = page, downloader
        # the page itself, until the browser has received it; its later requests are fetched
        self._given: PageReply | None = reply
        self.astray: FetchError | None = None  # set if a script or a refresh leads to a page that cannot be printed

    async def answer(self, route: Route) -> None:
        """Answer the browser's first request with the downloaded page, and fetch the replies to its later requests."""
        if self._given is not None:
            given, self._given = self._given, None
            await route.fulfill(status=200, headers=_make_headers(given), body=_make_body(given))
            return
        request = route.request
        moves = request.is_navigation_request()
        asked = Resource(request.method, request.url, request.headers, request.post_data_buffer, moves)
        leads = moves and request.frame == self._page.main_frame
        with suppress(import_browser_error()):  # the page is closed
            try:
                status, headers, body = await asyncio.to_thread(self._downloader.resource, asked)
            except HttpError as error:
                if leads:
                    self.astray = FetchError(_NOWHERE, str(error), fate="refused", url=request.url)
                await route.abort()
                return
            target = headers.get("location", "") if moves and status in REDIRECTS else ""
            if leads and not target:
                wrong = f"leads to a page with HTTP {status}"
                self.astray = (
                    FetchError(wrong, request.url, fate="failed", url=request.url, status=status)
                    if status >= 400
                    else None
                )
            if target:  # the browser does not follow a redirect that we return, but it follows a refresh
                page = f'<meta http-equiv="refresh" content="0;url={escape(urljoin(request.url, target))}">'
                await route.fulfill(status=200, content_type="text/html", body=page)
            else:
                await route.fulfill(status=status, headers=headers, body=body)


def _make_headers(reply: PageReply) -> dict[str, str]:
    headers = {name: reply.headers[name] for name in _KEPT_HEADERS if name in reply.headers}
    declared = reply.headers.get("content-type", "")
    if reply.kind == "text":
        declared = "text/html; charset=utf-8"
    elif "html" not in declared.lower():
        declared = "text/html"  # with a wrong type the browser would download the page instead of showing it
    return {**headers, "content-type": declared}


def _make_body(reply: PageReply) -> bytes:
    return make_html(reply.text).encode("utf-8") if reply.kind == "text" else reply.data
