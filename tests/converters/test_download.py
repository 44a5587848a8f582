"""One URL at a time from a server on this machine: kinds, redirects, cookies, robots.txt, limits, failures."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from exhibit.converters.fetching import download
from exhibit.converters.fetching.download import Downloader, FetchError, PageReply, Policy, Resource, is_public
from exhibit.converters.fetching.fetch import fetch_all

Answer = tuple[int, dict[str, str], bytes]
POLICY = Policy(allow_private=True, delay=0.0, retries=0, backoff=0.0, timeout=60.0)
NONE = (404, {}, b"")


class Server(ThreadingHTTPServer):
    pages: dict[str, Answer | Callable[[], Answer]]
    asked: list[tuple[str, dict[str, str]]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(pages: dict[str, Answer | Callable[[], Answer]]) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            page = server.pages.get(self.path, NONE)
            status, headers, body = page() if callable(page) else page
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.pages, server.asked = pages, []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def get(pages: dict[str, Answer | Callable[[], Answer]], policy: Policy = POLICY, path: str = "/a") -> PageReply:
    with serving(pages) as server:
        downloader = Downloader(policy)
        try:
            return downloader.get(f"{server.url}{path}")
        finally:
            downloader.close()


def refused(pages: dict[str, Answer | Callable[[], Answer]], policy: Policy = POLICY, path: str = "/a") -> FetchError:
    with pytest.raises(FetchError) as caught:
        get(pages, policy, path)
    return caught.value


def typed(kind: str, body: bytes) -> dict[str, Answer]:
    return {"/a": (200, {"Content-Type": kind} if kind else {}, body)}


@pytest.mark.parametrize(
    ("declared", "body", "kind"),
    [
        ("text/plain", b"%PDF-1.4", "pdf"),
        ("application/pdf", b"junk %PDF-1.4", "pdf"),
        ("text/plain", b"junk %PDF-1.4", "text"),
        ("text/html; charset=utf-8", b"words", "html"),
        ("application/xhtml+xml", b"words", "html"),
        ("", b"words", "text"),
        ("text/plain", b" \n<!-- a --> <!-- b --><HTML>", "html"),
        ("text/plain", b"<!-- never ended <html>", "text"),
        ("application/octet-stream", b"<!DOCTYPE  html>", "html"),
        ("text/html; charset=UTF-16", "<p>".encode("utf-16"), "html"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK\0", "file"),
        ("text/html", b"x" * 1024 + b"\0", "html"),
    ],
)
def test_what_a_body_is_is_told_by_its_first_bytes_and_its_type(declared, body, kind):
    reply = get(typed(declared, body))
    assert (reply.kind, reply.data) == (kind, body)


@pytest.mark.parametrize(
    ("declared", "body", "reason", "detail"),
    [
        ("text/html", b" \n", "the reply is empty", ""),
        ("text/html", b"a\0b", "neither a page nor a PDF", "text/html"),
        ("image/png", b"\x89PNG\0", "neither a page nor a PDF", "image/png"),
        ("", b"a\0", "neither a page nor a PDF", "unknown type"),
        ("application/pdf", b"x" * 1024 + b"%PDF-", "neither a page nor a PDF", "application/pdf"),
    ],
)
def test_what_is_no_document_is_unusable(declared, body, reason, detail):
    error = refused(typed(declared, body))
    assert (error.fate, error.reason, error.detail, error.status) == ("unusable", reason, detail, 200)


def test_a_file_is_read_by_its_type_or_by_its_address():
    reply = PageReply("http://x/a.DOCX?b.pdf", 200, {"content-type": "application/octet-stream"})
    assert reply.suffix == ".docx" and reply.declared == "application/octet-stream"
    assert replace(reply, headers={"content-type": "Application/PDF; q=1"}).declared == "application/pdf"
    latin = PageReply("http://x/", 200, {"content-type": "text/html; charset='latin-1'; x=y"}, data=b"\xe9")
    assert latin.text == "é" and replace(latin, headers={}, data="é".encode()).text == "é"


@pytest.mark.parametrize(("hops", "followed"), [(10, True), (11, False)])
def test_ten_redirects_are_followed(hops, followed):
    pages: dict[str, Answer | Callable[[], Answer]] = {
        f"/{n}": (302, {"Location": f"/{n + 1}"}, b"") for n in range(hops)
    }
    pages[f"/{hops}"] = (200, {"Content-Type": "text/plain"}, b"there")
    if followed:
        reply = get(pages, path="/0")
        assert reply.data == b"there" and reply.url.endswith(f"/{hops}")
    else:
        error = refused(pages, path="/0")
        assert (error.fate, error.reason, error.detail) == ("failed", "redirects without end", "more than 10")


def test_a_redirect_that_leads_nowhere_is_no_redirect_and_one_to_no_address_is_refused():
    assert get({"/a": (302, {"Content-Type": "text/plain"}, b"words")}).data == b"words"
    error = refused({"/a": (302, {"Location": "ftp://x/y"}, b"")})
    assert (error.fate, error.reason) == ("refused", "not a web address") and "redirected to ftp://x/y" in error.detail


def test_a_cookie_serves_the_next_hop():
    pages = {
        "/a": (302, {"Location": "/b", "Set-Cookie": "one = 1; Path=/"}, b""),
        "/b": (302, {"Location": "/c", "Set-Cookie": "two=2"}, b""),
        "/c": (200, {"Content-Type": "text/plain"}, b"words"),
    }
    with serving(pages) as server:
        downloader = Downloader(POLICY)
        downloader.get(f"{server.url}/a")
        downloader.get(f"{server.url}/c")
        downloader.close()
        cookies = [headers.get("cookie") for path, headers in server.asked if path != "/robots.txt"]
    assert cookies == [None, "one = 1", "one = 1; two=2", None]
    assert [path for path, _ in server.asked].count("/robots.txt") == 1, "each site is asked once"


@pytest.mark.parametrize(
    ("status", "reason", "transient"),
    [
        (404, "HTTP 404 not found", False),
        (400, "HTTP 400 bad request", False),
        (503, "HTTP 503 service unavailable", True),
        (499, "HTTP 499", False),
    ],
)
def test_a_status_is_told_in_words(status, reason, transient):
    error = refused({"/a": (status, {"Retry-After": "7"}, b"")})
    assert (error.fate, error.reason, error.status, error.wait) == ("failed", reason, status, 7.0)
    assert error.transient is transient and error.url.endswith("/a")


def test_a_server_that_asks_for_a_long_wait_is_left():
    error = refused({"/a": (503, {"Retry-After": "100000"}, b"")})
    assert (error.reason, error.detail) == ("the server asks to come back later", "in 100000 s") and not error.transient
    assert refused({"/a": (404, {"Retry-After": "100000"}, b"")}).reason == "HTTP 404 not found"
    assert get({"/a": (399, {"Content-Type": "text/plain"}, b"odd")}).data == b"odd"


def test_what_passes_is_tried_again():
    answers = iter([(503, {}, b""), (200, {"Content-Type": "text/plain"}, b"words")])
    assert get({"/a": lambda: next(answers)}, replace(POLICY, retries=1)).data == b"words"


def test_a_body_is_read_up_to_the_limit():
    assert len(get(typed("text/plain", b"x" * 2000), replace(POLICY, max_bytes=2000)).data) == 2000
    error = refused(typed("text/plain", b"x" * 2001), replace(POLICY, max_bytes=2000))
    assert (error.fate, error.reason, error.detail) == ("unusable", "too large (--max-bytes)", "more than 2000 bytes")


def test_an_encoding_that_cannot_be_undone_and_a_host_that_is_not_there_are_told():
    error = refused({"/a": (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, b"no gzip")})
    assert (error.fate, error.reason) == ("unusable", "the reply cannot be decompressed")
    downloader = Downloader(replace(POLICY, ignore_robots=True))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(FetchError) as caught:
            downloader.get(f"http://127.0.0.1:{free.getsockname()[1]}/")
    assert (caught.value.fate, caught.value.reason) == ("failed", "no connection, or a broken one")
    downloader.close()


@pytest.mark.parametrize(
    ("robots", "fate", "reason"),
    [
        ((200, {}, b"User-agent: *\nDisallow: /a"), "disallowed", "robots.txt forbids this page (--ignore-robots)"),
        ((500, {}, b""), "failed", "robots.txt cannot be read"),
        ((499, {}, b""), "", ""),
        ((404, {}, b""), "", ""),
        ((200, {}, b"x" * (500 * 1024 + 1)), "", ""),
    ],
)
def test_robots_txt_decides_where_it_can_be_read(robots, fate, reason):
    pages: dict[str, Answer | Callable[[], Answer]] = {
        "/a": (200, {"Content-Type": "text/plain"}, b"words"), "/robots.txt": robots,
    }  # fmt: skip
    assert get(pages, replace(POLICY, ignore_robots=True)).data == b"words"
    if fate:
        error = refused(pages)
        assert (error.fate, error.reason) == (fate, reason)
    else:
        assert get(pages).data == b"words"


@pytest.mark.parametrize(("asked", "kept"), [(0.2, 0.5), (7, 7.0), (999, 30.0)])
def test_a_pause_that_robots_txt_asks_for_is_kept_up_to_half_a_minute(monkeypatch, asked, kept):
    turns: list[float] = []
    monkeypatch.setattr(download.Host, "turn", lambda host: turns.append(host.delay))
    robots = (200, {}, f"User-agent: *\nCrawl-delay: {asked}".encode())
    get({**typed("text/plain", b"words"), "/robots.txt": robots}, replace(POLICY, delay=0.5))
    assert turns == [0.5, kept]


def test_what_a_page_asks_for_is_given_without_the_headers_of_the_wire():
    pages = {
        "/a": (301, {"Location": "/b"}, b""),
        "/b": (200, {"Content-Type": "image/png", "Set-Cookie": "a=b", "X-Own": "1"}, b"picture"),
    }
    with serving(pages) as server:
        downloader = Downloader(POLICY)
        own = {"accept-encoding": "br", "host": "elsewhere", "x-asked": "2"}
        status, headers, body = downloader.resource(Resource("GET", f"{server.url}/a", own, None, False))
        assert (status, body, headers["x-own"]) == (200, b"picture", "1")
        assert not {"set-cookie", "content-length", "connection"} & set(headers)
        asked = server.asked[-1][1]
        assert asked["x-asked"] == "2" and asked["host"].startswith("127.0.0.1") and asked["accept-encoding"] != "br"
        status, headers, _ = downloader.resource(Resource("GET", f"{server.url}/a", {}, None, True))
        assert (status, headers["location"]) == (301, "/b"), "a page goes there itself"
        downloader.close()


def test_private_addresses_are_refused_by_name_and_number():
    with pytest.raises(FetchError) as caught:
        Downloader(Policy()).get("http://127.0.0.1/")
    assert (caught.value.fate, caught.value.detail, caught.value.url) == ("refused", "127.0.0.1", "http://127.0.0.1/")
    with pytest.raises(FetchError, match=r"localhost is (127\.0\.0\.1|::1)"):
        Downloader(Policy()).get("http://localhost/")
    assert is_public("1.1.1.1") and not is_public("64:ff9b::a00:1") and is_public("64:ff9b::101:101")
    assert not is_public("fe80::1%eth0") and not is_public("2002::1") and not is_public("224.0.0.1")


def test_what_became_of_each_address_is_told_with_where_it_ended(tmp_path):
    pages = {
        "/a": (302, {"Location": "/gone"}, b""),
        "/b": (404, {}, b""),
        "/c.txt": (200, {"Content-Type": "text/plain"}, b"Rent is due."),
        "/d.pdf": (200, {"Content-Type": "application/pdf"}, b"%PDF-1.4"),
    }
    with serving(pages) as server:
        urls = [f"{server.url}{path}" for path in ("/a", "/b", "/c.txt", "/c.txt#x", "/d.pdf")]
        told = fetch_all([*urls, "ftp://x/y", "http://u:p@x/y"], folder=tmp_path, policy=POLICY, tell=False)
        asked = [path for path, _ in server.asked]
    a, b, text, part, pdf, ftp, secret = told.values()
    assert (a.outcome, a.status, a.final_url) == (
        "failed",
        404,
        f"{urls[0][:-1]}gone",
    ) and a.reason == "HTTP 404 not found"
    assert (b.outcome, b.final_url, b.path) == ("failed", "", None)
    assert (text.outcome, text.filename, part.filename) == ("printed", "c.txt.pdf", "c.txt#x.pdf")
    assert text.printer.startswith("ReportLab ") and text.final_url == urls[2] and asked.count("/c.txt") == 1
    assert (pdf.outcome, pdf.path.read_bytes(), pdf.bytes) == ("pdf", b"%PDF-1.4", 8)
    assert (ftp.outcome, ftp.reason) == ("refused", "not a web address")
    assert secret.url == "http://…@x/y" and "password" in secret.reason
