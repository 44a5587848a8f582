"""A local web site for the tests, with the sample's pages and with every fault that a server can have."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.loopback import Handler, Request, run_server

_HTML = "text/html; charset=utf-8"
_TYPES = {
    ".html": _HTML, ".pdf": "application/pdf", ".png": "image/png", ".css": "text/css", ".json": "application/json",
    ".txt": "text/plain; charset=utf-8", ".zip": "application/zip", ".docx": "application/octet-stream",
}  # fmt: skip


class Site:
    """A running web server that records its requests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        self.agents: set[str] = set()
        self.closing = threading.Event()
        self.url = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def file(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


class _Handler(Handler):
    site: Site

    def handle_request(self, request: Request) -> None:
        path = request.path
        self.site.asked[self.path] += 1
        self.site.hosts[self.headers.get("Host", "").partition(":")[0]] += 1
        self.site.agents.add(self.headers.get("User-Agent", ""))
        name = path.strip("/").partition("/")[0].partition(".")[0]
        replies = _list_replies(self.site)
        if name in replies:
            self.send(*replies[name])
        elif special := getattr(self, f"get_{name}", None):
            special()
        else:
            self._static(unquote(path).lstrip("/"))

    def send(self, data: bytes, kind: str, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> None:
        self.give(data, status, {"Content-Type": kind, **dict(headers)})

    def _static(self, name: str) -> None:
        path = self.site.root / name
        if path.is_file():
            self.send(path.read_bytes(), _TYPES[path.suffix])
        else:
            self.send(b"not here", "text/plain", 404)

    def get_busy(self) -> None:
        if self.site.asked[self.path] == 1:
            self.send(b"later", "text/plain", 429, [("Retry-After", "2")])
        else:
            self.send(_make_page("<p>Now there is time.</p>"), _HTML)

    def get_stalled(self) -> None:
        self.close_connection = True
        self.site.closing.wait(30)

    def get_rude(self) -> None:
        self.close_connection = True

    def get_broken(self) -> None:
        """Break off after the first 1,000 bytes of a file, but answer a request for the rest completely."""
        data = self.site.file("CUAD_v1.zip")
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        length = {"Content-Length": str(len(data) - start)}
        self.give(data[start:] if start else data[:1000], 206 if start else 200, length)


def _make_page(body: str) -> bytes:
    return f"<!doctype html><meta charset=utf-8><title>A page</title><body>{body}</body>".encode()


def _list_replies(site: Site) -> dict[str, tuple[Any, ...]]:
    """Return the fixed replies (body, type, status, headers) by the first segment of the URL's path."""
    inside = f"http://inside.example:{site.port}/secret.txt"
    # a page that requests other hosts and local files
    curious = (
        f'<p>Looking around.</p><img src="{inside}?image"><iframe src="{inside}?frame"></iframe>'
        f'<img src="/to-inside?image"><iframe src="{(site.root / "notice.txt").as_uri()}"></iframe>'
        f'<script>fetch("{inside}?script", {{mode: "no-cors"}});'
        f' try {{ new WebSocket("ws://inside.example:{site.port}/socket") }} catch (e) {{}}</script>'
    )
    pages = {
        "lazy": '<div style="height: 9000px">Scroll.</div><img src="/seal.png?lazy" loading="lazy" width=120>',
        "waiting": '<p>All but the picture.</p><img src="/stalled.png">',
        "curious": curious,
        "wanders-inside": f'<script>location.href = "{inside}"</script>',
    }
    moves = {
        "moved": (301, "/moved-again"), "moved-again": (307, "guide.html"), "to-inside": (302, inside),
        "to-metadata": (302, "http://169.254.169.254/latest/meta-data/"), "to-file": (302, "file:///etc/passwd"),
    }  # fmt: skip
    files = {
        "secret": (b"for the inside only", "text/plain", 200, [("Access-Control-Allow-Origin", "*")]),
        "archive": (b"PK\x03\x04" + bytes(2000), "application/zip"),
        "empty": (b"", "text/html"),
    }
    if (site.root / "guide.html").is_file():
        attachment = [("Content-Disposition", "attachment")]
        files["attached"] = (site.file("guide.html"), "application/octet-stream", 200, attachment)
        files["mislabelled"] = (site.file("order-17.pdf"), "text/html")
    return {
        **{name: (_make_page(body), _HTML) for name, body in pages.items()},
        **{name: (b"", "text/html", status, [("Location", target)]) for name, (status, target) in moves.items()},
        **files,
    }


@contextmanager
def serve(root: Path) -> Iterator[Site]:
    """Run the site on a free port."""
    site = Site(root)
    with run_server(type("Handler", (_Handler,), {"site": site})) as site.url:
        try:
            yield site
        finally:
            site.closing.set()
