"""Prints web pages with Chromium, which has no network access and is started for each page.

Our own client, which connects only to checked addresses, fetches what a page requests and passes it to the browser.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from exhibit.converters.pages.chromium import import_browser_error, run_browser
from exhibit.converters.pages.download import USER_AGENT, Downloader, FetchError, PageReply
from exhibit.converters.pages.print import fix_dates, make_pdf_options
from exhibit.storage.http import REDIRECTS, HttpError

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

UNFINISHED = "printed before everything on the page had loaded"
_NOWHERE = "leads to an address that cannot be reached"
# the server's headers that change how a page looks; Content-Disposition would make it a download
_KEPT_HEADERS = ("content-language", "content-security-policy", "referrer-policy")
_IDLE_SECONDS = 10.0  # seconds to wait until the network is idle: pages that poll are never idle
_REVEAL = Path(__file__).with_name("reveal.js").read_text(encoding="utf-8")


class PrintedPage(NamedTuple):
    """A page's PDF, its final address, the printer, and a note if the page had not loaded completely."""

    data: bytes
    url: str
    printer: str
    note: str


async def print_web_page(reply: PageReply, url: str, downloader: Downloader, *, timeout: float) -> PrintedPage:
    """Print a page whose HTML is already downloaded; its images, styles and scripts are fetched for the browser."""
    async with run_browser() as browser:
        try:
            async with asyncio.timeout(2 * timeout):
                context = await browser.new_context(
                    user_agent=f"Mozilla/5.0 (compatible; {USER_AGENT})",
                    locale="en-GB",
                    timezone_id="UTC",
                    service_workers="block",
                    accept_downloads=False,
                )
                page = await context.new_page()
                visit = _Visit(page, downloader, reply)
                # one route for all requests: when a route ends, requests may be lost on a busy machine
                await context.route("**/*", visit.answer)
                await page.goto(url, wait_until="domcontentloaded", timeout=1000 * timeout)
                note = "" if await _await_settled(page, timeout) else UNFINISHED
                if visit.astray is not None:
                    raise visit.astray
                if not page.url.startswith(("http://", "https://")):
                    raise FetchError(_NOWHERE, page.url, status=reply.status)
                data = await page.pdf(**make_pdf_options("15mm"))
                return PrintedPage(fix_dates(data), page.url, f"Chromium {browser.version}", note)
        except (TimeoutError, import_browser_error(late=True)):
            detail = f"in the browser, after {timeout:g} s"
            raise FetchError("timed out", detail, status=reply.status) from None
        except import_browser_error() as error:
            detail = error.message.splitlines()[0]
            raise FetchError("the browser cannot print the page", detail) from error


async def _await_settled(page: Page, timeout: float) -> bool:
    """Wait until the page and its images have loaded and the network is idle; return False on a timeout."""
    idle = min(_IDLE_SECONDS, timeout / 2)
    try:
        async with asyncio.timeout(timeout / 2 + idle):
            await page.wait_for_load_state("load", timeout=500 * timeout)
            with suppress(import_browser_error()):  # the page was replaced: wait below until the new page is loaded
                await asyncio.wait_for(page.evaluate(_REVEAL), idle)
            await page.wait_for_load_state("load", timeout=1000 * idle)
            await page.wait_for_load_state("networkidle", timeout=1000 * idle)
    except (TimeoutError, import_browser_error(late=True)):
        return False
    return True


class _Visit:
    """A page in the browser, and the replies to its requests."""

    def __init__(self, page: Page, downloader: Downloader, reply: PageReply) -> None:
        self._page, self._downloader = page, downloader
        self._reply: PageReply | None = reply  # the page itself, until the browser has received it
        self.astray: FetchError | None = None  # set if a script or refresh leads to a page that cannot be printed

    async def answer(self, route: Route) -> None:
        """Answer the browser's first request with the downloaded page, and fetch the replies to its later requests."""
        if self._reply is not None:
            reply, self._reply = self._reply, None
            headers = {name: reply.headers[name] for name in _KEPT_HEADERS if name in reply.headers}
            declared = reply.headers.get("content-type", "")
            # with another type the browser would download the page instead of showing it
            headers["content-type"] = declared if "html" in declared.lower() else "text/html"
            await route.fulfill(status=200, headers=headers, body=reply.data)
            return
        request = route.request
        moves = request.is_navigation_request()
        leads = moves and request.frame == self._page.main_frame
        with suppress(import_browser_error()):  # the page is closed
            try:
                status, headers, body = await asyncio.to_thread(
                    self._downloader.fetch_for_browser,
                    request.method, request.url, request.headers, request.post_data_buffer, follow=not moves,
                )  # fmt: skip
            except HttpError as error:
                if leads:
                    self.astray = FetchError(_NOWHERE, str(error))
                await route.abort()
                return
            target = headers.get("location", "") if moves and status in REDIRECTS else ""
            if target:  # the browser does not follow a redirect that we return, but it follows a refresh
                page = f'<meta http-equiv="refresh" content="0;url={escape(urljoin(request.url, target))}">'
                await route.fulfill(status=200, content_type="text/html", body=page)
                return
            if leads:
                wrong = f"leads to a page with HTTP {status}"
                failure = FetchError(wrong, request.url, status=status)
                self.astray = failure if status >= 400 else None
            await route.fulfill(status=status, headers=headers, body=body)
