"""One deadline for a whole exchange over HTTP, from connecting to the last byte, whoever makes the request.

    client = with_deadline(httpx.Client(), seconds=60)

Libraries limit the silence between two bytes alone: a server that drips its headers could hold a request for ever.
"""

from __future__ import annotations

import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

import httpcore

if TYPE_CHECKING:
    import httpx


class Deadline:
    """The moment by which something must be done."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self._end - time.monotonic())


class _Held(threading.local):
    value: Deadline | None = None


in_force = _Held()
"""The deadline of the exchange that this thread is at."""


def with_deadline(client: httpx.Client, *, seconds: float) -> httpx.Client:
    """Return the client, each of whose exchanges ends after so many seconds: in its reply or in httpx's own timeout."""

    def begin(_: httpx.Request) -> None:
        in_force.value = Deadline(seconds)

    client.event_hooks = {**client.event_hooks, "request": [begin, *client.event_hooks["request"]]}
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = BoundedBackend()
    return client


def patience(size: int) -> float:
    """Return the seconds that a download of so many bytes may take: ten minutes, and 50 kB a second."""
    return 600 + size / 50_000


class BoundedBackend(httpcore.SyncBackend):
    """Opens connections on which no single wait lasts beyond the deadline of the thread that waits."""

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
        return _Bounded(super().connect_tcp(host, port, left, local_address, socket_options))


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
    deadline = in_force.value
    if deadline is None:
        return timeout
    if not deadline.left:
        raise error("the deadline of the whole exchange")
    return deadline.left if timeout is None else min(timeout, deadline.left)
