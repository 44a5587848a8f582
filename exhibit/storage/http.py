"""The one HTTP client: a deadline for the whole exchange, limits on size, retries, and errors without secrets.

    client = HttpClient({"Authorization": "Bearer …"}, connections=16, secrets=Secrets([…]))
    with client.send("POST", "http://host/ask", {"question": "…"}, deadline=Deadline(60)) as response:
        response.check()            # raises HttpError with the server's message unless the status is 2xx
        data = response.read()      # or: for line in response.lines(): …

Every failure is an `HttpError` that says whether a retry may help; `http_policy.Retries` retries.
"""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
from protego import Protego

from exhibit.storage.http_policy import (
    ACCEPT,
    Body,
    Deadline,
    HttpError,
    Secrets,
    UnreachableError,
    current,
    parse_retry_after,
    strip_address,
)

TRANSIENT = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
"""Status codes for which a retry may help; after 501 and 505 it never does."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LARGEST = 16 << 20
"""Default size limit of a reply in bytes."""


class HttpClient:
    """An HTTP client with pooled connections, deadlines and size limits."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        *,
        connections: int = 4,
        secrets: Secrets | None = None,
        policy: "AddressPolicy | None" = None,
        pool: Any = None,
    ) -> None:
        """Store the headers that every request sends, and the largest number of simultaneous connections."""
        self._headers = {"Accept": "*/*", "User-Agent": "exhibit", **ACCEPT, **(headers or {})}
        self._connections, self._policy, self._given = connections, policy, pool
        self.secrets = secrets or Secrets()
        self._pools: dict[str, Any] = {}
        """The connection pool of each proxy; the empty key is for direct connections."""
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
    ) -> "Iterator[Response]":
        """Send a request and yield the response as soon as its headers arrive.

        Args:
            body: the request's body as a value to encode as JSON.
            content: the request's body as bytes, instead of `body`.
            most: the size limit of the reply's body in bytes.
            follow: the number of redirects to follow at most.
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
                # never send one server's key to another server
                if urlsplit(urljoin(url, target))[:2] != urlsplit(url)[:2]:
                    sent = {name: value for name, value in sent.items() if name.lower() != "authorization"}
                url = urljoin(url, target)

    @contextmanager
    def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], content: Any, deadline: Deadline
    ) -> Iterator[Any]:
        where = strip_address(url)
        waits = {"timeout": {"pool": deadline.left}}
        try:
            with (
                deadline.enforce(),
                self._choose_pool(url).stream(
                    method, url, headers=list(headers.items()), content=content, extensions=waits
                ) as reply,
            ):
                yield reply
        except httpcore.TimeoutException:
            raise deadline.make_error() from None
        except (httpcore.ConnectError, httpcore.ProxyError) as error:
            why = self.secrets.strip(str(error)) or "no connection"
            passing = "CERTIFICATE_VERIFY_FAILED" not in why
            raise UnreachableError(f"no server answers at {where}: {why}", transient=passing) from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            # the library's own message may contain the URL with its key
            raise HttpError(f"the connection broke ({type(error).__name__})", transient=True) from None
        except (httpcore.UnsupportedProtocol, UnicodeError, ValueError) as error:
            raise HttpError(f"no request can be sent to {where}: {self.secrets.strip(str(error))}") from None

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def _choose_pool(self, url: str) -> Any:
        """Return the connection pool for a URL: direct, or through the proxy that the environment names."""
        if self._given is not None:
            return self._given
        parts = urlsplit(url)
        server = f"{parts.scheme}://{parts.hostname}"
        with self._lock:
            if server not in self._proxies:  # look up the proxy once per server: reading the proxy settings is slow
                # a policy checks the server's own address; a proxy would resolve the address itself
                self._proxies[server] = "" if self._policy else _find_proxy(parts.scheme, parts.hostname or "")
            proxy = self._proxies[server]
            if proxy not in self._pools:
                self._pools[proxy] = self._open(proxy)
            return self._pools[proxy]

    def _open(self, proxy: str) -> Any:
        import httpx  # import here: it takes 0.1 s, which a command without requests can save

        kept: dict[str, Any] = {
            "ssl_context": httpx.create_ssl_context(),
            "max_connections": self._connections,
            "max_keepalive_connections": self._connections,
            "keepalive_expiry": 30.0,
            "network_backend": BoundedBackend(self._policy),
        }
        if not proxy:
            return httpcore.ConnectionPool(**kept)
        parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
        user = (parts.username, parts.password or "") if parts.username else None
        address = f"{parts.scheme}://{parts.hostname}:{parts.port or 80}"
        return httpcore.HTTPProxy(proxy_url=address, proxy_auth=user, **kept)


def _as_json(body: Any) -> bytes:
    """Return a value as JSON bytes; a lone surrogate, as in a damaged PDF, cannot be encoded and is replaced."""
    text = json.dumps(body, ensure_ascii=False)
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.encode("utf-8")


def _find_proxy(scheme: str, host: str) -> str:
    here = host in ("localhost", "127.0.0.1", "::1")
    return "" if not host or here or proxy_bypass(host) else getproxies().get(scheme, "")


class Response:
    """A server's response: the status and headers at once, the body when it is read."""

    def __init__(
        self, response: Any, deadline: Deadline, secrets: Secrets, *, url: str = "", most: int = LARGEST
    ) -> None:
        self._response, self._deadline, self._secrets, self._most = response, deadline, secrets, most
        self.url = url
        """The URL of the response after all redirects."""
        self.status: int = response.status
        self.pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers]
        self.headers: dict[str, str] = dict(self.pairs)

    @property
    def kind(self) -> str:
        """The content type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read_parts(self) -> Iterator[bytes]:
        """Yield the body's bytes while they arrive, decompressed."""
        body = Body(self.headers, most=self._most)
        for part in self._response.iter_stream():
            if not self._deadline.left:
                raise self._deadline.make_error()
            yield body.feed(part)
        body.close()

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.read_parts())

    def lines(self) -> Iterator[str]:
        """Yield the body line by line while it arrives."""
        rest = b""
        for part in self.read_parts():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
        if rest:
            yield rest.decode("utf-8", "replace")

    def check(self) -> None:
        """Raise HttpError with the server's message unless the status is a success."""
        if 200 <= self.status < 300:
            return
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = ""
        body = self.read()
        words = self._secrets.words(body)
        status = f"HTTP {self.status} {phrase}".rstrip()
        raise HttpError(
            f"{status}: {words}" if words and words != phrase else status,
            transient=self.status in TRANSIENT,
            wait=parse_retry_after(self.headers.get("retry-after", "")),
            status=self.status,
            body=body,
        )


# ---------------------------------------------------------------- a deadline for the whole exchange

AddressPolicy = Callable[[str, int], Sequence[str]]
"""A function that returns the addresses to connect to for a host and a port; it raises HttpError for a forbidden host.
"""


class BoundedBackend(httpcore.SyncBackend):
    """A network backend that ends every wait on a connection when the current thread's deadline has passed."""

    def __init__(self, policy: AddressPolicy | None = None) -> None:
        self._policy = policy

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        """Open a TCP connection to the first address of the host that accepts it.

        If the backend has an address policy, the policy returns the addresses to try, or raises for a forbidden
        host.
        """
        error: Exception = httpcore.ConnectError("no address")
        for address in self._policy(host, port) if self._policy else [host]:
            left = _compute_time_left(timeout, httpcore.ConnectTimeout)
            try:
                return _Bounded(super().connect_tcp(address, port, left, local_address, socket_options))
            except httpcore.ConnectError as refused:
                error = refused
        raise error


class _Bounded(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _compute_time_left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _compute_time_left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        with suppress(OSError, AttributeError):  # wakes a thread that waits for data on this connection
            self._stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _compute_time_left(timeout, httpcore.ConnectTimeout)
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _compute_time_left(timeout: float | None, error: type[Exception]) -> float | None:
    """Return how many seconds a wait may last; raise when the deadline has passed."""
    deadline = current.deadline
    if deadline is None:
        return timeout
    if not deadline.left:
        raise error("the time limit of the whole request has passed")
    return deadline.left if timeout is None else min(timeout, deadline.left)


class Rules:
    """The robots.txt rules for one robot on one host.

    These are the rules that name the robot or, if no rules name it, the rules for all robots. Without any
    rules, every path is allowed.
    """

    def __init__(self, robot: str = "", text: str = "") -> None:
        self._robot = robot
        self._parsed = Protego.parse(text.removeprefix("\ufeff"))

    @property
    def delay(self) -> float:
        """The crawl delay that the site asks for: the seconds between two requests."""
        return max(0.0, self._parsed.crawl_delay(self._robot) or 0.0)

    def allow(self, path: str) -> bool:
        """Return whether a path, with its query, may be fetched."""
        # add a host, which the rules ignore: otherwise the x of a path such as //x would be parsed as a host
        return bool(self._parsed.can_fetch(f"http://host{path}", self._robot))
