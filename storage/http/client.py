"""Requests and responses over connections that are kept, shared by threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from exhibit.storage.http.body import ACCEPT, Body
from exhibit.storage.http.deadline import AddressPolicy, BoundedBackend, Deadline
from exhibit.storage.http.errors import HttpError, Secrets, UnreachableError, plain_address
from exhibit.storage.http.retries import seconds_asked

TRANSIENT = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
"""What a server may answer otherwise when it is asked again; 501 and 505 say that it never will."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LARGEST = 16 << 20
"""Bytes of a reply that are read where nobody says otherwise: more is no answer."""


class Pool(Protocol):
    """Connections: httpcore's, or a test's own."""

    def stream(self, method: str, url: str, **given: Any) -> AbstractContextManager[Any]:
        """Send a request and give the response while its body is read."""

    def close(self) -> None:
        """Close them."""


class HttpClient:
    """Asks servers."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        *,
        connections: int = 4,
        secrets: Secrets | None = None,
        policy: AddressPolicy | None = None,
        pool: Pool | None = None,
    ) -> None:
        """Send these headers with every request, over at most so many connections at once."""
        self._headers = {"Accept": "*/*", "User-Agent": "exhibit", **ACCEPT, **(headers or {})}
        self._connections, self._policy, self._given = connections, policy, pool
        self.secrets = secrets or Secrets()
        self._pools: dict[str, Pool] = {}
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
        most: int = LARGEST,
        follow: int = 0,
    ) -> Iterator[Response]:
        """Send JSON, or `content` as it is, and yield the response as soon as its headers are there.

        `most` bytes of it can be read; `follow` redirects are followed.
        """
        sent = {**self._headers, **(headers or {})}
        if content is None and body is not None:
            content = _as_json(body)
            sent.setdefault("Content-Type", "application/json")
        for left in range(follow, -1, -1):
            with self._exchange(method, url, sent, content, deadline) as reply:
                response = Response(reply, deadline, self.secrets, url=url, most=most)
                target = response.headers.get("location", "") if left and response.status in REDIRECTS else ""
                if not target:
                    yield response
                    return
                # a key for one server is for no other
                if urlsplit(urljoin(url, target))[:2] != urlsplit(url)[:2]:
                    sent = {name: value for name, value in sent.items() if name.lower() != "authorization"}
                url = urljoin(url, target)

    @contextmanager
    def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], content: Any, deadline: Deadline
    ) -> Iterator[Any]:
        where = plain_address(url)
        waits = {"timeout": {"pool": deadline.left}}
        try:
            with (
                deadline.enforced(),
                self._pool(url).stream(
                    method, url, headers=list(headers.items()), content=content, extensions=waits
                ) as reply,
            ):
                yield reply
        except httpcore.TimeoutException:
            raise deadline.passed() from None
        except (httpcore.ConnectError, httpcore.ProxyError) as error:
            why = self.secrets.strip(str(error)) or "no connection"
            raise UnreachableError(f"nobody answers at {where}: {why}", transient=True) from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            # its own words may hold the address with its key
            raise HttpError(f"the connection broke ({type(error).__name__})", transient=True) from None
        except (httpcore.UnsupportedProtocol, UnicodeError, ValueError) as error:
            raise HttpError(f"{where} cannot be asked: {self.secrets.strip(str(error))}") from None

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def _pool(self, url: str) -> Pool:
        """Return the connections for an address: direct ones, or through the proxy that the environment names."""
        if self._given is not None:
            return self._given
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.hostname}"
        with self._lock:
            if server not in self._proxies:  # read once: the environment is slow to ask
                self._proxies[server] = _proxy_for(parts.scheme, parts.hostname or "")
            proxy = self._proxies[server]
            if proxy not in self._pools:
                self._pools[proxy] = self._open(proxy)
            return self._pools[proxy]

    def _open(self, proxy: str) -> Pool:
        import httpx  # a tenth of a second, which whoever asks nobody can spare

        kept: dict[str, Any] = {
            "ssl_context": httpx.create_ssl_context(),
            "max_connections": self._connections,
            "max_keepalive_connections": self._connections,
            "keepalive_expiry": 30.0,
            "network_backend": BoundedBackend(self._policy),
        }
        if not proxy:
            return cast(Pool, httpcore.ConnectionPool(**kept))
        parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
        user = (parts.username or "", parts.password or "") if parts.username else None
        address = f"{parts.scheme}://{parts.hostname}:{parts.port or 80}"
        return cast(Pool, httpcore.HTTPProxy(proxy_url=address, proxy_auth=user, **kept))


def _as_json(body: Any) -> bytes:
    """Return JSON; half a surrogate pair, which a damaged PDF holds, is no letter that can be sent."""
    text = json.dumps(body, ensure_ascii=False)
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.encode("utf-8")


def _proxy_for(scheme: str, host: str) -> str:
    here = host in ("localhost", "127.0.0.1", "::1")
    return "" if not host or here or proxy_bypass(host) else getproxies().get(scheme, "")


class Response:
    """What came back: its status and headers at once, its body as it is read."""

    def __init__(
        self, response: Any, deadline: Deadline, secrets: Secrets, *, url: str = "", most: int = LARGEST
    ) -> None:
        self._response, self._deadline, self._secrets, self._most = response, deadline, secrets, most
        self.url = url
        """Where it came from in the end."""
        self.status: int = response.status
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
        self.headers: dict[str, str] = {name.lower(): value for name, value in pairs}

    @property
    def kind(self) -> str:
        """The content type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def parts(self) -> Iterator[bytes]:
        """Yield the body as it comes, unpacked where the server packed it."""
        body = Body(self.headers, most=self._most)
        for part in self._response.iter_stream():
            if not self._deadline.left:
                raise self._deadline.passed()
            yield body.feed(part)
        body.close()

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
        body = self.read()
        words = self._secrets.words(body)
        told = f"HTTP {self.status} {phrase}".rstrip()
        raise HttpError(
            f"{told}: {words}" if words and words != phrase else told,
            transient=self.status in TRANSIENT,
            wait=seconds_asked(self.headers.get("retry-after", "")),
            status=self.status,
            body=body,
        )
