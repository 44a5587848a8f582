"""A local RAG server for the tests, with every fault that a real server has shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.evaluation.loopback import Asked, System, imitating

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
    """From a question to JSON, bytes sent as they are, a status, a status and its body, or the name of a fault."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    retry_after: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def questions(self) -> list[str]:
        """What it was asked, in order of arrival."""
        return [question_of(body) for body in self.bodies]

    def answer(self, _: System, asked: Asked) -> Any:
        if asked.method == "GET":
            return 404
        self.bodies.append(asked.body)
        self.headers.append(asked.headers)
        reply = self.reply(question_of(asked.body))
        if isinstance(reply, str):
            return partial(self._fail, reply)
        status, body = reply if isinstance(reply, tuple) else (reply, b"") if isinstance(reply, int) else (200, reply)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        retry = {"Retry-After": self.retry_after} if self.retry_after else {}
        return status, data, {"Content-Type": "application/json", **retry}

    def _fail(self, fault: str, handler: BaseHTTPRequestHandler) -> None:
        """Be silent (`hang`), send part of a reply (`cut`), or send it without end (`drip`, `drip headers`)."""
        handler.close_connection = True
        if fault == "hang":
            self.closing.wait(30)
            return
        headers, drop = b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n"
        if fault != "drip headers":
            headers, drop = headers + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n", b" "
        handler.wfile.write(headers)
        while fault != "cut" and not self.closing.wait(0.05):
            handler.wfile.write(drop)
            handler.wfile.flush()


@contextmanager
def serving() -> Iterator[RagServer]:
    """Yield a running server; it is stopped when the block ends."""
    state = RagServer()
    with imitating(state.answer, []) as system:
        state.url = f"{system.url}/ask"
        try:
            yield state
        finally:
            state.closing.set()
