"""What leaves the machine through the browser: nothing, whatever a page tries; keys are not sent on redirects."""

from __future__ import annotations

import asyncio
import socket

import pytest

from exhibit.converters.fetching.download import Downloader, Policy
from exhibit.converters.fetching.page import PagePrinter
from exhibit.converters.printing import browser
from exhibit.storage.http import HttpClient
from exhibit.storage.http_policy import Deadline, HttpError
from tests.hostile.test_security import server

CALL = """<script>
const call = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:%d"}]});
call.createDataChannel("x");
call.onicegatheringstatechange = () => { document.title = call.iceGatheringState; };
call.createOffer().then(offer => call.setLocalDescription(offer));
</script>"""


async def call_out(port: int) -> None:
    """Open a page that tries to reach a port by WebRTC in the printing browser, and wait until it has tried all."""
    printer = PagePrinter(Downloader(Policy()), timeout=60, pages=1)
    browser = await printer.started_browser()
    page = await browser.new_page()
    await page.set_content(CALL % port)
    await page.wait_for_function("document.title === 'complete'", timeout=120_000)
    await printer.aclose()


# the control waits for a connection that nobody answers
@pytest.mark.parametrize("sealed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_no_packet_leaves_by_webrtc(sealed, monkeypatch):
    if not sealed:  # so that it is known that this page would get out
        monkeypatch.setattr(browser, "_QUIET", ())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        asyncio.run(call_out(listener.getsockname()[1]))
        if sealed:
            with pytest.raises(BlockingIOError):
                listener.recv(2000)
        else:
            assert listener.recv(2000)


def test_no_key_of_a_system_under_test_follows_a_redirect():
    with server() as (elsewhere, stolen), server(elsewhere) as (named, heard):
        wire = HttpClient({"Authorization": "Bearer tk-secret"})
        with (
            pytest.raises(HttpError, match="HTTP 307"),
            wire.send("POST", named, {"question": "x"}, deadline=Deadline(60)) as response,
        ):
            response.check()
        wire.close()
    assert [headers["Authorization"] for headers in heard] == ["Bearer tk-secret"] and stolen == []
