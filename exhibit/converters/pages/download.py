"""Downloads URLs over HTTP: obeys robots.txt, pauses, retries, checks each redirect, and limits time and size.

The browser has no network access, so this module also sends the requests of the browser's pages. Each host is
resolved once, and all connections use the checked address.
"""

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from http.client import responses
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import httpx

from exhibit.evidence.files import decode_page
from exhibit.schemas import __version__
from exhibit.storage import http

ROBOT = "exhibit-rag"
USER_AGENT = f"{ROBOT}/{__version__}"
MAX_REDIRECTS = 10  # browsers follow twenty, and pages need one or two
MAX_CRAWL_DELAY_SECONDS = 30.0
MAX_ROBOTS_BYTES = 500 << 10  # most bytes of robots.txt: RFC 9309 requires at least this many
HEAD_BYTES = 1024  # bytes that show the kind of a file

Kind = Literal["pdf", "html", "text"]
NO_ADDRESS = "not a web address"
DISALLOWED = "robots.txt forbids this page (--ignore-robots)"
TOO_LARGE = "too large (--max-bytes)"
_UNREADABLE = "the reply cannot be decompressed"
_REASONS = {http.TooLargeError: TOO_LARGE, http.BodyError: _UNREADABLE, http.LateError: "timed out"}
_BROKEN = "the connection failed"

_HTML = re.compile(rb"\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.8,*/*;q=0.5"
_CONNECTIONS = 64  # more than the number of threads
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
    """The rules for requests to servers, and the limits on their replies."""

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
    try:
        parsed = httpx.URL(url)
        urlsplit(url).port  # noqa: B018  # the names are read with it, and it is stricter about some hosts
    except (httpx.InvalidURL, ValueError):
        return NO_ADDRESS
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        return NO_ADDRESS
    return "a user name or password in the address" if parsed.userinfo else None


def is_public(address: str) -> bool:
    """Return whether an IP address is public; an IPv6 address that contains an IPv4 one is public only under NAT64."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip in _NAT64:  # the address of a public host in a network without IPv4
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL)


def _addresses_of(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Return a host's IP addresses; raise if the policy does not allow one of the addresses."""
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
    """The final reply of a server for a URL, after redirects."""

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
        self.lock = threading.Lock()  # locked while robots.txt is requested
        self.delay = policy.delay
        self._next, self._turns, self._stopped = 0.0, threading.Lock(), stopped

    def turn(self) -> None:
        """Wait until the next request to this host is allowed."""
        with self._turns:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.delay
        self._stopped.wait(start - now)


class Downloader:
    """Fetches URLs for any number of threads, with one connection pool and without cookies."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._stopped = policy, threading.Event()
        look_up = cache(partial(_addresses_of, allow_private=policy.allow_private))  # resolve each host once
        self._addresses: http.AddressPolicy = lambda host, port: look_up(host.strip("[]").lower(), port)
        headers = {"User-Agent": USER_AGENT, "Accept": _ACCEPT}
        self._http = http.HttpClient(headers, connections=_CONNECTIONS, policy=self._addresses)
        self._hosts: dict[str, Host] = {}

    def close(self) -> None:
        """Close the connections, and wake all threads that wait for their turn or for a retry."""
        self._stopped.set()
        self._http.close()

    def get(self, url: str) -> PageReply:
        """Return a server's reply with a PDF, a page or a text; raise FetchError otherwise."""
        reply = self._follow(url, limit=self._policy.max_bytes, robots=not self._policy.ignore_robots)
        return replace(reply, kind=_kind_of(reply))

    def fetch_for_browser(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, follow: bool
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request that a page makes in the browser; return the status, headers and body of the reply."""
        # compare names without case, or our own header would be sent as well
        sent = {name.title(): value for name, value in headers.items() if name not in _OURS}
        deadline, most = http.Deadline(self._policy.timeout), self._policy.max_bytes
        hops = MAX_REDIRECTS if follow else 0
        with self._http.send(
            method, url, content=body, headers=sent, deadline=deadline, most=most, follow=hops
        ) as response:
            kept = {name: value for name, value in response.headers.items() if name not in _UNDONE}
            return response.status, kept, response.read()

    def _follow(self, url: str, *, limit: int, robots: bool) -> PageReply:
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
                try:
                    text = self._follow(url, limit=MAX_ROBOTS_BYTES, robots=False).text
                    host.robots[url] = rules = http.Rules(ROBOT, text)
                    host.delay = max(host.delay, min(rules.delay, MAX_CRAWL_DELAY_SECONDS))
                except FetchError as error:
                    # robots.txt is missing or too large
                    missing = error.reason == TOO_LARGE or (error.status or 500) < 500
                    host.robots[url] = (
                        http.Rules() if missing else FetchError(error.reason, error.detail or "robots.txt")
                    )
        known = host.robots[url]
        if isinstance(known, FetchError):
            raise known
        return known

    def _ask(self, url: str, host: Host, limit: int) -> PageReply:
        """Send a request; a failure gets one of the fixed reasons by which failures are counted."""
        host.turn()
        deadline = http.Deadline(self._policy.timeout)
        try:
            with self._http.send("GET", str(httpx.URL(url)), deadline=deadline, most=limit) as response:
                status = response.status
                if status < 400:
                    return PageReply(url, status, response.headers, data=response.read())
                wait = http.parse_retry_after(response.headers.get("retry-after", ""))
        except http.HttpError as error:  # do not retry a late reply: an endless page would take as long every time
            reason = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), _BROKEN)
            raise FetchError(reason, str(error), transient=error.transient) from error
        reason = f"HTTP {status} {responses.get(status, '').lower()}".rstrip()
        raise FetchError(reason, status=status, wait=wait, transient=status in http.TRANSIENT)


def _kind_of(reply: PageReply) -> Kind:
    """Return the kind of a body by its first bytes or its declared type; raise FetchError if it is not a document."""
    stated = reply.headers.get("content-type", "").lower()
    head, declared = reply.data[:HEAD_BYTES], stated.partition(";")[0].strip()
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
