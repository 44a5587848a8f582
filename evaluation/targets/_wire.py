"""HTTP to a system under test: connections that are kept, and one deadline from connecting to the last byte.

    wire = Wire({"Authorization": "Bearer …"}, connections=16, secrets=Secrets([…]))
    with wire.send("POST", "http://host/ask", {"question": "…"}, deadline=Deadline(60)) as response:
        response.check()            # raises ReplyError with the server's own words unless it is 2xx
        data = response.read()      # or: for line in response.lines(): …

Whatever goes wrong is a `ReplyError` that says so in words without secrets, and whether asking again may help.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

import exhibit.storage.deadline
from exhibit.evaluation.targets._secrets import Secrets, plain_address
from exhibit.storage.deadline import BoundedBackend, in_force
from exhibit.storage.waiting import seconds_asked
from exhibit.storage.wire import ACCEPT, Body, BodyError

TRANSIENT = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
"""What a server may answer otherwise when it is asked again; 501 and 505 say that it never will."""
LARGEST = 16 << 20
"""Bytes of a reply that are read: more is no answer."""


class ReplyError(Exception):
    """Why there is no reply, in words that hold no secret."""

    def __init__(self, message: str, *, transient: bool = False, wait: float = 0.0, status: int | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        """Whether the same question may be answered when it is asked again."""
        self.wait = wait
        """Seconds that the server asks to be left alone."""
        self.status = status


class UnreachableError(ReplyError):
    """Nobody is there."""


class Deadline(exhibit.storage.deadline.Deadline):
    """The moment by which a question must be answered, its repetitions and the pauses between them included."""

    def passed(self) -> ReplyError:
        """Return the error for a question whose time is up."""
        return ReplyError(f"no whole reply within {self.seconds:g} s (--timeout)")


class Wire:
    """Connections to servers, shared by threads."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, connections: int = 4, secrets: Secrets | None = None
    ) -> None:
        """Send these headers with every request, over at most so many connections at once."""
        self._headers = dict(headers or {})
        self._connections = connections
        self.secrets = secrets or Secrets()
        self._pools: dict[str, httpcore.ConnectionPool] = {}
        """By proxy, the empty one for none."""
        self._proxies: dict[str, str] = {}
        self._lock = threading.Lock()

    @contextmanager
    def send(
        self,
        method: str,
        url: str,
        body: Any = None,
        *,
        deadline: Deadline,
        content: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Response]:
        """Send JSON, or `content` as it is, and yield the response as soon as its headers are there."""
        sent = {"Accept": "*/*", "User-Agent": "exhibit", **ACCEPT, **self._headers, **(headers or {})}
        if content is None and body is not None:
            content = json.dumps(body).encode("ascii")
            sent.setdefault("Content-Type", "application/json")
        where = plain_address(url)
        in_force.value = deadline
        try:
            with self._pool(url).stream(
                method,
                url,
                headers=list(sent.items()),
                content=content,
                extensions={"timeout": {"pool": deadline.left}},
            ) as response:
                yield Response(response, deadline, self.secrets)
        except httpcore.TimeoutException:
            raise deadline.passed() from None
        except (httpcore.ConnectError, httpcore.ProxyError) as error:
            why = self.secrets.strip(str(error)) or "no connection"
            raise UnreachableError(f"nobody answers at {where}: {why}", transient=True) from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            # its own words may hold the address with its key
            raise ReplyError(f"the connection broke ({type(error).__name__})", transient=True) from None
        except (httpcore.UnsupportedProtocol, UnicodeError, ValueError) as error:
            raise ReplyError(f"{where} cannot be asked: {self.secrets.strip(str(error))}") from None

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def _pool(self, url: str) -> httpcore.ConnectionPool:
        """Return the connections for an address: direct ones, or through the proxy that the environment names."""
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.hostname}"
        with self._lock:
            if server not in self._proxies:  # read once: the environment is slow to ask
                self._proxies[server] = _proxy_for(parts.scheme, parts.hostname or "")
            proxy = self._proxies[server]
            if proxy not in self._pools:
                self._pools[proxy] = self._open(proxy)
            return self._pools[proxy]

    def _open(self, proxy: str) -> httpcore.ConnectionPool:
        kept: dict[str, Any] = {
            "ssl_context": httpx.create_ssl_context(),
            "max_connections": self._connections,
            "max_keepalive_connections": self._connections,
            "keepalive_expiry": 30.0,
            "network_backend": BoundedBackend(),
        }
        if not proxy:
            return httpcore.ConnectionPool(**kept)
        parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
        user = (parts.username or "", parts.password or "") if parts.username else None
        return httpcore.HTTPProxy(
            proxy_url=f"{parts.scheme}://{parts.hostname}:{parts.port or 80}", proxy_auth=user, **kept
        )


def _proxy_for(scheme: str, host: str) -> str:
    here = host in ("localhost", "127.0.0.1", "::1")
    return "" if not host or here or proxy_bypass(host) else getproxies().get(scheme, "")


class Response:
    """What came back: its status and headers at once, its body as it is read."""

    def __init__(self, response: httpcore.Response, deadline: Deadline, secrets: Secrets) -> None:
        self._response = response
        self._deadline = deadline
        self._secrets = secrets
        self.status = response.status
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}

    @property
    def kind(self) -> str:
        """The content type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def parts(self) -> Iterator[bytes]:
        """Yield the body as it comes, unpacked where the server packed it."""
        try:
            body = Body(self.headers, most=LARGEST)
            for part in self._response.iter_stream():
                if not self._deadline.left:
                    raise self._deadline.passed()
                yield body.feed(part)
            body.close()
        except BodyError as error:
            large = f"the reply is larger than {LARGEST >> 20} MB"
            raise ReplyError(
                large if "more than" in str(error) and "packed" not in str(error) else f"the reply is {error}"
            ) from None

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.parts())

    def lines(self) -> Iterator[str]:
        """Yield the body line by line as it comes."""
        rest = b""
        for part in self.parts():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
        if rest:
            yield rest.decode("utf-8", "replace")

    def check(self) -> None:
        """Raise what the server says unless it is a success."""
        if 200 <= self.status < 300:
            return
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = ""
        words = self._secrets.words(self.read())
        told = f"HTTP {self.status} {phrase}".rstrip()
        raise ReplyError(
            f"{told}: {words}" if words and words != phrase else told,
            transient=self.status in TRANSIENT,
            wait=seconds_asked(self.headers.get("retry-after", "")),
            status=self.status,
        )
