"""A local RAG server for the tests, with every fault that a real server has shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "Bearer planted-4f9a1c77b2e64d50"


def chat(answer: str, passages: Any) -> dict[str, Any]:
    """Return the reply of a chat server with this answer and these passages."""
    return {"message": {"content": answer, "role": "assistant"}, "context": {"data_points": {"text": passages}}}


def question_of(body: dict[str, Any]) -> Any:
    """Return the question of a common body; of another body, the body itself."""
    if "messages" in body:
        return body["messages"][-1]["content"]
    return body.get("question") or body.get("query") or body


@dataclass
class RagServer:
    """A running RAG server: the requests it received, and the function that makes its replies."""

    url: str = ""
    reply: Callable[[str], Any] = lambda question: chat(f"You asked: {question}", [])
    """From a question to JSON, bytes sent as they are, a status, a status and its body, `hang`, `drip` or `cut`."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    content_type: str = "application/json"
    retry_after: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def questions(self) -> list[str]:
        """What it was asked, in order of arrival."""
        return [question_of(body) for body in self.bodies]


@contextmanager
def serving() -> Iterator[RagServer]:
    """Yield a running server; it is stopped when the block ends."""
    state = RagServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # a reply in one packet: the client's acknowledgement of a first one would cost 40 ms

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.bodies.append(body)
            state.headers.append(dict(self.headers))
            reply = state.reply(question_of(body))
            with suppress(OSError):
                self._send(reply)

        def _send(self, reply: Any) -> None:
            if reply == "hang":
                state.closing.wait(30)
                return
            if reply == "cut":
                self._head(200, 1000)
                self.wfile.write(b'{"message"')
                self.close_connection = True
                return
            if reply == "drip headers":
                self._drip(b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n")
                return
            if reply == "drip":
                self._head(200, 1 << 20)
                self._drip(b"", b" ")
                return
            status, body = (
                reply if isinstance(reply, tuple) else (reply, b"") if isinstance(reply, int) else (200, reply)
            )
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self._head(status, len(data))
            self.wfile.write(data)

        def _head(self, status: int, length: int) -> None:
            self.send_response(status)
            self.send_header("Content-Type", state.content_type)
            self.send_header("Content-Length", str(length))
            if state.retry_after:
                self.send_header("Retry-After", state.retry_after)
            self.end_headers()

        def _drip(self, first: bytes, drop: bytes) -> None:
            self.wfile.write(first)
            self.close_connection = True
            while not state.closing.wait(0.05):
                self.wfile.write(drop)
                self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/ask"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
