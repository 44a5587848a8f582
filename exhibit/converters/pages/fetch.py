"""Downloads URLs as PDFs: the publisher's PDF if there is one, else the page printed by Chromium.

Fetched files are stored, so that the next run requests only the missing files. Chromium is started anew for each page
and has no network access: our own client, which connects only to checked addresses, fetches what a page requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urlparse, urlsplit

from tqdm import tqdm

from exhibit.converters import Item, Tally
from exhibit.converters.core.source import key_by_name
from exhibit.converters.pages.chromium import import_browser_error, make_html, make_pdf, run_browser
from exhibit.converters.pages.download import DISALLOWED, USER_AGENT, Downloader, FetchError, PageReply, Policy, flaw_of
from exhibit.runtime.command import parse_positive, parse_seconds
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import LONGEST_NAME
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import HttpError

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

__all__ = ["Policy", "UrlLine", "add_fetch_arguments", "fetch_all", "read_policy", "report"]

MAX_PAGES = 8  # most pages that are downloaded or printed at the same time
MAX_PAGES_OF_HOST = 2
MAX_THREADS = 32  # threads for these downloads and for the requests of pages in the browser
_RECIPE = 4  # increase it when pages are printed differently: cached files with another number are not used


@dataclass(frozen=True)
class UrlLine:
    url: str
    filename: str  # the name in the corpus, made from the URL
    path: Path | None = None  # the downloaded or printed PDF
    reason: str = ""  # the reason why there is no PDF
    detail: str = ""
    final_url: str = ""
    status: int | None = None
    sha256: str = ""
    note: str = ""  # a note for readers of the PDF
    printer: str = ""  # empty if the PDF is the publisher's


def filename_of(url: str) -> str:
    """Return the name of a URL's PDF in the corpus: the last segment of its path and its fragment, as written."""
    parts = urlparse(url)
    stem = parts.path.rpartition("/")[2] + (f"#{parts.fragment}" if parts.fragment else "")
    if not stem:
        raise SourceError(f"{url}: no file name in it, its path ends in '/'; use the address of one page")
    if "/" in stem or "\0" in stem:
        raise SourceError(f"{url}: the part after '#' has a '/', which no file name can have; remove this part")
    name = stem if stem.lower().endswith(".pdf") else f"{stem}.pdf"
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NAME:
        raise SourceError(f"{url}: its file name has {size} bytes, but the limit is {LONGEST_NAME}; remove this URL")
    return name


def make_corpus_names(urls: Iterable[str]) -> dict[str, str]:
    return {url: name for name, url in key_by_name((filename_of(url), url) for url in urls).items()}


def _load(folder: Path, url: str, filename: str) -> UrlLine | None:
    """Return the stored result for a URL; None if there is no result or its file has changed."""
    path, record = _find_files(folder, url)
    with suppress(OSError, ValueError, TypeError):  # never fetched, or the run was killed between the two files
        known = UrlLine(**json.loads(record.read_bytes()))
        if sha256_of(path) == known.sha256:
            return replace(known, path=path, filename=filename)
    return None


def _save(folder: Path, fetched: UrlLine, data: bytes) -> UrlLine:
    """Store a PDF and then its record; a PDF without a record therefore counts as not fetched."""
    path, record = _find_files(folder, fetched.url)
    fetched = replace(fetched, sha256=hashlib.sha256(data).hexdigest())
    write_whole(path, data)
    write_whole(record, json.dumps({**asdict(fetched), "path": None}))
    return replace(fetched, path=path)


def _find_files(folder: Path, url: str) -> tuple[Path, Path]:
    key = hashlib.sha256(f"{_RECIPE} {url}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return folder / f"{key}.pdf", folder / f"{key}.json"


def add_fetch_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("fetching").add_argument
    delay = "seconds between two requests to one host; robots.txt may ask for more (default: %(default)s)"
    add("--delay", type=parse_seconds, default=0.5, metavar="S", help=delay)
    add("--timeout", type=parse_seconds, default=60.0, metavar="S", help="time limit of a page (default: %(default)s)")
    large = "leave out larger pages and files (default: %(default)s)"
    add("--max-bytes", type=parse_positive, default=100 << 20, metavar="N", help=large)
    add("--refetch", action="store_true", help="fetch again the pages that an earlier run has stored")
    add("--ignore-robots", action="store_true", help="also fetch pages that robots.txt forbids")
    private = "allow addresses of this machine, of private networks and of cloud metadata services"
    add("--allow-private", action="store_true", help=private)


def read_policy(options: Namespace) -> Policy:
    return Policy(**{name: value for name, value in vars(options).items() if name in Policy.__dataclass_fields__})


def report(fetched: Mapping[str, UrlLine], tally: Tally, *, items: Mapping[str, Sequence[Item]] | None = None) -> None:
    """Count URLs without a PDF by reason, each as often as the source lists it; record notes on the other URLs."""
    for url, line in fetched.items():
        name = f"{line.url}: {line.detail}" if line.detail else line.url
        if line.path is None:
            leave = tally.leave_out if line.reason == DISALLOWED else tally.fault
            known: Sequence[Item | None] = (items or {}).get(url) or [None]
            for item in known:
                leave(line.reason, name, item=item)
        elif line.note:
            tally.note(line.note, name)


def fetch_all(urls: Sequence[str], *, policy: Policy, folder: Path | None = None) -> dict[str, UrlLine]:
    """Return the result for each distinct URL, in order; raise if a URL gives no file name or the name of another."""
    flaws = {url: flaw for url in urls if (flaw := flaw_of(url))}
    names = make_corpus_names(url for url in urls if url not in flaws)
    folder = folder or find_cache_folder() / "web"
    # remove user name and password from the URL
    pages = {url: UrlLine(re.sub(r"//[^/@]*@", "//…@", url), "", reason=flaw) for url, flaw in flaws.items()}
    if not policy.refetch:
        pages |= {url: known for url, name in names.items() if (known := _load(folder, url, name)) is not None}
    missing = {url: name for url, name in names.items() if url not in pages}
    folder.mkdir(parents=True, exist_ok=True)
    pages |= asyncio.run(_fetch_missing(missing, folder, policy)) if missing else {}
    return {url: pages[url] for url in urls}


async def _fetch_missing(names: Mapping[str, str], folder: Path, policy: Policy) -> dict[str, UrlLine]:
    free = asyncio.Semaphore(MAX_PAGES)
    hosts: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(MAX_PAGES_OF_HOST))

    async def fetch(line: UrlLine) -> UrlLine:
        async with hosts[urlsplit(line.url).netloc.lower()], free:
            try:
                reply = await asyncio.to_thread(downloader.get, urldefrag(line.url).url)
                line = replace(line, final_url=reply.url, status=reply.status)
                if reply.kind == "pdf":
                    return _save(folder, line, reply.data)
                return _save(folder, *await _print_web_page(line, reply, downloader, timeout=policy.timeout))
            except FetchError as error:
                return UrlLine(line.url, line.filename, reason=error.reason, detail=error.detail, status=error.status)
            finally:
                bar.update()

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MAX_THREADS))
    with closing(Downloader(policy)) as downloader, tqdm(desc="fetching", total=len(names), disable=None) as bar:
        lines = await asyncio.gather(*(fetch(UrlLine(url, name)) for url, name in names.items()))
    return {line.url: line for line in lines}


# the server's headers that change how a page looks; Content-Disposition would make it a download
_KEPT_HEADERS = ("content-language", "content-security-policy", "referrer-policy")
_REVEAL = Path(__file__).with_name("reveal.js").read_text(encoding="utf-8")


async def _print_web_page(
    line: UrlLine, reply: PageReply, downloader: Downloader, *, timeout: float
) -> tuple[UrlLine, bytes]:
    """Print a page whose HTML is already downloaded; its images, styles and scripts are fetched for the browser."""
    if reply.kind == "text":
        headers = {"content-type": "text/html; charset=utf-8"}
        reply = replace(reply, data=make_html(reply.text).encode("utf-8"), headers=headers)
    fragment = urldefrag(line.url).fragment
    async with run_browser() as browser:
        try:
            async with asyncio.timeout(2 * timeout):
                agent = f"Mozilla/5.0 (compatible; {USER_AGENT})"
                context = await browser.new_context(
                    user_agent=agent, locale="en-GB", timezone_id="UTC", service_workers="block", accept_downloads=False
                )
                page = await context.new_page()
                visit = _Visit(page, downloader, reply)
                # keep one route for all requests: on a busy machine, requests may be lost when a route ends
                await context.route("**/*", visit.answer)
                address = f"{reply.url}#{fragment}" if fragment else reply.url
                await page.goto(address, wait_until="domcontentloaded", timeout=1000 * timeout)
                settled = await _await_settled(page, timeout)
                note = "" if settled else "printed before everything on the page had loaded"
                if visit.target:
                    raise FetchError("leads to another page; list its address instead", visit.target)
                printed = replace(line, final_url=page.url, note=note, printer=f"Chromium {browser.version}")
                return printed, await make_pdf(page, "15mm")
        except (TimeoutError, import_browser_error(late=True)):
            raise FetchError("timed out", f"in the browser, after {timeout:g} s", status=reply.status) from None
        except import_browser_error() as error:
            raise FetchError("the browser cannot print the page", error.message.splitlines()[0]) from error


async def _await_settled(page: Page, timeout: float) -> bool:
    """Wait until the page and its images have loaded and the network is idle; return False on a timeout."""
    idle = min(10.0, timeout / 2)  # seconds: pages that poll are never idle
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
    def __init__(self, page: Page, downloader: Downloader, reply: PageReply) -> None:
        self._page, self._downloader = page, downloader
        self._reply: PageReply | None = reply  # the page, until the browser has received it
        self.target = ""  # the address to which a script or a refresh leads

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
        with suppress(import_browser_error()):  # the page is closed
            if request.is_navigation_request() and request.frame == self._page.main_frame:
                self.target = request.url
                await route.abort()
                return
            try:
                status, headers, body = await asyncio.to_thread(
                    self._downloader.fetch_for_browser,
                    request.method, request.url, request.headers, request.post_data_buffer,
                )  # fmt: skip
            except HttpError:
                await route.abort()
            else:
                await route.fulfill(status=status, headers=headers, body=body)
