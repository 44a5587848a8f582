"""A local server that replies in the format of a given system, and fails when a test asks for it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from exhibit.evaluation.cases import Case

SSE, LINES, PLAIN = "text/event-stream", "application/json-lines", "text/plain"


class Asked(NamedTuple):
    """A request that the server received."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    """JSON, or for a form its file names and fields."""
    headers: dict[str, str]
    target: str = ""
    """The path with its query, as it was sent."""


class Stream(NamedTuple):
    """A reply that is sent in several parts."""

    pieces: list[str]
    kind: str = SSE


@dataclass
class System:
    """A running imitation of a system: the requests it received, its documents, and the faults of its answers."""

    reply: Callable[[System, Asked], Any]
    cases: dict[str, Case]
    stream: bool = False
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Documents by name, with their state."""
    exists: bool = False
    """Whether there is a collection."""
    unreadable: tuple[str, ...] = ()
    faults: Sequence[Any] = ()
    """What the requests for an answer get, in turn: None for a reply, a status, `break` or `half`."""
    answers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def case(self, question: str) -> Case:
        """Return the case with this question."""
        return self.cases[question]

    def fault(self) -> Any:
        """Return the fault of the next answer, or None; the faults are repeated in turn."""
        with self.lock:
            self.answers += 1
            return self.faults[(self.answers - 1) % len(self.faults)] if self.faults else None


QUESTIONS = re.compile(
    r"/(generate|search|chat|ask|stream|responses|completions|invoke|run|request|retrieval|docs/search)$"
)


@contextmanager
def imitating(
    reply: Callable[[System, Asked], Any], cases: Sequence[Case], *, stream: bool = False
) -> Iterator[System]:
    """Yield a running imitation of a system; its server is stopped when the block ends."""
    system = System(reply, {case.question: case for case in cases}, stream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

        def _do(self) -> None:
            asked = _read(self)
            system.asked.append(asked)
            form = isinstance(asked.body, dict) and "fields" in asked.body
            fault = system.fault() if QUESTIONS.search(asked.path) and not form else None
            with suppress(OSError):
                if isinstance(fault, int):
                    self._whole(fault, {"detail": "not now"})
                else:
                    self._send(system.reply(system, asked), fault)

        do_GET = do_POST = do_DELETE = _do  # noqa: N815

        def _send(self, reply: Any, fault: Any) -> None:
            if isinstance(reply, Stream):
                self._stream(reply, fault)
                return
            if callable(reply):  # it writes to the connection itself
                reply(self)
                return
            given = reply if isinstance(reply, tuple) else (reply, {}) if isinstance(reply, int) else (200, reply)
            self._whole(*given, cut=fault is not None)

        def _whole(self, status: int, body: Any, headers: dict[str, str] | None = None, *, cut: bool = False) -> None:
            """Send a body; with headers, which replace that of JSON, a text or bytes as they are."""
            data = body if isinstance(body, bytes) else (body if headers is not None else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} if headers is None else headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)
            self.close_connection = cut

        def _stream(self, reply: Stream, fault: Any) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"{reply.kind}; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in reply.pieces[: -2 if fault else None]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece.encode()), piece.encode()))
            if fault == "break":
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    system.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield system
    finally:
        server.shutdown()
        server.server_close()


def _read(handler: BaseHTTPRequestHandler) -> Asked:
    data = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    parts = urlsplit(handler.path)
    kind = handler.headers.get("Content-Type", "")
    body = _form(data, kind) if kind.startswith("multipart/") else json.loads(data) if data else None
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return Asked(handler.command, parts.path, query, body, dict(handler.headers), handler.path)


def _form(data: bytes, kind: str) -> dict[str, Any]:
    """Return the file name, the file's text and the other fields of a multipart form."""
    found: dict[str, Any] = {"name": "", "text": "", "fields": {}}
    for part in data.split(b"--" + kind.partition("boundary=")[2].encode())[1:-1]:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'filename="([^"]*)"', head)
        if name:
            found |= {"name": name[1].decode(), "text": content.decode()}
        else:
            field = re.search(rb'name="([^"]*)"', head)
            found["fields"][field[1].decode() if field else ""] = content.decode()
    return found
