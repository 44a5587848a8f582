"""The one HTTP client: a deadline for the whole exchange, limits on size, retries, and errors without secrets.

client = HttpClient({"Authorization": "Bearer …"}, connections=16, secrets=Secrets([…]))
with client.send("POST", "http://host/ask", {"question": "…"}, deadline=Deadline(60)) as response:
    response.check()            # raises HttpError with the server's message unless the status is 2xx
    data = response.read()      # or: for line in response.lines(): …
"""

import email.utils
import html
import json
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
from protego import Protego

from exhibit.runtime.secrets import is_secret_name, scrub
from exhibit.schemas.errors import ServiceError

_MIN_SECRET_CHARS = 4  # least characters of a removed secret: a shorter value could be an ordinary word of a message
_MAX_MESSAGE_CHARS = 300  # most characters of a server's message that an error quotes
_MESSAGE_KEYS = ("message", "detail", "error", "msg", "reason", "title", "description")
_TAG = re.compile(r"<[^<>]*>")
Result = TypeVar("Result")


class HttpError(ServiceError):
    def __init__(
        self, message: str, *, transient: bool = False, wait: float = 0.0, status: int | None = None, body: bytes = b""
    ) -> None:
        super().__init__(message)
        self.transient = transient  # whether the same request may succeed if it is sent again
        self.wait = wait  # the seconds that the server asks the client to wait
        self.status = status
        self.body = body  # the body of a reply with an error status, unchanged; it may contain secrets
        self.tries = 1


class UnreachableError(HttpError):
    """No connection to the server could be made."""


class LateError(HttpError):
    """The reply did not arrive completely in time."""


class Secrets:
    """Secret values that are removed from every message of a server."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Store the secret values; each word of a value, such as `abcd` in `Bearer abcd`, is also a secret."""
        parts = {part for value in values for part in (value, *value.split())}
        self._values = [p for p in parts if len(p) >= _MIN_SECRET_CHARS and p.lower() not in ("bearer", "basic")]

    def strip(self, text: str) -> str:
        """Return a text without the secrets and without anything that looks like a key."""
        return scrub(text, *self._values)

    def words(self, data: bytes | str) -> str:
        """Return the error message in a response body as a short line without secrets."""
        text = data if isinstance(data, str) else data[: 1 << 16].decode("utf-8", "replace")
        # remove secrets before the text is shortened, because a truncated secret is not recognised
        text = self.strip(html.unescape(_TAG.sub(" ", _find_message(text))))
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= _MAX_MESSAGE_CHARS else f"{text[: _MAX_MESSAGE_CHARS - 1]}…"


def parse_retry_after(retry_after: str) -> float:
    with suppress(ValueError):
        return max(0.0, float(retry_after))
    with suppress(ValueError, TypeError):
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    return 0.0


def strip_address(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0])


def _find_message(text: str) -> str:
    try:
        reply: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    while isinstance(reply, Mapping | list) and reply:
        inner = (
            reply[0] if isinstance(reply, list) else next((reply[key] for key in _MESSAGE_KEYS if reply.get(key)), None)
        )
        if inner is None:
            break
        reply = inner
    return reply if isinstance(reply, str) else text


# ---------------------------------------------------------------- deadlines and retries


class Deadline:
    def __init__(self, seconds: float, *, flag: str = "") -> None:
        self.seconds = seconds
        self._flag = f" ({flag})" if flag else ""
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def make_error(self) -> HttpError:
        return LateError(f"no complete reply within {self.seconds:g} s{self._flag}")

    @contextmanager
    def enforce(self) -> Iterator[None]:
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


LONGEST_WAIT = 120.0  # seconds; if a server asks for more, the request fails
_MAX_PAUSE_SECONDS = 30.0  # between two attempts
_TOO_MANY = 429  # HTTP: too many requests


class Retries:
    """A policy that retries a request after transient errors; after status 429, all threads wait."""

    def __init__(
        self, times: int, backoff: float, *, in_vain: int | None = None, stopped: threading.Event | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:  # fmt: skip
        """Retry at most `times` times, the first time after `backoff` seconds."""
        self._times, self._backoff, self._in_vain = times, backoff, in_vain
        self._stopped = stopped or threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._failed = 0
        self._resume = 0.0

    def __call__(self, step: Callable[[], Result], *, deadline: Deadline | None = None) -> Result:
        """Call `step`, retry it after transient errors, and return its result; raise the HttpError of the last try."""
        ready, tries = 0.0, 0
        while True:
            seconds = max(ready, self._resume) - time.monotonic()
            if seconds > 0 and (deadline is None or seconds < deadline.left):
                self._sleep(seconds)
            tries += 1
            try:
                result = step()
            except HttpError as error:
                error.tries = tries
                pause = error.wait or min(_MAX_PAUSE_SECONDS, self._backoff * 2 ** (tries - 1))
                hopeless = self._in_vain is not None and self._failed >= self._in_vain
                in_time = pause <= LONGEST_WAIT and (deadline is None or pause < deadline.left)
                if not error.transient or tries > self._times or hopeless or not in_time or self._stopped.is_set():
                    self._failed += error.transient
                    raise
                ready = time.monotonic() + pause
                if error.status == _TOO_MANY:
                    self._resume = max(self._resume, ready)
            else:
                self._failed = 0
                return result


# ---------------------------------------------------------------- bodies


ACCEPT = {"Accept-Encoding": "gzip"}  # the request header with the encoding that this module can decode
STREAMED = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-lines")
"""The content types of replies that arrive as a stream of objects."""
_MAX_EVENT_LINES = 1000  # most lines of one JSON object; the text so far is parsed again after each line


class BodyError(HttpError):
    """A body is too large, or has an unsupported encoding."""


class TooLargeError(BodyError):
    def __init__(self, most: int) -> None:
        large = f"{most >> 20} MB" if most >= 1 << 20 else f"{most} bytes"
        super().__init__(f"the reply is larger than {large}")


def decode_body(parts: Iterable[bytes], encoding: str, *, most: int) -> Iterator[bytes]:
    """Yield the parts of a body, decompressed as they arrive; raise if they exceed `most` bytes."""
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise BodyError(f"the reply is compressed as {encoding!r:.40}, although the request did not accept this")
    stream = zlib.decompressobj(31) if encoding.endswith("gzip") else None  # 31: gzip
    size, begun = 0, False
    for part in parts:
        begun = begun or bool(part)
        try:
            piece = stream.decompress(part, most - size + 1) if stream else part
        except zlib.error as error:
            raise BodyError(f"the compressed reply is damaged ({error})") from error
        size += len(piece)
        if size > most:
            raise TooLargeError(most)
        yield piece
    if stream and begun and not stream.eof:
        raise BodyError("the compressed reply is incomplete")


# ---------------------------------------------------------------- streams of events


class Event(NamedTuple):
    name: str  # the name after `event:`; empty if there is none
    data: Any
    done: bool = False  # whether the event only marks the end of the stream (`[DONE]`)


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the JSON objects of a stream; each is written on one line, or on several lines that begin with `data:`."""
    name, held = "", list[str]()
    for line in lines:
        field, colon, value = line.strip().partition(":")
        text = value.strip() if field in ("data", "event") else line.strip()
        if field == "event":
            name = text
            if name == "end":  # such an event may have no data
                yield Event(name, None, done=True)
        elif text == "[DONE]":
            yield Event(name, None, done=True)
        elif not line.strip():
            if held:
                break
            name = ""
        elif text and not (colon and field in ("", "id", "retry")):
            held.append(text)
            try:
                data = json.loads("\n".join(held))
            except (ValueError, RecursionError):
                if field != "data" or len(held) > _MAX_EVENT_LINES:
                    break
            else:
                held = []
                yield Event(name, data)
    if held:
        raise HttpError("a line of the stream is not JSON")


# ---------------------------------------------------------------- requests and replies


TRANSIENT = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})  # a retry may help, but never after 501 and 505
REDIRECTS = frozenset({301, 302, 303, 307, 308})
LARGEST = 16 << 20  # most bytes of a reply if no other limit is set


class HttpClient:
    def __init__(
        self, headers: Mapping[str, str] | None = None, *, connections: int = 4, secrets: Secrets | None = None,
        policy: "AddressPolicy | None" = None,
    ) -> None:  # fmt: skip
        self._headers = {"Accept": "*/*", "User-Agent": "exhibit", **ACCEPT, **(headers or {})}
        self._connections, self._policy = connections, policy
        self.secrets = secrets or Secrets()
        self._pools: dict[str, Any] = {}  # the connection pool of each proxy; the empty key is for direct connections
        self._lock = threading.Lock()

    @contextmanager
    def send(
        self, method: str, url: str, body: Any = None, *, deadline: Deadline,
        content: bytes | Iterator[bytes] | None = None, headers: Mapping[str, str] | None = None,
        most: int = LARGEST, follow: int = 0,
    ) -> "Iterator[Response]":  # fmt: skip
        """Send a request and yield the response as soon as its headers arrive."""
        sent = {**self._headers, **(headers or {})}
        if content is None and body is not None:
            # a lone surrogate, as in a damaged PDF, cannot be encoded and is replaced
            text = json.dumps(body, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            content = text.encode("utf-8")
            sent.setdefault("Content-Type", "application/json")
        for left in range(follow, -1, -1):
            with self._exchange(method, url, sent, content, deadline) as reply:
                response = Response(reply, deadline, self.secrets, url=url, most=most)
                target = response.headers.get("location", "") if left and response.status in REDIRECTS else ""
                if not target:
                    yield response
                    return
                if urlsplit(urljoin(url, target))[:2] != urlsplit(url)[:2]:
                    sent = self._without_secrets(sent)
                url = urljoin(url, target)

    def _without_secrets(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that contain no secret: only these may follow a redirect to another server."""
        return {
            name: value
            for name, value in headers.items()
            if not is_secret_name(name) and name.lower() != "cookie" and self.secrets.strip(value) == value
        }

    @contextmanager
    def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], content: Any, deadline: Deadline
    ) -> Iterator[Any]:
        where, pool = strip_address(url), self._choose_pool(url)
        waits = {"timeout": {"pool": deadline.left}}
        try:
            with (
                deadline.enforce(),
                pool.stream(method, url, headers=list(headers.items()), content=content, extensions=waits) as reply,
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
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def _choose_pool(self, url: str) -> Any:
        parts = urlsplit(url)
        # with a policy, use no proxy: a proxy would resolve the host itself, and the policy could not check the address
        proxy = "" if self._policy else _find_proxy(parts.scheme, parts.hostname or "")
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = self._open(proxy)
            return self._pools[proxy]

    def _open(self, proxy: str) -> Any:
        import httpx  # import here: the import takes 0.1 s, and many commands send no request

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


@cache  # reading the proxy settings is slow
def _find_proxy(scheme: str, host: str) -> str:
    is_local = host in ("localhost", "127.0.0.1", "::1")
    return "" if not host or is_local or proxy_bypass(host) else getproxies().get(scheme, "")


class Response:
    def __init__(
        self, response: Any, deadline: Deadline, secrets: Secrets, *, url: str = "", most: int = LARGEST
    ) -> None:
        self._response, self._deadline, self._secrets, self._most = response, deadline, secrets, most
        self.url = url  # the URL of the response after all redirects
        self.status: int = response.status
        pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers)
        self.headers: dict[str, str] = dict(pairs)

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read_parts(self) -> Iterator[bytes]:
        for part in decode_body(
            self._response.iter_stream(), self.headers.get("content-encoding", ""), most=self._most
        ):
            if not self._deadline.left:
                raise self._deadline.make_error()
            yield part

    def read(self) -> bytes:
        return b"".join(self.read_parts())

    def lines(self) -> Iterator[str]:
        remainder = b""
        for part in self.read_parts():
            *whole, remainder = (remainder + part).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
        if remainder:
            yield remainder.decode("utf-8", "replace")

    def check(self) -> None:
        if 200 <= self.status < 300:
            return
        phrase = next((known.phrase for known in HTTPStatus if known == self.status), "")
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


def download_file(url: str, path: Path, *, size: int) -> None:
    """Download a file of `size` bytes and show the progress; continue a file that an earlier download began."""
    from tqdm import tqdm  # import here: most commands download nothing

    begun = path.stat().st_size if path.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
    deadline = Deadline(600 + size / 50_000)  # ten minutes, plus one second for each 50 kB
    try:
        with (
            closing(HttpClient()) as client,
            client.send("GET", url, headers=headers, deadline=deadline, most=size, follow=5) as response,
        ):
            response.check()
            begun = begun if response.status == HTTPStatus.PARTIAL_CONTENT else 0  # else the reply is the whole file
            with (
                path.open("ab" if begun else "wb") as file,
                tqdm(total=size, initial=begun, unit="B", unit_scale=True, disable=None) as bar,
            ):
                for block in response.read_parts():
                    bar.update(file.write(block))
    except HttpError as error:
        raise ServiceError(f"{url}: download failed ({error})") from error


# ---------------------------------------------------------------- a deadline for the whole exchange

AddressPolicy = Callable[[str, int], Sequence[str]]  # returns a host's addresses, or raises HttpError


class BoundedBackend(httpcore.SyncBackend):
    """A network backend that ends every wait on a connection when the current thread's deadline has passed."""

    def __init__(self, policy: AddressPolicy | None = None) -> None:
        self._policy = policy

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: Any = None, socket_options: Any = None
    ) -> httpcore.NetworkStream:
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
    """Return how many seconds a wait may last; raise if the deadline has passed."""
    deadline = _current.get()
    if deadline is None:
        return timeout
    if not deadline.left:
        raise error("the time limit of the whole request has passed")
    return deadline.left if timeout is None else min(timeout, deadline.left)


class Rules:
    def __init__(self, robot: str = "", text: str = "") -> None:
        self._robot = robot
        self._parsed = Protego.parse(text.removeprefix("\ufeff"))

    @property
    def delay(self) -> float:
        """The crawl delay that the site requests: the seconds between two requests."""
        return max(0.0, self._parsed.crawl_delay(self._robot) or 0.0)

    def allow(self, path: str) -> bool:
        # add a host, which the rules ignore: without it, the x of a path such as //x would be parsed as the host
        return bool(self._parsed.can_fetch(f"http://host{path}", self._robot))
