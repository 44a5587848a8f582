"""A local HTTP server whose replies are a function of the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Reply(NamedTuple):
    """A reply; a `body` of several parts is sent without a length, and other objects as JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


@contextmanager
def serve(answer: Callable[[Request], Reply | None]) -> Iterator[str]:
    """Run a server on a free port and yield its address; it closes the connection where the reply is None."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Write no log."""

        def do_GET(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            reply = answer(Request(self.path, self.headers, data))
            with suppress(BrokenPipeError, ConnectionResetError):  # the client did not wait
                if reply is None:
                    self.close_connection = True
                    self.connection.close()
                else:
                    self.send(reply)

        def do_POST(self) -> None:
            self.do_GET()

        def send(self, reply: Reply) -> None:
            parts: Iterable[bytes] = [reply.body] if isinstance(reply.body, bytes) else reply.body
            if isinstance(reply.body, dict | list):
                parts = [json.dumps(reply.body).encode()]
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if isinstance(parts, list):
                self.send_header("Content-Length", str(len(parts[0])))
            self.end_headers()
            for part in parts:
                self.wfile.write(part)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
