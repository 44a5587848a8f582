"""One URL over HTTP, politely: robots.txt, pauses, retries, redirects each checked, limits on time and size."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

import httpx

from exhibit.converters._web.gate import MARK, Addresses, FetchError, Gate, flaw_of
from exhibit.evidence.read import has_page, suffix_of
from exhibit.evidence.readers import picture
from exhibit.schemas import __version__
from exhibit.storage.http import ACCEPT, LONGEST_WAIT, BodyError, TooLargeError, body_blocks, seconds_asked
from exhibit.storage.robots import Rules, rules_for

ROBOT = "exhibit-rag"
USER_AGENT = f"{ROBOT}/{__version__}"

Kind = Literal["pdf", "html", "text", "file"]
"""A file is one that a reader makes a page of: a Word document, a workbook."""

_MOST_HOPS = 10  # redirects: browsers follow twenty, and pages need one or two
_LONGEST_CRAWL_DELAY = 30.0  # seconds: a list of pages must end
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_ROBOTS_BYTES = 500 << 10  # as RFC 9309 asks
_SNIFF = 1024  # bytes that tell a kind of file: PDF and HTML say it in the first
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8,*/*;q=0.5"


@dataclass(frozen=True)
class Policy:
    """How to behave towards servers, and what to accept from them."""

    allow_private: bool = False
    ignore_robots: bool = False
    per_host: int = 2
    delay: float = 0.5
    timeout: float = 60.0
    max_bytes: int = 100 << 20
    retries: int = 3
    backoff: float = 1.0
    """Seconds before the first retry; each further one waits twice as long."""
    refetch: bool = False
    pages: int = 4
    """Pages printed at one time."""


@dataclass(frozen=True)
class Reply:
    """What a server gave for a URL in the end."""

    url: str
    status: int
    headers: httpx.Headers
    kind: Kind | None = None
    data: bytes = b""
    location: str | None = None

    @property
    def suffix(self) -> str:
        """The ending that says how a file is to be read: by its declared type, else by its address."""
        return _suffix(self.url, self.headers)

    @property
    def text(self) -> str:
        """The body as text: by the declared charset, else UTF-8, else Windows' Latin."""
        declared = self.headers.get("content-type", "").partition("charset=")[2].partition(";")[0].strip(" \"'")
        for charset in (declared, "utf-8-sig"):
            try:
                return self.data.decode(charset)
            except (LookupError, UnicodeDecodeError):
                continue
        return self.data.decode("cp1252", errors="replace")


class Hosts:
    """Keeps to a number of pages at a time and a pause between requests, host by host."""

    def __init__(self, policy: Policy) -> None:
        self._delay: dict[str, float] = defaultdict(lambda: policy.delay)
        self._next: dict[str, float] = defaultdict(float)
        self._slots: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(policy.per_host))

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Hold one of the host's places."""
        async with self._slots[host]:
            yield

    async def turn(self, host: str) -> None:
        """Wait until the host may be asked again."""
        now = time.monotonic()
        start = max(now, self._next[host])
        self._next[host] = start + self._delay[host]
        await asyncio.sleep(start - now)

    def pause(self, host: str, seconds: float) -> None:
        """Leave the host alone for a while."""
        self._next[host] = max(self._next[host], time.monotonic() + seconds)

    def slow_down(self, host: str, delay: float) -> None:
        """Ask the host less often from now on."""
        self._delay[host] = max(self._delay[host], min(delay, _LONGEST_CRAWL_DELAY))


class Downloader:
    """Fetches URLs through the gate; one connection pool, fresh cookies for every URL."""

    def __init__(self, policy: Policy, addresses: Addresses, gate: Gate) -> None:
        self.hosts = Hosts(policy)
        self._policy = policy
        self._addresses = addresses
        self._robots: dict[str, asyncio.Task[Rules]] = {}
        self._transport = httpx.AsyncHTTPTransport(proxy=httpx.Proxy(gate.url))

    async def aclose(self) -> None:
        """Close the connections."""
        for task in self._robots.values():
            task.cancel()
        await asyncio.gather(*self._robots.values(), return_exceptions=True)
        await self._transport.aclose()

    async def get(self, url: str) -> Reply:
        """Return a PDF, a page, a text or a file that has a reader, or raise FetchError."""
        reply = await self._follow(url, limit=self._policy.max_bytes, sift=True)
        if reply.status >= 400:
            phrase = httpx.codes.get_reason_phrase(reply.status).lower()
            reason = f"HTTP {reply.status} {phrase}".rstrip()
            raise FetchError("failed", reason, url=reply.url, status=reply.status)
        return reply

    async def _follow(self, url: str, *, limit: int, sift: bool) -> Reply:
        """Follow redirects one by one; each place is checked before it is asked."""
        # a client of its own: cookies set on the way serve the next hop and no other URL
        client = httpx.AsyncClient(transport=self._transport, timeout=None, trust_env=False)
        client.headers.update({"User-Agent": USER_AGENT, "Accept": _ACCEPT, **ACCEPT})
        for _ in range(_MOST_HOPS + 1):
            await self._check(url, robots=sift)
            reply = await self._patiently(client, url, limit=limit, sift=sift)
            if reply.location is None:
                return reply
            url = reply.location
        raise FetchError("failed", "redirects without end", f"more than {_MOST_HOPS}", url=url)

    async def _check(self, url: str, *, robots: bool) -> None:
        flaw = flaw_of(url)
        if flaw is not None:
            raise FetchError("refused", flaw, f"redirected to {url}", url=url)
        parts = urlsplit(url)
        host, port = _host(url)
        try:
            await self._addresses.resolve(host, port)
        except FetchError as error:
            error.url = url
            raise
        if not robots or self._policy.ignore_robots:
            return
        rules = await self._rules(f"{parts.scheme}://{parts.netloc}", host)
        path = httpx.URL(url).raw_path.decode("ascii")
        if not rules.allow(path):
            raise FetchError("disallowed", "robots.txt asks to leave it (--ignore-robots)", url=url)

    async def _rules(self, origin: str, host: str) -> Rules:
        """Return what robots.txt says, asking each site once."""
        if origin not in self._robots:
            self._robots[origin] = asyncio.create_task(self._ask_robots(f"{origin}/robots.txt"))
        rules = await asyncio.shield(self._robots[origin])
        self.hosts.slow_down(host, rules.delay)
        return rules

    async def _ask_robots(self, url: str) -> Rules:
        try:
            reply = await self._follow(url, limit=_ROBOTS_BYTES, sift=False)
        except FetchError as error:
            if error.fate == "unusable":
                return Rules()  # larger than any robots.txt: something else stands there
            if error.fate == "failed":  # the host's fault, not the file's: its pages would fail in the same way
                raise FetchError("failed", error.reason, error.detail or "robots.txt", url=url) from error
            raise FetchError("failed", "robots.txt cannot be read", str(error), url=url) from error
        if reply.status >= 500:
            raise FetchError("failed", "robots.txt cannot be read", f"HTTP {reply.status}", url=url)
        return rules_for(ROBOT, reply.text) if reply.status == httpx.codes.OK else Rules()

    async def _patiently(self, client: httpx.AsyncClient, url: str, *, limit: int, sift: bool) -> Reply:
        """Ask, and ask again after a pause when the failure may pass."""
        host, _ = _host(url)
        for attempt in range(self._policy.retries + 1):
            await self.hosts.turn(host)
            wait = self._policy.backoff * 2**attempt
            problem = ""
            try:
                async with asyncio.timeout(self._policy.timeout):
                    reply = await _ask(client, url, limit=limit, sift=sift)
                if reply.status not in _PASSING or attempt == self._policy.retries:
                    return reply
                wait = max(seconds_asked(reply.headers.get("retry-after", "")), wait)
            except TimeoutError:
                # not tried again now: a page that never ends would take this long every time
                raise FetchError("failed", "timed out", f"after {self._policy.timeout:g} s", url=url) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                problem = str(error) or type(error).__name__
                if attempt == self._policy.retries or "CERTIFICATE_VERIFY_FAILED" in problem:
                    raise FetchError("failed", "no connection, or a broken one", problem, url=url) from error
            if wait > LONGEST_WAIT:
                raise FetchError("failed", "the server asks to come back later", f"in {wait:g} s", url=url)
            self.hosts.pause(host, wait)
        raise AssertionError("unreachable: the last attempt returns or raises")


async def _ask(client: httpx.AsyncClient, url: str, *, limit: int, sift: bool) -> Reply:
    """Make one request; stop reading as soon as the body is too large or clearly no document."""
    async with client.stream("GET", url) as response:
        if MARK in response.headers:
            raise httpx.ConnectError(response.headers[MARK])
        reply = Reply(url, response.status_code, response.headers)
        if response.next_request is not None:
            return replace(reply, location=str(response.next_request.url))
        if response.status_code >= 400:
            return reply
        data = bytearray()
        kind: Kind | None = None
        if _declared(response.headers) > limit:
            raise _too_large(reply, limit)
        try:
            async for block in body_blocks(response, most=limit):
                data += block
                if sift and kind is None and len(data) >= _SNIFF:
                    kind = _kind_of(reply, bytes(data[:_SNIFF]))
        except TooLargeError as error:
            raise _too_large(reply, limit) from error
        except BodyError as error:
            raise FetchError("unusable", "its encoding cannot be undone", str(error), url=url) from error
        if sift and kind is None:
            kind = _kind_of(reply, bytes(data))
        return replace(reply, kind=kind, data=bytes(data))


def _kind_of(reply: Reply, head: bytes) -> Kind:
    """Tell what a body is: by its first bytes, and where they do not say by its declared type."""
    declared = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if head.startswith(b"%PDF-") or (declared == "application/pdf" and b"%PDF-" in head):
        return "pdf"
    if not head.strip():
        raise FetchError("unusable", "empty", url=reply.url, status=reply.status)
    if b"\0" not in head or b"charset=utf-16" in reply.headers.get("content-type", "").lower().encode():
        if declared in {"text/html", "application/xhtml+xml"} or _HTML.match(_after_comments(head)):
            return "html"
        if declared in {"text/plain", ""}:
            return "text"
    suffix = _suffix(reply.url, reply.headers)
    if has_page(Path(f"x{suffix}")) and suffix not in picture.SUFFIXES:  # a picture at an address is seldom a scan
        return "file"
    shown = declared or "unknown type"
    raise FetchError("unusable", "neither a page nor a PDF", shown, url=reply.url, status=reply.status)


def _suffix(url: str, headers: httpx.Headers) -> str:
    declared = headers.get("content-type", "").partition(";")[0].strip().lower()
    return suffix_of(declared) or PurePosixPath(urlsplit(url).path).suffix.lower()


def _after_comments(head: bytes) -> bytes:
    """Return what follows the white space and the comments that a page begins with."""
    head = head.lstrip()
    while head.startswith(b"<!--"):
        head = head[4:].partition(b"-->")[2].lstrip()
    return head


def _too_large(reply: Reply, limit: int) -> FetchError:
    detail = f"more than {limit} bytes"
    return FetchError("unusable", "too large (--max-bytes)", detail, url=reply.url, status=reply.status)


def _declared(headers: httpx.Headers) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


def _host(url: str) -> tuple[str, int]:
    parsed = httpx.URL(url)
    return parsed.raw_host.decode("ascii"), parsed.port or (443 if parsed.scheme == "https" else 80)
