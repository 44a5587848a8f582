"""The HTTP server: it reads a request, applies a fault, calls the route, sends the reply and records both."""

from __future__ import annotations

import socket
import struct
import threading
import traceback
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from .faults import Fault
from .wire import Call, HubError, Reply, Request, find_route

if TYPE_CHECKING:
    from .hub import LoopbackHub

LOST = (OSError, ValueError)
"""What a socket raises when the other side, or our own end of the test, has closed it."""


class Server(ThreadingHTTPServer):
    """A server that closes every connection when it stops, so that idle connections keep no thread alive."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, hub: LoopbackHub) -> None:
        self.hub = hub
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def start(self) -> None:
        """Serve in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, close the open ones, and wait for the server loop but not for its threads."""
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def process_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def close_request(self, request) -> None:  # type: ignore[no-untyped-def]
        with self._lock:
            self._open.discard(request)
        super().close_request(request)

    def handle_error(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        """Print nothing: clients that disconnect are part of the tests, and `Handler` records our own errors."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

    def _serve(self) -> None:
        hub = self.server.hub
        parts = urlsplit(self.path if self.command != "CONNECT" else f"https://{self.path}/")
        path = f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.netloc else parts.path
        request = Request(self.command, path, parse_qs(parts.query, keep_blank_values=True), self.headers)
        hub.requests.append(request)
        fault = hub.faults.take(self.command, self.path)
        try:
            self._answer(hub, request, fault)
        except LOST:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_CONNECT = _serve  # noqa: N815 (http.server looks for these names)

    def _answer(self, hub: LoopbackHub, request: Request, fault: Fault | None) -> None:
        if fault and fault.delay and self.server.closing.wait(fault.delay):
            return self._reset()
        body = self._read_body(request, fault)
        if body is None:
            return self._reset()
        if fault and fault.status:
            text = b'{"error": "Planted fault"}' if fault.body is None else fault.body
            return self._send(request, Reply(fault.status, text, {"Content-Type": "application/json", **fault.headers}))
        reply = self._ask(Call(hub, request, body))
        if fault and fault.lost_reply:
            return self._reset()
        if fault and fault.headers:
            reply.headers.update(fault.headers)
        return self._send(request, reply, fault if fault and fault.cut else None)

    def _ask(self, call: Call) -> Reply:
        """Return the route's reply; an unknown request is 404, an error of ours is 500, and both are recorded."""
        route = find_route(call)
        if route is None:
            call.hub.unknown.append(f"{call.request.method} {self.path}")
            return HubError(404, "Not Found").reply()
        try:
            return route(call)
        except HubError as error:
            return error.reply()
        except Exception:
            call.hub.crashes.append(f"{call.request.method} {self.path}\n{traceback.format_exc()}")
            return HubError(500, "Internal Error: the loopback hub has a defect").reply()

    def _read_body(self, request: Request, fault: Fault | None) -> bytes | None:
        """Read and return the whole body; a fault can end this early.

        In that case only a part is read, and the result is None if the fault cuts the connection, else empty.
        """
        if (self.headers["Transfer-Encoding"] or "").lower() == "chunked":
            body = self._read_chunks()
            request.size = len(body)
            return body
        length = int(self.headers["Content-Length"] or 0)
        early = fault is not None and length > 0 and (fault.cut or fault.after_bytes is not None)
        if not early or fault is None:
            body = self.rfile.read(length)
            request.size = len(body)
            if len(body) < length:
                raise ConnectionError
            return body
        wanted = length // 2 if fault.after_bytes is None else min(fault.after_bytes, length)
        request.size = len(self.rfile.read(wanted))
        self.close_connection = True  # the rest of the body is still on its way
        return None if fault.cut else b""

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return bytes(body)

    def _send(self, request: Request, reply: Reply, cut: Fault | None = None) -> None:
        request.status = reply.status
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 304:
            self.send_header("Content-Length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        head = b"".join(self._headers_buffer) + b"\r\n"
        self._headers_buffer: list[bytes] = []
        body = b"" if self.command == "HEAD" or reply.status == 304 else reply.body
        if cut is None:
            self.wfile.write(head + body if len(body) < 1 << 16 else head)
            if len(body) >= 1 << 16:
                self.wfile.write(body)
            return
        self.wfile.write(head + body[: len(body) // 2 if cut.after_bytes is None else cut.after_bytes])
        self._reset(linger=True)

    def _reset(self, *, linger: bool = False) -> None:
        """Reset the connection; with `linger`, data already sent arrives first."""
        self.close_connection = True
        if not linger:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            if linger:
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.connection.close()
