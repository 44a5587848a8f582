"""Downloads URLs as PDFs: the publisher's PDF if there is one, else the page printed by Chromium.

The client obeys robots.txt, pauses, retries, and limits time and size; it connects only to checked addresses, because
each host is resolved once. Chromium has no network access: the client fetches what a page requests. Fetched files are
stored, so that the next run requests only the missing files.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import re
import socket
import threading
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from http.client import responses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urldefrag, urljoin, urlparse, urlsplit

import httpx
from tqdm import tqdm

from exhibit.converters import Item, Tally
from exhibit.converters.core.source import key_by_name
from exhibit.converters.pages.chromium import import_browser_error, make_html, make_pdf, run_browser
from exhibit.evidence.files import decode_page
from exhibit.runtime.command import parse_positive, parse_seconds
from exhibit.schemas import __version__
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import LONGEST_NAME
from exhibit.storage import http
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

ROBOT = "exhibit-rag"
USER_AGENT = f"{ROBOT}/{__version__}"
MAX_REDIRECTS = 10  # browsers follow twenty, and pages need one or two

Kind = Literal["pdf", "html", "text"]
NO_ADDRESS = "not a web address"
DISALLOWED = "robots.txt forbids this page (--ignore-robots)"
TOO_LARGE = "too large (--max-bytes)"
_REASONS = {
    http.TooLargeError: TOO_LARGE, http.BodyError: "the reply cannot be decompressed", http.LateError: "timed out",
    http.HttpError: "the connection failed",
}  # fmt: skip
_HTML = re.compile(rb"\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
# headers of a reply that are wrong after its body was read and decoded
_UNDONE = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie"})
_OURS = frozenset({"accept-encoding", "host", "connection"})  # headers that our client sets itself
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")  # the part of IPv6 that is allocated
# cloud services at addresses that Python calls global, and special blocks that Python does not know
_SPECIAL = [
    ipaddress.ip_network(block)
    for block in "168.63.129.16/32 192.0.0.0/24 192.88.99.0/24 2001::/23 2002::/16 3fff::/20".split()
]


@dataclass(frozen=True)
class Policy:
    allow_private: bool = False
    ignore_robots: bool = False
    delay: float = 0.5  # seconds between two requests to one host
    timeout: float = 60.0  # seconds for one page
    max_bytes: int = 100 << 20
    retries: int = 3
    refetch: bool = False


class FetchError(http.HttpError):
    """The error for a URL that gave no page: a reason by which failures are counted, and the details."""

    def __init__(self, reason: str, detail: str = "", **more: Any) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason, **more)
        self.reason, self.detail = reason, detail


def flaw_of(url: str) -> str | None:
    """Return why a string is not an acceptable web address; None if it is."""
    with suppress(httpx.InvalidURL, ValueError):
        parsed = httpx.URL(url)
        urlsplit(url).port  # noqa: B018  # the names are read with it, and it is stricter about some hosts
        if parsed.scheme in {"http", "https"} and parsed.host:
            return "a user name or password in the address" if parsed.userinfo else None
    return NO_ADDRESS


def is_public(address: str) -> bool:
    """Return whether an IP address is public; an IPv6 address that contains an IPv4 one is public only under NAT64."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip in _NAT64:  # the address of a public host in a network without IPv4
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL)


def _addresses_of(host: str, port: int, *, allow_private: bool) -> list[str]:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError("host not found; check the address and the network", host) from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    private = next((address for address in addresses if not allow_private and not is_public(address)), None)
    if private is not None:
        detail = private if private == host else f"{host} is {private}"
        raise FetchError("a private or local address (--allow-private)", detail)
    return addresses


@dataclass(frozen=True)
class PageReply:
    url: str
    status: int
    headers: Mapping[str, str]
    kind: Kind | None = None
    data: bytes = b""

    @property
    def text(self) -> str:
        """The body as text: in the declared charset, else UTF-8, else Windows-1252."""
        declared = self.headers.get("content-type", "").partition("charset=")[2].partition(";")[0].strip(" \"'")
        return decode_page(self.data, declared)


class Host:
    """One server: its robots.txt rules, and the earliest time of the next request."""

    def __init__(self, policy: Policy, stopped: threading.Event) -> None:
        self.retries = http.Retries(policy.retries, 1.0, stopped=stopped)
        self.robots: dict[str, http.Rules | FetchError] = {}  # the rules, or the error, by the address of robots.txt
        self.lock = threading.RLock()  # also held while robots.txt is requested
        self.delay, self.next_request, self.stopped = policy.delay, 0.0, stopped

    def wait_turn(self) -> None:
        with self.lock:
            now = time.monotonic()
            start = max(now, self.next_request)
            self.next_request = start + self.delay
        self.stopped.wait(start - now)


class Downloader:
    """Fetches URLs for any number of threads, with one connection pool and without cookies."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._stopped = policy, threading.Event()
        look_up = cache(partial(_addresses_of, allow_private=policy.allow_private))  # resolve each host once
        self._addresses: http.AddressPolicy = lambda host, port: look_up(host.strip("[]").lower(), port)
        accept = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8,*/*;q=0.5"
        headers = {"User-Agent": USER_AGENT, "Accept": accept}
        self._http = http.HttpClient(headers, connections=64, policy=self._addresses)
        self._hosts: dict[str, Host] = {}

    def close(self) -> None:
        self._stopped.set()
        self._http.close()

    def get(self, url: str) -> PageReply:
        """Return a server's reply with a PDF, a page or a text; raise FetchError otherwise."""
        reply = self._follow(url, self._policy.max_bytes, robots=not self._policy.ignore_robots)
        return replace(reply, kind=_kind_of(reply))

    def fetch_for_browser(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request that a page makes in the browser; return the status, headers and body of the reply."""
        # compare names without case, or our own header would be sent as well
        sent = {name.title(): value for name, value in headers.items() if name not in _OURS}
        with self._http.send(
            method, url, content=body, headers=sent, deadline=http.Deadline(self._policy.timeout),
            most=self._policy.max_bytes, follow=MAX_REDIRECTS,
        ) as response:  # fmt: skip
            kept = {name: value for name, value in response.headers.items() if name not in _UNDONE}
            return response.status, kept, response.read()

    def _follow(self, url: str, limit: int, *, robots: bool) -> PageReply:
        """Request a URL and follow its redirects, each of which must lead to an allowed address."""
        for _ in range(MAX_REDIRECTS + 1):
            reply = self.request(url, limit=limit, robots=robots)
            target = reply.headers.get("location", "") if reply.status in http.REDIRECTS else ""
            if not target:
                return reply
            url = urljoin(url, target)
        raise FetchError("redirects endlessly", f"more than {MAX_REDIRECTS}")

    def request(self, url: str, *, limit: int, robots: bool = True) -> PageReply:
        """Request a URL, unless its address or robots.txt forbids it, and return the reply, even if it redirects."""
        if flaw := flaw_of(url):
            raise FetchError(flaw, f"redirected to {url}")
        parsed = httpx.URL(url)
        name = parsed.raw_host.decode("ascii")
        self._addresses(name, parsed.port or (443 if parsed.scheme == "https" else 80))
        host = self._hosts.setdefault(name, Host(self._policy, self._stopped))
        path = parsed.raw_path.decode("ascii")
        if robots and not self._fetch_rules(host, urljoin(url, "/robots.txt")).allow(path):
            raise FetchError(DISALLOWED)
        return host.retries(partial(self._ask, url, host, limit))

    def _fetch_rules(self, host: Host, url: str) -> http.Rules:
        """Return the robots.txt rules of a site, which are requested only once."""
        with host.lock:
            if url not in host.robots:
                try:  # RFC 9309 requires at least 500 KiB
                    host.robots[url] = rules = http.Rules(ROBOT, self._follow(url, 500 << 10, robots=False).text)
                    host.delay = max(host.delay, min(rules.delay, 30.0))
                except FetchError as error:
                    # robots.txt is missing or too large
                    missing = error.reason == TOO_LARGE or (error.status or 500) < 500
                    host.robots[url] = http.Rules() if missing else error
            known = host.robots[url]
        if isinstance(known, FetchError):
            raise known
        return known

    def _ask(self, url: str, host: Host, limit: int) -> PageReply:
        """Send a request; a failure gets one of the fixed reasons by which failures are counted."""
        host.wait_turn()
        deadline = http.Deadline(self._policy.timeout)
        try:
            with self._http.send("GET", str(httpx.URL(url)), deadline=deadline, most=limit) as response:
                status = response.status
                if status < 400:
                    return PageReply(url, status, response.headers, data=response.read())
                wait = http.parse_retry_after(response.headers.get("retry-after", ""))
        except http.HttpError as error:  # do not retry a late reply: an endless page would take as long every time
            reason = next(reason for kind, reason in _REASONS.items() if isinstance(error, kind))
            raise FetchError(reason, str(error), transient=error.transient) from error
        reason = f"HTTP {status} {responses.get(status, '').lower()}".rstrip()
        raise FetchError(reason, status=status, wait=wait, transient=status in http.TRANSIENT)


def _kind_of(reply: PageReply) -> Kind:
    """Return the kind of a body by its first bytes or its declared type; raise FetchError if it is not a document."""
    stated = reply.headers.get("content-type", "").lower()
    head, declared = reply.data[:1024], stated.partition(";")[0].strip()
    if head.startswith(b"%PDF-") or (declared == "application/pdf" and b"%PDF-" in head):
        return "pdf"
    if not head.strip():
        raise FetchError("the reply is empty", status=reply.status)
    if b"\0" not in head or "charset=utf-16" in stated:
        if declared in {"text/html", "application/xhtml+xml"} or _HTML.match(head):
            return "html"
        if declared in {"text/plain", ""}:
            return "text"
    raise FetchError("neither a page nor a PDF", declared or "unknown type", status=reply.status)


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


def report(fetched: Mapping[str, UrlLine], tally: Tally, *, items: Mapping[str, Sequence[Item | None]] = {}) -> None:
    """Count URLs without a PDF by reason, each as often as the source lists it; record notes on the other URLs."""
    for url, line in fetched.items():
        name = f"{line.url}: {line.detail}" if line.detail else line.url
        if line.path is None:
            leave = tally.leave_out if line.reason == DISALLOWED else tally.fault
            for item in items.get(url) or [None]:
                leave(line.reason, name, item=item)
        elif line.note:
            tally.note(line.note, name)


def fetch_all(urls: Sequence[str], *, policy: Policy, folder: Path | None = None) -> dict[str, UrlLine]:
    """Return the result for each distinct URL, in order; raise if a URL gives no file name or the name of another."""
    flaws = {url: flaw for url in urls if (flaw := flaw_of(url))}
    by_name = key_by_name((filename_of(url), url) for url in urls if url not in flaws)
    names = {url: name for name, url in by_name.items()}
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
    # most pages that are downloaded or printed at the same time: eight, and two of one host
    free = asyncio.Semaphore(8)
    hosts: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(2))

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

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
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
            except http.HttpError:
                await route.abort()
            else:
                await route.fulfill(status=status, headers=headers, body=body)
