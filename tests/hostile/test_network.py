"""Documents are printed with no network at all, and a browser that prints web pages asks for nothing of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Route

from exhibit.converters.fetching.download import Downloader, FetchError, PageReply, Policy
from exhibit.converters.fetching.page import GoneError, PagePrinter
from exhibit.converters.printing import browser, press
from exhibit.converters.printing.press import Printer
from exhibit.evidence import read_document
from exhibit.storage.http_policy import HttpError
from tests.hostile.references import LEADING, PASSIVE, documents

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def recorder() -> Iterator[tuple[int, list[bytes]]]:
    """Yield a local port, for TCP and UDP, and a list with the first line of everything that it receives."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as packets:
        packets.bind(server.getsockname())

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    try:
                        heard.append(connection.recv(500).split(b"\r\n")[0])
                    except OSError:
                        heard.append(b"a connection without a word")

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard
        packets.setblocking(False)
        with suppress(BlockingIOError):
            heard.append(packets.recv(500))
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def through(monkeypatch: pytest.MonkeyPatch, port: int, *, sealed: bool) -> None:
    """Set a local port as the proxy of the printing browser, so that all its traffic is recorded."""

    usual = browser.launch_options

    def options(folder: Path) -> dict[str, object]:
        there = {"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"}
        arguments = usual(folder)["args"] if sealed else browser.launch_arguments()
        return usual(folder) | {"proxy": there, "args": arguments}

    monkeypatch.setattr(browser, "launch_options", options)


@pytest.mark.parametrize("words", [("passive0", "leading1"), pytest.param((), marks=pytest.mark.slow, id="all")])
def test_a_document_asks_for_nothing_in_any_of_eighty_ways_and_is_printed(tmp_path, monkeypatch, words):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of this machine", encoding="utf-8")
    assert len({*PASSIVE, *LEADING}) >= 70
    with recorder() as (port, heard):
        through(monkeypatch, port, sealed=True)
        with Printer() as printer:
            pages = documents([f"http://127.0.0.1:{port}", "https://elsewhere.example"], str(secret))
            for word in words or pages:
                page = pages[word]
                printer.print_html(page, tmp_path / f"{word}.pdf")
                text = read_document(tmp_path / f"{word}.pdf").text
                assert text.startswith(word) and "secret of" not in text and "elsewhere" not in text
                if word in ("leading1", "passive0"):
                    printer.print_html(page, tmp_path / "again.pdf")
                    once, again = ((tmp_path / name).read_bytes() for name in (f"{word}.pdf", "again.pdf"))
                    assert once == again, f"{word}: every time the same"
    assert heard == []


@pytest.mark.slow  # that the test above could fail
def test_the_same_references_are_heard_from_a_browser_that_is_not_sealed(tmp_path, monkeypatch):
    async def hand_over(html: bytes, route: Route) -> None:
        if route.request.url == press._ADDRESS:
            await route.fulfill(status=200, content_type="text/html", body=html)
        else:
            await route.continue_()

    monkeypatch.setattr(press, "_hand_over", hand_over)
    monkeypatch.setitem(press.PAGE, "offline", False)
    with recorder() as (port, heard):
        through(monkeypatch, port, sealed=False)
        with Printer() as printer:
            printer.print_html(documents(["http://elsewhere.example"], "/dev/null")["passive0"], tmp_path / "a.pdf")
    assert len({line for line in heard if line.startswith(b"GET http://elsewhere.example/")}) >= 35


class Asked(Downloader):
    """A downloader that records the URLs a page requests and delivers none of them."""

    def __init__(self) -> None:
        super().__init__(Policy())
        self.urls: set[str] = set()

    def resource(self, asked):
        self.urls.add(asked.url)
        raise HttpError("not to be had")


def test_a_page_is_given_what_it_asks_for_by_our_client_and_the_browser_itself_asks_nobody(monkeypatch):
    asked = Asked()

    async def print_one() -> None:
        printer = PagePrinter(asked, timeout=60, pages=1)
        page = b"<p>Words.</p><img src='http://pictures.example/a.png'><iframe src='https://frames.example/'></iframe>"
        reply = PageReply("http://site.example/x", 200, {"content-type": "text/html"}, "html", page)
        try:
            await printer.print(reply, "http://site.example/x")
            await asyncio.sleep(2)  # what a browser asks for by itself it asks for in its first second
        finally:
            await printer.aclose()

    with recorder() as (port, heard):
        through(monkeypatch, port, sealed=True)
        asyncio.run(print_one())
    assert asked.urls == {"http://pictures.example/a.png", "https://frames.example/"}
    assert heard == []


@pytest.mark.parametrize("times", [1, 2])
def test_a_page_is_tried_once_more_in_a_browser_of_its_own(monkeypatch, times):
    tried: list[str] = []

    @asynccontextmanager
    async def running(*, tell: bool) -> AsyncIterator[str]:
        assert tell
        yield "its own"

    class Gone(PagePrinter):
        async def started_browser(self):
            return "of all"

        async def _attempt(self, browser, reply, url):
            tried.append(browser)
            if len(tried) <= times:
                raise GoneError
            return b"%PDF", url, ""

    monkeypatch.setattr("exhibit.converters.fetching.page.run_browser", running)

    async def print_one() -> object:
        printer = Gone(Downloader(Policy()), timeout=60, pages=1)
        return await printer.print(PageReply("http://site.example/", 200, {}, "html", b"page"), "http://site.example/")

    if times == 1:
        assert asyncio.run(print_one()) == (b"%PDF", "http://site.example/", "")
    else:
        with pytest.raises(FetchError, match="it makes the browser crash"):
            asyncio.run(print_one())
    assert tried == ["of all", "its own"]


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_a_page_that_ends_the_browser_takes_no_neighbour_along(times):
    """With `times` 1, a neighbour ended the browser; with 2, the page itself does."""

    class Ending(PagePrinter):
        async def print_page(self, page, reply, url):
            if reply.data == b"bad" and self.left:
                self.left -= 1
                await page.context.browser.close()
            return await super().print_page(page, reply, url)

    async def print_two() -> list[object]:
        printer = Ending(Downloader(Policy()), timeout=60, pages=2)
        printer.left = times
        replies = [PageReply(f"http://site.example/{data}", 200, {}, "html", data.encode()) for data in ("bad", "good")]
        try:
            return await asyncio.gather(*(printer.print(r, r.url) for r in replies), return_exceptions=True)
        finally:
            await printer.aclose()

    bad, good = asyncio.run(print_two())
    assert isinstance(good, tuple) and good[0].startswith(b"%PDF")
    assert isinstance(bad, tuple) if times == 1 else "it makes the browser crash" in str(bad)


_MODEL = """
import {first}, os
import numpy, onnxruntime
from onnx import TensorProto, helper
one = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [one("x")], [one("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
session.run(None, {{"x": numpy.zeros(1, dtype="float32")}})
"""


def written_by_model(home: Path, first: str) -> list[str]:
    """Open a model with a home folder of its own; return the names of the files that it leaves there.

    Those would be an id of this machine and telemetry reports.
    """
    home.mkdir()
    unset = {"CI", "GITHUB_ACTIONS", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    environment = {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", _MODEL.format(first=first)], env=environment, check=True, timeout=300)
    return [path.name for path in home.rglob("*") if path.is_file()]


@pytest.mark.skipif(sys.platform != "linux", reason="where reports are kept is known of Linux alone")
def test_opening_a_model_is_told_to_nobody(tmp_path):
    assert written_by_model(tmp_path / "ours", "exhibit") == []
    assert "deviceid" in written_by_model(tmp_path / "theirs", "sys"), "else this test looks at the wrong place"
