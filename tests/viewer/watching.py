"""A page in a real browser whose errors and external requests are recorded."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.browser import PATIENCE
from tests.loopback import run_server

CONTRASTS = """() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg, [hidden], script") || !e.checkVisibility()) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(getComputedStyle(e).fontSize);
    if (ratio < (size >= 24 ? 3 : 4.5)) poor.push([ratio, e.tagName, e.textContent.trim().slice(0, 40)]);
  }
  return poor;
}"""
"""A script that returns texts with less contrast than WCAG's level AA requires."""


@contextmanager
def watched(browser: Browser, address: str, **options: object) -> Iterator[Page]:
    """Yield an open page; afterwards fail if it logged an error or made a request outside its own folder."""
    complaints: list[str] = []
    context = browser.new_context(reduced_motion="reduce", accept_downloads=True, **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    home = address.rpartition("/")[0]
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith((home, "data:", "blob:")) or complaints.append(asked.url))
    page.goto(address)
    yield page
    context.close()
    assert complaints == []


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        """Serve a file; answer the browser's request for a favicon with no content."""
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a static server for a folder."""
    with run_server(partial(_QuietHandler, directory=str(folder))) as address:
        yield address


@contextmanager
def viewing(folder: Path, port: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the address of `exhibit view` for a folder, and its process."""
    words = ["view", "--no-browser", "--port", str(port), "--token", "token-of-the-test"]
    command = [sys.executable, "-m", "exhibit", *words]
    environment = {**os.environ, "EXHIBIT_CACHE": str(folder / "cache")}
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    address = re.search(r"http://\S+/", process.stderr.readline())
    assert address
    while True:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                break
    try:
        yield address[0], process
    finally:
        process.kill()
        process.wait()
