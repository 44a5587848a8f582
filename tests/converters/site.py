"""A local web site for the tests, with the sample's pages and with every fault that a server can have."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".css": "text/css",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".zip": "application/zip",
    ".docx": "application/octet-stream",
}


class Site:
    """A running web server that records its requests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        self.agents: set[str] = set()
        self.closing = threading.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def file(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.site.asked[self.path] += 1
        self.site.hosts[self.headers.get("Host", "").partition(":")[0]] += 1
        self.site.agents.add(self.headers.get("User-Agent", ""))
        special = getattr(self, "get_" + path.strip("/").partition("/")[0].partition(".")[0].replace("-", "_"), None)
        try:
            if special is not None:
                special()
            else:
                self._static(unquote(path).lstrip("/"))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def give(self, data: bytes, kind: str, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def page(self, body: str, title: str = "A page") -> None:
        html = f"<!doctype html><meta charset=utf-8><title>{title}</title><body>{body}</body>"
        self.give(html.encode(), "text/html; charset=utf-8")

    def to(self, location: str, status: int = 302) -> None:
        self.give(b"", "text/html", status, Location=location)

    def _static(self, name: str) -> None:
        path = self.site.root / name
        if path.is_file():
            self.give(path.read_bytes(), _TYPES[path.suffix])
        else:
            self.give(b"not here", "text/plain", 404)

    # -------------------------------------------------------- good pages with a twist

    def get_moved(self) -> None:
        self.to("/moved-again", 301)

    def get_moved_again(self) -> None:
        self.to("guide.html", 307)

    def get_mislabelled(self) -> None:
        self.give(self.site.file("order-17.pdf"), "text/html")

    def get_attached(self) -> None:
        data = self.site.file("guide.html")
        self.give(data, "application/octet-stream", Content_Disposition="attachment")

    def get_busy(self) -> None:
        if self.site.asked[self.path] == 1:
            self.give(b"later", "text/plain", 429, Retry_After="2")
        else:
            self.page("<p>Now there is time.</p>", "Busy")

    def get_lazy(self) -> None:
        self.page(
            '<div style="height: 9000px">Scroll.</div><img src="/seal.png?lazy" loading="lazy" width=120>', "Lazy"
        )

    def get_waiting(self) -> None:
        self.page('<p>All but the picture.</p><img src="/stalled.png">', "Waiting")

    def get_curious(self) -> None:
        """Serve a page that requests other hosts and local files."""
        inside = f"http://inside.example:{self.site.port}/secret.txt"
        self.page(
            f'<p>Looking around.</p><img src="{inside}?image"><iframe src="{inside}?frame"></iframe>'
            f'<img src="/to-inside?image"><iframe src="{(self.site.root / "notice.txt").as_uri()}"></iframe>'
            f'<script>fetch("{inside}?script", {{mode: "no-cors"}});'
            f' try {{ new WebSocket("ws://inside.example:{self.site.port}/socket") }} catch (e) {{}}</script>',
            "Curious",
        )

    def get_secret(self) -> None:
        self.give(b"for the inside only", "text/plain", Access_Control_Allow_Origin="*")

    # -------------------------------------------------------- bad ones

    def get_to_inside(self) -> None:
        self.to(f"http://inside.example:{self.site.port}/secret.txt")

    def get_to_metadata(self) -> None:
        self.to("http://169.254.169.254/latest/meta-data/")

    def get_wanders_inside(self) -> None:
        self.page(f'<script>location.href = "http://inside.example:{self.site.port}/secret.txt"</script>')

    def get_to_file(self) -> None:
        self.to("file:///etc/passwd")

    def get_stalled(self) -> None:
        self.site.closing.wait(30)

    def get_archive(self) -> None:
        self.give(b"PK\x03\x04" + bytes(2000), "application/zip")

    def get_empty(self) -> None:
        self.give(b"", "text/html")

    def get_rude(self) -> None:
        self.connection.close()

    def get_broken(self) -> None:
        """Serve 1,000 bytes of a file, or everything after the byte at which a request begins."""
        data = self.site.file("CUAD_v1.zip")
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:] if start else data[:1000])


@contextmanager
def serve(root: Path) -> Iterator[Site]:
    """Run the site on a free port."""
    site = Site(root)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": site}))
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
