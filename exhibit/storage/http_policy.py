"""Policy for HTTP exchanges: errors without secrets, deadlines, retries, size limits, and event streams.

A small body that would decompress to gigabytes is refused while it arrives.
"""

import email.utils
import html
import itertools
import json
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from exhibit.runtime.secrets import HIDDEN, scrub
from exhibit.schemas.errors import ServiceError

_SHORTEST = 4
"""Fewest characters of a secret that is removed: a shorter value could be an ordinary word of a message."""
_LONGEST = 300
"""The most characters of a server's message that an error quotes."""
_MESSAGES = ("message", "detail", "error", "msg", "reason", "title", "description")
_CODE = re.compile(r"<(?:script|style)\b[^<>]*>", re.IGNORECASE)
_CODE_ENDS = re.compile(r"</(?:script|style)[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


Result = TypeVar("Result")


class HttpError(ServiceError):
    """An HTTP exchange failed: there is no usable reply."""

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        wait: float = 0.0,
        status: int | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.transient = transient
        """Whether the same request may succeed when it is sent again."""
        self.wait = wait
        """The seconds that the server asks the client to wait."""
        self.status = status
        self.body = body
        """The body of a reply with an error status, unchanged; it may contain secrets."""
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
        known = {part for part in parts if len(part) >= _SHORTEST and part.lower() not in ("bearer", "basic")}
        # the longest first, so that no part of a longer secret remains
        self._values = sorted(known, key=lambda value: (-len(value), value))

    def strip(self, text: str) -> str:
        """Return a text without the secrets and without anything that looks like a key."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return scrub(text)

    def words(self, data: bytes | str) -> str:
        """Return the error message in a response body, as one short line without secrets."""
        text = data if isinstance(data, str) else data[: 1 << 16].decode("utf-8", "replace")
        # remove secrets before the text is shortened: a secret that is cut in two is not recognised
        text = self.strip(_without_tags(_find_message(text)))
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def parse_retry_after(retry_after: str) -> float:
    """Return the seconds that a Retry-After header asks for, as a number or a date; 0 if it is empty or invalid."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def strip_address(url: str) -> str:
    """Return a URL without its user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0])


def _without_tags(text: str) -> str:
    """Return a text without HTML tags and scripts, and with HTML entities decoded."""
    if "<" in text:
        first, *rest = _CODE.split(text)
        text = _TAG.sub(" ", " ".join([first, *(_CODE_ENDS.split(part, maxsplit=1)[-1] for part in rest)]))
    return html.unescape(text)


def _find_message(text: str) -> str:
    """Return the message inside a JSON error, or the text itself."""
    try:
        reply: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    while isinstance(reply, Mapping | list) and reply:
        inner = reply[0] if isinstance(reply, list) else next((reply[key] for key in _MESSAGES if reply.get(key)), None)
        if inner is None:
            break
        reply = inner
    return reply if isinstance(reply, str) else text


# ---------------------------------------------------------------- deadlines and retries


class Deadline:
    """The time by which an exchange must end."""

    def __init__(self, seconds: float, *, flag: str = "") -> None:
        """Start the clock; `flag` is the command-line flag that allows more time, for the error message."""
        self.seconds = seconds
        self._flag = f" ({flag})" if flag else ""
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that remain, never negative."""
        return max(0.0, self._end - time.monotonic())

    def make_error(self) -> HttpError:
        """Return the HttpError of an exchange whose deadline has passed."""
        return LateError(f"no complete reply within {self.seconds:g} s{self._flag}")

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Apply this deadline to every wait of this thread's connections within the block."""
        before, current.deadline = current.deadline, self
        try:
            yield
        finally:
            current.deadline = before


def download_deadline(size: int) -> Deadline:
    """Return the deadline for a download of `size` bytes: ten minutes, plus one second for each 50 kB."""
    return Deadline(600 + size / 50_000)


class _Current(threading.local):
    deadline: Deadline | None = None


current = _Current()
"""The deadline of this thread's current exchange."""


LONGEST_WAIT = 120.0
"""Longest wait in seconds; if a server asks for more, the request fails."""
_LONGEST_PAUSE = 30.0
"""Longest pause in seconds between two attempts."""
_TOO_MANY = 429  # HTTP: too many requests


class Retries:
    """A policy that retries a request after transient errors; after status 429, all threads wait."""

    def __init__(
        self,
        times: int,
        backoff: float,
        *,
        in_vain: int | None = None,
        stopped: threading.Event | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Retry at most `times` times, the first time after `backoff` seconds.

        After `in_vain` requests in a row that failed despite retries, each further request is sent only once: retrying
        against a server that always fails would cost hours. No thread waits once `stopped` is set.
        """
        self._times, self._backoff, self._in_vain = times, backoff, in_vain
        self._stopped = stopped or threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._failed = 0
        self._resume = 0.0

    def __call__(self, step: Callable[[], Result], *, deadline: Deadline | None = None, spread: float = 1.0) -> Result:
        """Call `step`, retry it after transient errors, and return its result; raise the HttpError of the last try.

        `spread` scales the pauses between tries, so that threads do not retry at the same time.
        """
        ready = 0.0
        for tries in itertools.count():
            seconds = max(ready, self._resume) - time.monotonic()
            if seconds > 0 and (deadline is None or seconds < deadline.left):
                self._sleep(seconds)
            try:
                result = step()
            except HttpError as error:
                error.tries = tries + 1
                pause = error.wait or min(_LONGEST_PAUSE, self._backoff * 2**tries) * spread
                if not self._may_help(error, tries, pause, deadline):
                    self._failed += error.transient
                    raise
                ready = time.monotonic() + pause
                if error.status == _TOO_MANY:
                    self._resume = max(self._resume, ready)
            else:
                self._failed = 0
                return result
        raise AssertionError("the last attempt neither returned nor raised; please report this bug")

    def _may_help(self, error: HttpError, tries: int, pause: float, deadline: Deadline | None) -> bool:
        hopeless = self._in_vain is not None and self._failed >= self._in_vain
        in_time = pause <= LONGEST_WAIT and (deadline is None or pause < deadline.left)
        return error.transient and tries < self._times and in_time and not hopeless and not self._stopped.is_set()


# ---------------------------------------------------------------- bodies


ACCEPT = {"Accept-Encoding": "gzip, deflate"}
"""The request header with the encodings that this module can decode."""
MOST_LAYERS = 2
"""The most layers of compression: a server that compresses a compressed file makes two; no server makes three."""
_BLOCK = 1 << 16
"""Bytes that are decompressed at a time."""
STREAMED = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-lines")
"""Content types of streams."""
_MOST_PIECES = 1000
"""The most lines of one event: the event is parsed again at each line, and a pretty-printed object has some dozens."""


class BodyError(HttpError):
    """A body is too large, or has an encoding that is not supported."""


class TooLargeError(BodyError):
    """A body exceeds the size limit."""

    def __init__(self, most: int) -> None:
        large = f"{most >> 20} MB" if most >= 1 << 20 else f"{most} bytes"
        super().__init__(f"the reply is larger than {large}")


class Body:
    """A decoder that decompresses a reply's body while it arrives.

    A body may be compressed several times; no decompression step may produce more than `most` bytes.
    """

    def __init__(self, headers: Mapping[str, str], *, most: int) -> None:
        """Read the reply's headers; raise if there are too many encodings or an unknown one."""
        named = headers.get("content-encoding", "")
        encodings = [
            name for name in (part.strip().lower() for part in named.split(",")) if name not in ("", "identity")
        ]
        if len(encodings) > MOST_LAYERS:
            raise BodyError(f"the reply is compressed {len(encodings)} times, more than {MOST_LAYERS}")
        self._layers = [_Layer(name, most) for name in reversed(encodings)]
        self._most, self._size = most, 0

    def feed(self, block: bytes) -> bytes:
        """Return the decompressed bytes of a block of the body."""
        for layer in self._layers:
            block = layer.feed(block)
        self._size += len(block)
        if self._size > self._most:
            raise TooLargeError(self._most)
        return block

    def close(self) -> None:
        """Raise if the compressed body ended too early."""
        if any(layer.open for layer in self._layers):
            raise BodyError("the compressed reply ended too early")


class _Layer:
    def __init__(self, name: str, most: int) -> None:
        if name not in ("gzip", "x-gzip", "deflate"):
            raise BodyError(f"the reply is compressed as {name!r:.40}, which the request did not accept")
        # 47: zlib detects gzip or zlib from the first bytes
        self._stream = zlib.decompressobj(47)
        self._raw = name == "deflate"
        self._most, self._size, self._begun = most, 0, False

    @property
    def open(self) -> bool:
        return self._begun and not self._stream.eof

    def feed(self, block: bytes) -> bytes:
        pieces = []
        while block:
            pieces.append(self._decompress(block))
            self._size += len(pieces[-1])
            if self._size > self._most:
                raise TooLargeError(self._most)
            block = self._stream.unconsumed_tail
        return b"".join(pieces)

    def _decompress(self, data: bytes) -> bytes:
        try:
            piece = self._stream.decompress(data, _BLOCK)
        except zlib.error as error:
            if not self._raw:
                raise BodyError(f"the compressed reply is damaged ({error})") from error
            # some servers send raw deflate data, without a zlib header
            self._stream, self._raw = zlib.decompressobj(-15), False
            return self._decompress(data)
        self._raw, self._begun = False, True
        return piece


# ---------------------------------------------------------------- streams: server-sent events, or one JSON object per
# line


class Event(NamedTuple):
    """One event of a server's stream."""

    name: str
    """The name after `event:`; empty if there is none."""
    data: Any
    done: bool = False
    """Whether the event only marks the end of the stream (`[DONE]`)."""


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the JSON objects of a stream; an object is one line, with or without `data:`, or several `data:` lines."""
    name, held, pieces = "", "", 0
    for line in lines:
        text = line.strip()
        if text.startswith("data:"):
            text = text.removeprefix("data:").strip()
        elif text.startswith("event:"):
            name = text.removeprefix("event:").strip()
            # some events have only a name
            if name == "end":
                yield Event(name, None, done=True)
            continue
        elif text.startswith((":", "id:", "retry:")):
            continue
        elif not text:
            if held:
                raise HttpError("a line of the stream is not JSON")
            name = ""
            continue
        if text == "[DONE]":
            yield Event(name, None, done=True)
            continue
        held, pieces = (f"{held}\n{text}", pieces + 1) if held else (text, 1)
        if pieces > _MOST_PIECES:
            raise HttpError(f"an event of the stream has more than {_MOST_PIECES} lines")
        try:
            data = json.loads(held)
        except (ValueError, RecursionError):
            if not line.lstrip().startswith("data:"):
                raise HttpError("a line of the stream is not JSON") from None
            continue
        if text:
            held = ""
            yield Event(name, data)
    if held:
        raise HttpError("a line of the stream is not JSON")


def read_texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the texts of a stream whose events are plain text."""
    held: list[str] = []
    for line in lines:
        line = line.removesuffix("\r")
        if line.startswith("data:"):
            held.append(line.removeprefix("data:").removeprefix(" "))
        elif held and not line:
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)
