"""One deadline for a whole exchange over HTTP, from connecting to the last byte.

Libraries limit the silence between two bytes alone: a server that drips its headers could hold a request for ever.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore

from exhibit.storage.http.errors import HttpError

AddressPolicy = Callable[[str, int], str]
"""Returns the address to connect to for a host and a port; raises HttpError for one that must not be asked."""


class Deadline:
    """The moment by which something must be done."""

    def __init__(self, seconds: float, *, flag: str = "") -> None:
        """Begin now; `flag` names what a user changes to allow more."""
        self.seconds = seconds
        self._flag = f" ({flag})" if flag else ""
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self._end - time.monotonic())

    def passed(self) -> HttpError:
        """Return the error for an exchange whose time is up."""
        return HttpError(f"no whole reply within {self.seconds:g} s{self._flag}")

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Bound every wait of this thread's connections meanwhile."""
        before, _current.value = _current.value, self
        try:
            yield
        finally:
            _current.value = before


def download_deadline(size: int) -> Deadline:
    """Return the deadline of a download of so many bytes: ten minutes, and 50 kB a second."""
    return Deadline(600 + size / 50_000)


class _Current(threading.local):
    value: Deadline | None = None


_current = _Current()
"""The deadline of the exchange that this thread is at."""


class BoundedBackend(httpcore.SyncBackend):
    """Opens connections on which no single wait lasts beyond the deadline of the thread that waits."""

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
        """Open a connection."""
        left = _left(timeout, httpcore.ConnectTimeout)
        address = self._policy(host, port) if self._policy else host
        return _Bounded(super().connect_tcp(address, port, left, local_address, socket_options))


class _Bounded(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, error: type[Exception]) -> float | None:
    """Return how long a wait may last; raise where the time is up."""
    deadline = _current.value
    if deadline is None:
        return timeout
    if not deadline.left:
        raise error("the deadline of the whole exchange")
    return deadline.left if timeout is None else min(timeout, deadline.left)
