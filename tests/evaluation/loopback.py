"""Local servers that reply in the format of a given system, with faults if a test requests them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from exhibit.evaluation.cases import Case
from tests.loopback import Handler, Reply, Request, serve

SSE, LINES = "text/event-stream", "application/json-lines"


class StreamedReply(NamedTuple):
    """A reply that is sent in several parts."""

    pieces: list[str]
    kind: str = SSE


@dataclass
class ImitatedSystem:
    """A running imitation of a system: the requests it received, its documents, and the faults that it imitates."""

    reply: Callable[[ImitatedSystem, Request], Any]
    cases: dict[str, Case]
    stream: bool = False
    url: str = ""
    asked: list[Request] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """The state of each document, by name."""
    exists: bool = False
    """Whether there is a collection."""
    unreadable: tuple[str, ...] = ()
    faults: Sequence[Any] = ()
    """The result of each request for an answer, in turn: None for a reply, a status, `break` or `half`."""
    answers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def case(self, question: str) -> Case:
        """Return the case with this question."""
        return self.cases[question]

    def fault(self) -> Any:
        """Return the fault of the next answer, or None; after the last fault, the first one is used again."""
        with self.lock:
            self.answers += 1
            return self.faults[(self.answers - 1) % len(self.faults)] if self.faults else None


QUESTIONS = re.compile(
    r"/(generate|search|chat|ask|stream|responses|completions|invoke|run|request|retrieval|docs/search)$"
)


@contextmanager
def imitating(
    reply: Callable[[ImitatedSystem, Request], Any], cases: Sequence[Case], *, stream: bool = False
) -> Iterator[ImitatedSystem]:
    """Yield a running imitation of a system; its server is stopped when the block ends."""
    system = ImitatedSystem(reply, {case.question: case for case in cases}, stream)

    def answer(request: Request) -> Reply | Callable[[Handler], object]:
        system.asked.append(request)
        form = isinstance(request.body, dict) and "fields" in request.body
        fault = system.fault() if QUESTIONS.search(request.path) and not form else None
        if isinstance(fault, int):
            return Reply({"detail": "not now"}, fault)
        reply = system.reply(system, request)
        if isinstance(reply, StreamedReply):
            return lambda handler: _send_stream(handler, reply, fault)
        if callable(reply):  # the function writes to the connection
            return reply  # type: ignore[no-any-return]
        given = reply if isinstance(reply, tuple) else (reply, {}) if isinstance(reply, int) else (200, reply)
        status, body, headers = given if len(given) == 3 else (*given, {"Content-Type": "application/json"})
        body = json.dumps(body) if len(given) == 2 and not isinstance(body, bytes) else body
        return Reply(body, status, headers, fault is not None)

    with serve(answer) as system.url:
        yield system


def _send_stream(handler: Handler, reply: StreamedReply, fault: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", f"{reply.kind}; charset=utf-8")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for piece in reply.pieces[: -2 if fault else None]:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece.encode()), piece.encode()))
    if fault == "break":
        handler.close_connection = True
    else:
        handler.wfile.write(b"0\r\n\r\n")


SECRET = "Bearer planted-4f9a1c77b2e64d50"


def chat(answer: str, passages: Any) -> dict[str, Any]:
    """Return the reply of a chat server with this answer and these passages."""
    return {"message": {"content": answer, "role": "assistant"}, "context": {"data_points": {"text": passages}}}


def question_of(body: dict[str, Any]) -> Any:
    """Return the question of a body in a usual format; return a body in an unknown format unchanged."""
    if "messages" in body:
        return body["messages"][-1]["content"]
    return body.get("question") or body.get("query") or body


@dataclass
class RagServer:
    """A running RAG server: the requests it received, and the function that makes its replies."""

    url: str = ""
    reply: Callable[[str], Any] = lambda question: chat(f"You asked: {question}", [])
    """Returns for a question JSON, unchanged bytes, a status, a status with its body, or the name of a fault."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    retry_after: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def questions(self) -> list[str]:
        """The received questions, in order."""
        return [question_of(body) for body in self.bodies]

    def answer(self, _: ImitatedSystem, request: Request) -> Any:
        if request.method == "GET":
            return 404
        self.bodies.append(request.body)
        self.headers.append(request.headers)
        reply = self.reply(question_of(request.body))
        if isinstance(reply, str):
            return partial(self._fail, reply)
        status, body = reply if isinstance(reply, tuple) else (reply, b"") if isinstance(reply, int) else (200, reply)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        retry = {"Retry-After": self.retry_after} if self.retry_after else {}
        return status, data, {"Content-Type": "application/json", **retry}

    def _fail(self, fault: str, handler: Handler) -> None:
        """Send nothing (`hang`), a part of a reply (`cut`), or an endless reply (`drip`, `drip headers`)."""
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
