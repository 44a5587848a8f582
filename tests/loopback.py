"""Local servers whose replies are a function of the requests."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Request(NamedTuple):
    """A request that a server received; `target` is the unchanged path with its query."""

    method: str
    target: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def body(self) -> Any:
        """The body as JSON; for a form, the name and the text of its file, and the form's fields."""
        kind = self.headers.get("Content-Type", "")
        if kind.startswith("multipart/"):
            return _read_form(self.data, kind)
        return json.loads(self.data) if self.data else None


def _read_form(data: bytes, kind: str) -> dict[str, Any]:
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


class Reply(NamedTuple):
    """A reply: bytes, a text, or an object sent as JSON; the parts of any other iterable are sent without a length."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    cut: bool = False
    """Whether the server sends only the first half of the body, and then closes the connection."""


class Handler(BaseHTTPRequestHandler):
    """A handler that logs nothing and passes every request to its method `handle_request`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""

    def do_GET(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with suppress(OSError):  # the client has disconnected
            self.handle_request(Request(self.command, self.path, self.headers, data))
            self.wfile.flush()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def handle_request(self, request: Request) -> None:
        raise NotImplementedError

    def give(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None, cut: bool = False) -> None:
        """Send a reply; see `Reply`."""
        headers = dict(headers or {})
        if isinstance(body, dict | list):
            headers.setdefault("Content-Type", "application/json")
            body = json.dumps(body)
        body = body.encode() if isinstance(body, str) else body
        self.close_connection = cut or not isinstance(body, bytes) or "Content-Length" in headers
        if isinstance(body, bytes):
            headers.setdefault("Content-Length", str(len(body)))
            body = [body[: len(body) // 2] if cut else body]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for part in body if self.command != "HEAD" else ():
            self.wfile.write(part)
            self.wfile.flush()


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def run_server(handler: type[BaseHTTPRequestHandler] | Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server with this handler on a free port, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def serve(answer: Callable[[Request], Reply | Callable[[Handler], object] | None]) -> AbstractContextManager[str]:
    """Run a server and yield its address; `answer` may return a function that writes the response; None disconnects."""

    class ReplyHandler(Handler):
        def handle_request(self, request: Request) -> None:
            reply = answer(request)
            if isinstance(reply, Reply):
                self.give(*reply)
            elif reply is None:
                self.close_connection = True
            else:
                reply(self)

    return run_server(ReplyHandler)
