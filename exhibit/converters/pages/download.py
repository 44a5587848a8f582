"""Downloads URLs over HTTP: obeys robots.txt, pauses, retries, checks each redirect, limits time and size.

The browser has no network access, so this module also sends the requests that its pages make. Each host is resolved
once, and all connections use the address that was checked.
"""

import ipaddress
import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from exhibit.evidence.files import decode_page
from exhibit.evidence.read import has_page, suffix_of
from exhibit.evidence.readers import picture
from exhibit.schemas import __version__
from exhibit.storage.http import (
    LONGEST_WAIT,
    REDIRECTS,
    TRANSIENT,
    AddressPolicy,
    BodyError,
    Deadline,
    HttpClient,
    HttpError,
    LateError,
    Response,
    Retries,
    Rules,
    TooLargeError,
    parse_retry_after,
)

ROBOT = "exhibit-rag"
USER_AGENT = f"{ROBOT}/{__version__}"
MAX_REDIRECTS = 10  # browsers follow twenty, and pages need one or two
MAX_CRAWL_DELAY_SECONDS = 30.0
MAX_ROBOTS_BYTES = 500 << 10  # as RFC 9309 requires
SNIFF_BYTES = 1024  # that are enough to recognise the kind of a file

Kind = Literal["pdf", "html", "text", "file"]  # `file` has a reader, such as a Word document
# refused: the address is not allowed; disallowed: by robots.txt; unusable: no document; failed: by server or network
Fate = Literal["refused", "disallowed", "unusable", "failed"]

_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8,*/*;q=0.5"
_CONNECTIONS = 64  # more than the number of threads
# headers of a reply that are no longer true after its body was read and decoded
_UNDONE = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie"})
_OURS = frozenset({"accept-encoding", "host", "connection"})  # headers that our client sets itself
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")  # the part of IPv6 that is allocated
# cloud services at addresses that Python calls global, and special blocks that Python does not know
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20"),
    )
)


@dataclass(frozen=True)
class Policy:
    """The rules for requests to servers, and the limits on their replies."""

    allow_private: bool = False
    ignore_robots: bool = False
    per_host: int = 2
    delay: float = 0.5
    timeout: float = 60.0
    max_bytes: int = 100 << 20
    retries: int = 3
    backoff: float = 1.0  # seconds before the first retry; each further retry waits twice as long
    refetch: bool = False
    pages: int = 4  # that are printed at the same time


class FetchError(HttpError):
    """The error for a URL that gave no page: its outcome, a short reason, and the details."""

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        fate: Fate,
        url: str = "",
        status: int | None = None,
        wait: float = 0.0,
        transient: bool = False,
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason, status=status, wait=wait, transient=transient)
        self.fate, self.reason, self.detail, self.url = fate, reason, detail, url


def flaw_of(url: str) -> str | None:
    """Return the reason why a string is not an acceptable web address; None if the string is acceptable."""
    try:
        parsed = httpx.URL(url)
        urlsplit(url).port  # noqa: B018  # the names are read with it, and it is stricter about some hosts
    except (httpx.InvalidURL, ValueError):
        return "not a web address"
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        return "not a web address"
    return "a user name or password in the address" if parsed.userinfo else None


def is_public(address: str) -> bool:
    """Return whether an IP address is public; of the IPv6 addresses that contain an IPv4 one, only NAT64 can be."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip in _NAT64:  # the address of a public host in a network without IPv4
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL)


def _addresses_of(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return a host's IP addresses; raise if one of them is not allowed."""
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError("host not found", host, fate="failed") from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    private = next((address for address in addresses if not allow_private and not is_public(address)), None)
    if private is not None:
        detail = private if private == host else f"{host} is {private}"
        raise FetchError("a private or local address (--allow-private)", detail, fate="refused")
    return addresses


@dataclass(frozen=True)
class PageReply:
    """The final reply of a server for a URL, after redirects."""

    url: str
    status: int
    headers: Mapping[str, str]
    kind: Kind | None = None
    data: bytes = b""

    @property
    def declared(self) -> str:
        """The content type that the server declares, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def suffix(self) -> str:
        """The file suffix that selects the document reader: from the declared type, else from the URL."""
        return suffix_of(self.declared) or PurePosixPath(urlsplit(self.url).path).suffix.lower()

    @property
    def text(self) -> str:
        """The body as text: in the declared charset, else UTF-8, else Windows-1252."""
        declared = self.headers.get("content-type", "").partition("charset=")[2].partition(";")[0].strip(" \"'")
        return decode_page(self.data, declared)

    @property
    def target(self) -> str:
        """The target of a redirect; empty if the reply is not a redirect."""
        return self.headers.get("location", "") if self.status in REDIRECTS else ""


class Host:
    """One server: its robots.txt rules, and the earliest time of the next request."""

    def __init__(self, policy: Policy, stopped: threading.Event) -> None:
        self.retries = Retries(policy.retries, policy.backoff, stopped=stopped)
        self.robots: dict[str, Rules | FetchError] = {}  # by the address of robots.txt
        self.lock = threading.Lock()  # held while robots.txt is requested
        self.delay = policy.delay
        self._next, self._turns, self._stopped = 0.0, threading.Lock(), stopped

    def turn(self) -> None:
        """Wait until the next request to this host is allowed."""
        with self._turns:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.delay
        self._stopped.wait(start - now)


class Resource(NamedTuple):
    """A request that a page in the browser makes; `moves` if it loads a page, whose address redirects may change."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    moves: bool


class Downloader:
    """Fetches URLs for any number of threads: one connection pool, and new cookies for every URL."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._stopped = policy, threading.Event()
        look_up = cache(partial(_addresses_of, allow_private=policy.allow_private))  # resolve each host once
        self._addresses: AddressPolicy = lambda host, port: look_up(host.strip("[]").lower(), port)
        headers = {"User-Agent": USER_AGENT, "Accept": _ACCEPT}
        self._http = HttpClient(headers, connections=_CONNECTIONS, policy=self._addresses)
        self._hosts: dict[str, Host] = {}

    def close(self) -> None:
        """Close the connections, and wake all threads that wait for their turn or for a retry."""
        self._stopped.set()
        self._http.close()

    def get(self, url: str) -> PageReply:
        """Return a server's reply with a PDF, a page, a text or another readable file; raise FetchError otherwise."""
        return self._follow(url, limit=self._policy.max_bytes, sift=True)

    def resource(self, asked: Resource) -> tuple[int, dict[str, str], bytes]:
        """Send a request that a page makes in the browser; return the status, headers and body of the reply."""
        # compare names without case, or our own header would be sent as well
        headers = {name.title(): value for name, value in asked.headers.items() if name not in _OURS}
        # longer than a page waits: a late reply is noted, not lost silently
        deadline = Deadline(self._policy.timeout)
        follow = 0 if asked.moves else MAX_REDIRECTS
        with self._http.send(
            asked.method, asked.url, content=asked.body, headers=headers, deadline=deadline,
            most=self._policy.max_bytes, follow=follow,
        ) as response:  # fmt: skip
            kept = {name: value for name, value in response.headers.items() if name not in _UNDONE}
            return response.status, kept, response.read()

    def _follow(self, url: str, *, limit: int, sift: bool) -> PageReply:
        """Request a URL and follow its redirects one by one; with `sift`, obey robots.txt and refuse non-documents."""
        # cookies set by one redirect are sent to the next, never for another URL
        cookies: dict[str, dict[str, str]] = defaultdict(dict)
        for _ in range(MAX_REDIRECTS + 1):
            try:
                host = self._check_host(url, robots=sift and not self._policy.ignore_robots)
                reply = host.retries(partial(self._ask, url, host, limit, sift, cookies))
            except FetchError as error:
                error.url = error.url or url
                raise
            if not reply.target:
                return reply
            url = urljoin(url, reply.target)
        raise FetchError("redirects without end", f"more than {MAX_REDIRECTS}", fate="failed", url=url)

    def _check_host(self, url: str, *, robots: bool) -> Host:
        flaw = flaw_of(url)
        if flaw is not None:
            raise FetchError(flaw, f"redirected to {url}", fate="refused")
        parsed = httpx.URL(url)
        name = parsed.raw_host.decode("ascii")
        self._addresses(name, parsed.port or (443 if parsed.scheme == "https" else 80))
        host = self._hosts.setdefault(name, Host(self._policy, self._stopped))
        if robots and not self._fetch_rules(host, urljoin(url, "/robots.txt")).allow(parsed.raw_path.decode("ascii")):
            raise FetchError("robots.txt forbids this page (--ignore-robots)", fate="disallowed")
        return host

    def _fetch_rules(self, host: Host, url: str) -> Rules:
        """Return the robots.txt rules of a site, with one request per site."""
        with host.lock:
            if url not in host.robots:
                try:
                    host.robots[url] = rules = self._ask_robots(url)
                    host.delay = max(host.delay, min(rules.delay, MAX_CRAWL_DELAY_SECONDS))
                except FetchError as error:
                    host.robots[url] = error
        known = host.robots[url]
        if isinstance(known, FetchError):
            raise known
        return known

    def _ask_robots(self, url: str) -> Rules:
        try:
            return Rules(ROBOT, self._follow(url, limit=MAX_ROBOTS_BYTES, sift=False).text)
        except FetchError as error:
            # missing, or larger than any robots.txt: it is something else
            if error.fate == "unusable" or (error.status or 500) < 500:
                return Rules()
            if error.fate == "failed" and error.status is None:  # the host fails: its pages would fail in the same way
                raise FetchError(error.reason, error.detail or "robots.txt", fate="failed", url=url) from error
            raise FetchError("robots.txt cannot be read", str(error), fate="failed", url=url) from error

    def _ask(self, url: str, host: Host, limit: int, sift: bool, cookies: dict[str, dict[str, str]]) -> PageReply:
        """Send one request; stop reading as soon as the body is too large or clearly not a document."""
        host.turn()
        jar = cookies[urlsplit(url).netloc]
        headers = {"Cookie": "; ".join(jar.values())} if jar else {}
        deadline = Deadline(self._policy.timeout)
        try:
            with self._http.send(
                "GET", str(httpx.URL(url)), headers=headers, deadline=deadline, most=limit
            ) as response:
                for value in (value for name, value in response.pairs if name == "set-cookie"):
                    jar[value.partition("=")[0].strip()] = value.partition(";")[0]
                return _read(url, response, sift)
        except FetchError:
            raise
        except HttpError as error:
            raise _make_failure(error, url, limit, self._policy.timeout) from error


def _read(url: str, response: Response, sift: bool) -> PageReply:
    reply = PageReply(url, response.status, response.headers)
    if reply.target:
        return reply
    status = response.status
    if status >= 400:
        wait = parse_retry_after(response.headers.get("retry-after", ""))
        if wait > LONGEST_WAIT and status in TRANSIENT:
            raise FetchError("the server asks to come back later", f"in {wait:g} s", fate="failed")
        known = status in {code.value for code in HTTPStatus}
        reason = f"HTTP {status} {HTTPStatus(status).phrase.lower() if known else ''}".rstrip()
        raise FetchError(reason, fate="failed", status=status, wait=wait, transient=status in TRANSIENT)
    data = bytearray()
    kind: Kind | None = None
    for block in response.read_parts():
        data += block
        if sift and kind is None and len(data) >= SNIFF_BYTES:
            kind = _kind_of(reply, bytes(data[:SNIFF_BYTES]))
    if sift and kind is None:
        kind = _kind_of(reply, bytes(data))
    return replace(reply, kind=kind, data=bytes(data))


def _make_failure(error: HttpError, url: str, limit: int, timeout: float) -> FetchError:
    """Convert an HTTP error to a FetchError with one of the fixed reasons by which failures are counted."""
    if isinstance(error, TooLargeError):
        return FetchError("too large (--max-bytes)", f"more than {limit} bytes", fate="unusable", url=url)
    if isinstance(error, BodyError):
        return FetchError("the reply cannot be decompressed", str(error), fate="unusable", url=url)
    if isinstance(error, LateError):  # do not retry now: a page that never ends would take this long every time
        return FetchError("timed out", f"after {timeout:g} s", fate="failed", url=url)
    return FetchError("no connection, or a broken one", str(error), fate="failed", url=url, transient=error.transient)


def _kind_of(reply: PageReply, head: bytes) -> Kind:
    """Return the kind of a body by its first bytes or its declared type; raise FetchError if it is no document."""
    declared = reply.declared
    if head.startswith(b"%PDF-") or (declared == "application/pdf" and b"%PDF-" in head):
        return "pdf"
    if not head.strip():
        raise FetchError("the reply is empty", fate="unusable", url=reply.url, status=reply.status)
    if b"\0" not in head or "charset=utf-16" in reply.headers.get("content-type", "").lower():
        if declared in {"text/html", "application/xhtml+xml"} or _HTML.match(_skip_comments(head)):
            return "html"
        if declared in {"text/plain", ""}:
            return "text"
    # a page has a reader; an image at an address is rarely a scan
    if has_page(Path(f"x{reply.suffix}")) and reply.suffix not in picture.SUFFIXES:
        return "file"
    shown = declared or "unknown type"
    raise FetchError("neither a page nor a PDF", shown, fate="unusable", url=reply.url, status=reply.status)


def _skip_comments(head: bytes) -> bytes:
    head = head.lstrip()
    while head.startswith(b"<!--"):
        head = head[4:].partition(b"-->")[2].lstrip()
    return head
