"""Servers that send bombs, send slowly, or never end: each exchange stops at its limits, in every client."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from exhibit.converters import Download, cuad
from exhibit.converters.raw import source
from exhibit.evaluation.registers.client import Client, RegisterUnreachableError
from exhibit.models import network
from exhibit.models.llms import Prompt
from exhibit.models.llms.openai import OpenAI, ServerOptions
from exhibit.models.rerankers import http as reranker
from exhibit.schemas.errors import ServiceError, SourceError
from exhibit.storage.bundle import sha256_of
from exhibit.storage.http import HttpClient
from exhibit.storage.http_policy import Deadline, HttpError
from tests.hostile.bombs import packed_zeros

Send = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(send: Send) -> Iterator[str]:
    """Yield the address of a server that answers every request as told."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with suppress(OSError):  # whoever asked has had enough
                send(self)

        do_GET = do_POST  # noqa: N815 - the library calls it so

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{made.server_port}/ask"
    finally:
        made.shutdown()
        made.server_close()


def body(data: bytes, encoding: str = "") -> Send:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        if encoding:
            handler.send_header("Content-Encoding", encoding)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return send


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Send bytes until nobody takes them."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(1 << 16))


def dripping_headers(handler: BaseHTTPRequestHandler) -> None:
    """Send one header after another, without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.server._BaseServer__shutdown_request:  # type: ignore[attr-defined]
        handler.wfile.write(b"X-Slow: yes\r\n")
        handler.wfile.flush()
        threading.Event().wait(0.02)


# ---------------------------------------------------------------- a system under test


def read(url: str, *, seconds: float = 60) -> bytes:
    wire = HttpClient()
    try:
        with wire.send("POST", url, {"question": "x"}, deadline=Deadline(seconds)) as response:
            return response.read()
    finally:
        wire.close()


def test_a_reply_that_is_packed_is_unpacked():
    with server(body(gzip.compress(b'{"answer": "Norway"}', mtime=0), "gzip")) as url:
        assert read(url) == b'{"answer": "Norway"}'


@pytest.mark.parametrize(
    ("layers", "why"), [(1, "larger than 16 MB"), (2, "larger than 16 MB"), (3, "compressed 3 times, more than 2")]
)
def test_a_reply_that_unpacks_to_too_much_is_refused_while_it_comes(layers, why):
    bomb = packed_zeros(layers, 100)
    with server(body(bomb, ", ".join(["gzip"] * layers))) as url, pytest.raises(HttpError, match=why):
        read(url)


@pytest.mark.parametrize("send", [endless, dripping_headers])
def test_a_reply_that_does_not_end_is_given_up(send):
    with server(send) as url, pytest.raises(HttpError, match=r"no complete reply within|larger than 16 MB"):
        read(url, seconds=0.5)


# ---------------------------------------------------------------- registers, rerankers, weights, archives


def test_a_register_that_drips_is_given_up_and_not_asked_again(tmp_path: Path):
    heard: list[str] = []

    def drip(handler: BaseHTTPRequestHandler) -> None:
        heard.append(handler.path)
        dripping_headers(handler)

    with server(drip) as url:
        client = Client(tmp_path, timeout=0.3)
        for _ in range(20):
            with pytest.raises(RegisterUnreachableError, match=r"cannot be asked: no complete reply within 0.3 s"):
                client.page(url)
    assert heard in ([], ["/robots.txt"])  # nothing is heard where the machine is too busy to connect in time


def test_a_server_whose_address_is_refused_is_never_connected_to():
    asked: list[tuple[str, int]] = []

    def policy(host: str, port: int) -> list[str]:
        asked.append((host, port))
        if host == "internal.example":
            raise HttpError("internal.example is not public")
        return ["127.0.0.1"]

    with server(body(b"x")) as url:
        port = urlsplit(url).port
        client = HttpClient(policy=policy)
        with client.send("GET", f"http://public.example:{port}/a", deadline=Deadline(30)) as response:
            assert response.read() == b"x"
        with (
            pytest.raises(HttpError, match="internal.example is not public"),
            client.send("GET", f"http://internal.example:{port}/a", deadline=Deadline(30)),
        ):
            pass
        client.close()
    assert asked == [("public.example", port), ("internal.example", port)]


def test_a_key_does_not_follow_a_redirect_to_another_server():
    seen: list[str | None] = []

    def receive(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers.get("Authorization"))
        body(b"here")(handler)

    with server(receive) as other:

        def move(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", other)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with server(move) as url:
            client = HttpClient({"Authorization": "Bearer planted"})
            with client.send("GET", url, deadline=Deadline(30), follow=1) as response:
                assert (response.read(), response.url) == (b"here", other)
            with client.send("GET", url, deadline=Deadline(30)) as response:
                assert response.status == 302
            client.close()
    assert seen == [None]


def test_a_language_model_whose_headers_drip_is_given_up(monkeypatch):
    with server(dripping_headers) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        model = OpenAI("tiny", ServerOptions(timeout=0.3, retries=0))
        (reply,) = model.complete([Prompt("q")], max_tokens=5, temperature=0.0)
    assert "no reply within 0.3 s" in reply.error


def test_a_reranker_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr(reranker, "_TIMEOUT", 0.3)
    with (
        server(dripping_headers) as url,
        pytest.raises(ServiceError, match=r"no reply \(no complete reply within"),
    ):
        reranker.open(f"m@{url}").score("q", ["p"])


@pytest.mark.parametrize(
    ("send", "why"),
    [
        (body(packed_zeros(2, 100), "gzip, gzip"), "larger than 7 bytes"),
        (body(packed_zeros(3, 100), "gzip, gzip, gzip"), "compressed 3 times"),
        (endless, "larger than 7 bytes"),
    ],
)
def test_weights_are_never_larger_than_they_should_be(send, why, tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    with server(send) as url, pytest.raises(SourceError, match=why):
        monkeypatch.setenv("HF_ENDPOINT", url)
        network.find_file(network.File("other.safetensors", "0" * 64, 7))
    assert not list(tmp_path.rglob("*.safetensors"))


def test_an_archive_is_never_larger_than_it_should_be(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    sizes = []
    monkeypatch.setattr(source, "sha256_of", lambda path: sizes.append(path.stat().st_size) or sha256_of(path))
    with server(endless) as url, pytest.raises(SourceError, match="expected 0000"):
        source.fetch(replace(cuad.INFO, downloads=(Download(f"{url}/cuad.zip", sha256="0" * 64, bytes=1000),)))
    assert sizes == [1001] and not [path for path in tmp_path.rglob("*") if path.is_file()]
