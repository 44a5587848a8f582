"""Local object stores in separate processes, and a proxy in front of them that simulates network faults."""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.loopback import Handler, free_port, run_server

KEY, SECRET = "loopback", "loopback-secret-of-nobody"
_SECONDS = 120.0
"""The timeout in seconds for the first answer of a server on a busy machine."""
_AWAY = "an extra of the project is missing, 'test': pip install 'exhibit-rag[test]'"


@contextmanager
def running(command: Sequence[str | Path], port: int, log: Path) -> Iterator[str]:
    """Run a server until the block ends; yield its address when it takes connections."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        end = time.monotonic() + _SECONDS
        while not _answers(port):
            assert process.poll() is None, f"{command[0]} ended: {log.read_text(errors='replace')[-500:]}"
            assert time.monotonic() < end, f"{command[0]} does not answer"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def moto(folder: Path) -> AbstractContextManager[str]:
    """Return a context that runs moto's imitation of S3 and yields its address."""
    port = free_port()
    return running([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port, folder / "moto.log")


def rclone(folder: Path) -> AbstractContextManager[str]:
    """Return a context that serves a folder as S3 with rclone and yields its address.

    rclone checks signatures and uses file names as keys.
    """
    program, port, root = Path(sys.executable).with_name("rclone"), free_port(), folder / "served"
    if not program.is_file():
        pytest.fail(_AWAY)
    root.mkdir()
    arguments = ["serve", "s3", "--config", "", "--auth-key", f"{KEY},{SECRET}", "--addr", f"127.0.0.1:{port}"]
    return running([program, *arguments, root], port, folder / "rclone.log")


def google(folder: Path) -> AbstractContextManager[str]:
    """Return a context that runs the Google Cloud Storage emulator and yields its address.

    It has a bucket named `bucket`.
    """
    program, port = Path(sys.executable).with_name("gcp-storage-emulator"), free_port()
    if not program.is_file():
        pytest.fail(_AWAY)
    arguments = ["start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=bucket", "--quiet"]
    return running([program, *arguments], port, folder / "google.log")


class Request(NamedTuple):
    """A request that passes the proxy; `number` counts from 1."""

    number: int
    method: str
    path: str


Fault = Callable[[Request], str | None]
"""Returns the fault of a request: `500`, `slow down`, `drop`, `cut`, `delay`, or None."""
_DELAY = 0.3
_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_INTERNAL = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"


class Proxy:
    """A proxy that forwards requests to a server, except those that a fault affects."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.partition("://")[2]
        self.fault: Fault = lambda request: None
        self.requests: list[Request] = []
        self.faults: list[str] = []
        self._lock = threading.Lock()

    @contextmanager
    def run(self) -> Iterator[str]:
        """Run the proxy and yield its address."""
        proxy = self

        class ProxyHandler(Handler):
            def _handle(self) -> None:
                proxy.pass_on(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815

        with run_server(ProxyHandler) as address:
            yield address

    def pass_on(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request with the server's answer, or with a fault."""
        body = _body(handler)
        with self._lock:
            request = Request(len(self.requests) + 1, handler.command, handler.path)
            self.requests.append(request)
            fault = self.fault(request)
            if fault:
                self.faults.append(fault)
        if fault == "drop":
            handler.close_connection = True
        elif fault in ("500", "slow down"):
            slow = fault == "slow down"
            _answer(handler, 503 if slow else 500, [], _SLOW_DOWN if slow else _INTERNAL)
        else:
            status, headers, content = self._ask(handler, body)
            time.sleep(_DELAY if fault == "delay" else 0)
            _answer(handler, status, headers, content, cut=fault == "cut")

    def _ask(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.upstream, timeout=60)
        connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            if name.lower() not in ("expect", "transfer-encoding", "content-length", "connection"):
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in ("transfer-encoding", "connection")]
        connection.close()
        return answer.status, headers, content


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if "chunked" in handler.headers.get("Transfer-Encoding", ""):
        parts = []
        while size := int(handler.rfile.readline().split(b";")[0], 16):
            parts.append(handler.rfile.read(size))
            handler.rfile.readline()
        handler.rfile.readline()
        return b"".join(parts)
    return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))


def _answer(
    handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes, *, cut: bool = False
) -> None:
    handler.send_response_only(status)
    names = {name.lower() for name, _ in headers}
    for name, value in headers:
        handler.send_header(name, value)
    if "content-length" not in names:
        handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(content[: len(content) // 2] if cut else content)
    if cut:
        handler.close_connection = True
