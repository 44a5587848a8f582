"""A web page that is too large, arrives too slowly or redirects for ever ends with an error."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from exhibit.converters.pages.download import MAX_REDIRECTS, Downloader, FetchError, Policy

POLICY = Policy(allow_private=True, ignore_robots=True, delay=0.0, retries=0)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        what, _, number = self.path.strip("/").partition("/")
        count = int(number)
        self.send_response(302 if what == "moved" and count else 200)
        if what == "moved" and count:
            self.send_header("Location", f"/moved/{count - 1}")
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "0" if what == "moved" and count else str(count or 5))
        self.end_headers()
        if what == "drip":
            with contextlib.suppress(OSError):
                for _ in range(count):
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(0.1)
        elif what == "body" or not count:
            with contextlib.suppress(OSError):
                self.wfile.write(b"x" * (count or 5))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def get(url: str, policy: Policy) -> bytes:
    with contextlib.closing(Downloader(policy)) as downloader:
        return downloader.get(url).data


def test_body_is_read_up_to_the_limit(url):
    policy = replace(POLICY, max_bytes=2000)
    assert len(get(f"{url}/body/2000", policy)) == 2000
    with pytest.raises(FetchError) as caught:
        get(f"{url}/body/2001", policy)
    assert str(caught.value) == "too large (--max-bytes): the reply is larger than 2000 bytes"


def test_slowly_sent_reply_times_out_at_the_deadline(url):
    start = time.monotonic()
    with pytest.raises(FetchError, match="timed out"):
        get(f"{url}/drip/100", replace(POLICY, timeout=0.5))
    assert time.monotonic() - start < 5, "each byte comes soon, and all would take ten seconds"


def test_redirects_are_followed_up_to_the_limit(url):
    assert get(f"{url}/moved/{MAX_REDIRECTS}", POLICY) == b"xxxxx"
    with pytest.raises(FetchError, match="redirects without end"):
        get(f"{url}/moved/{MAX_REDIRECTS + 1}", POLICY)
