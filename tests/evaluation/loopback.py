"""Local servers that reply in the format of a given system, with faults if a test requests them."""

from __future__ import annotations

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
SECRET = "Bearer planted-4f9a1c77b2e64d50"


class StreamedReply(NamedTuple):
    """A reply that is sent in several parts."""

    pieces: list[str]
    kind: str = SSE


def chat(answer: str, passages: Any) -> dict[str, Any]:
    """Return the reply of a chat server with this answer and these passages."""
    return {"message": {"content": answer, "role": "assistant"}, "context": {"data_points": {"text": passages}}}


@dataclass
class ImitatedSystem:
    """A running imitation of a system: the requests it received, its documents, and the faults that it imitates."""

    handle: Callable[[ImitatedSystem, Request], Any]
    """Returns JSON, unchanged bytes, a status, a status with its body, a streamed reply, or the name of a fault."""
    cases: dict[str, Case]
    stream: bool = False
    url: str = ""
    reply: Callable[[str], Any] = lambda question: chat(f"You asked: {question}", [])
    """Returns the same for a question, if the system is the one of `serving`."""
    asked: list[Request] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """The state of each document, by name."""
    exists: bool = False
    """Whether there is a collection."""
    unreadable: tuple[str, ...] = ()
    faults: Sequence[Any] = ()
    """The result of each request for an answer, in turn: None for a reply, a status, `break` or `half`."""
    answers: int = 0
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def questions(self) -> list[str]:
        """The received questions, in order."""
        return [question_of(request.body) for request in self.asked if request.method == "POST"]

    def case(self, question: str) -> Case:
        """Return the case with this question."""
        return self.cases[question]

    def fault(self) -> Any:
        """Return the fault of the next answer, or None; after the last fault, the first one is used again."""
        with self.lock:
            self.answers += 1
            return self.faults[(self.answers - 1) % len(self.faults)] if self.faults else None

    def answer(self, request: Request) -> Reply | Callable[[Handler], object]:
        """Return the reply to a request, or a function that writes it."""
        self.asked.append(request)
        form = isinstance(request.body, dict) and "fields" in request.body
        fault = self.fault() if QUESTIONS.search(request.path) and not form else None
        if isinstance(fault, int):
            return Reply({"detail": "not now"}, fault)
        reply = self.handle(self, request)
        if isinstance(reply, str):
            return partial(_fail, self, reply)
        if isinstance(reply, StreamedReply):
            return partial(_send_stream, reply, fault)
        given = reply if isinstance(reply, tuple) else (reply, b"") if isinstance(reply, int) else (200, reply)
        status, body, headers = (*given, self.headers)[:3]
        return Reply(body, status, headers, fault is not None)


QUESTIONS = re.compile(
    r"/(generate|search|chat|ask|stream|responses|completions|invoke|run|request|retrieval|docs/search)$"
)


def question_of(body: dict[str, Any]) -> Any:
    """Return the question of a body in a usual format; return a body in an unknown format unchanged."""
    if "messages" in body:
        return body["messages"][-1]["content"]
    return body.get("question") or body.get("query") or body


@contextmanager
def imitating(
    handle: Callable[[ImitatedSystem, Request], Any], cases: Sequence[Case], *, stream: bool = False
) -> Iterator[ImitatedSystem]:
    """Yield a running imitation of a system; its server is stopped when the block ends."""
    system = ImitatedSystem(handle, {case.question: case for case in cases}, stream)
    with serve(system.answer) as system.url:
        try:
            yield system
        finally:
            system.closing.set()


@contextmanager
def serving() -> Iterator[ImitatedSystem]:
    """Yield a running system at `/ask` whose `reply` is a function of the question."""

    def answer_question(system: ImitatedSystem, request: Request) -> Any:
        return 404 if request.method == "GET" else system.reply(question_of(request.body))

    with imitating(answer_question, []) as system:
        system.url += "/ask"
        yield system


def _send_stream(reply: StreamedReply, fault: Any, handler: Handler) -> None:
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


def _fail(system: ImitatedSystem, fault: str, handler: Handler) -> None:
    """Send nothing (`hang`), a part of a reply (`cut`), or an endless reply (`drip`, `drip headers`)."""
    handler.close_connection = True
    if fault == "hang":
        system.closing.wait(30)
        return
    headers, drop = b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n"
    if fault != "drip headers":
        headers, drop = headers + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n", b" "
    handler.wfile.write(headers)
    while fault != "cut" and not system.closing.wait(0.05):
        handler.wfile.write(drop)
        handler.wfile.flush()
