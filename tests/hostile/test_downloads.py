"""A web page that is too large, arrives too slowly or redirects for ever ends with an error."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from exhibit.converters.pages.fetch import MAX_REDIRECTS, Downloader, FetchError, Policy
from tests.loopback import Reply, Request, serve

POLICY = Policy(allow_private=True, ignore_robots=True, delay=0.0, retries=0)


def answer(request: Request) -> Reply:
    what, _, number = request.path.strip("/").partition("/")
    count = int(number)
    if what == "moved" and count:
        return Reply(b"", 302, {"Location": f"/moved/{count - 1}"})
    if what == "drip":
        return Reply((time.sleep(0.1) or b"x" for _ in range(count)), headers={"Content-Type": "text/plain"})
    return Reply(b"x" * (count or 5), headers={"Content-Type": "text/plain"})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(answer) as address:
        yield address


def get(url: str, policy: Policy) -> bytes:
    with contextlib.closing(Downloader(policy)) as downloader:
        return downloader.get(url).data


def test_download_is_read_up_to_the_size_limit(url):
    policy = replace(POLICY, max_bytes=2000)
    assert len(get(f"{url}/body/2000", policy)) == 2000
    with pytest.raises(FetchError) as caught:
        get(f"{url}/body/2001", policy)
    assert str(caught.value) == "too large (--max-bytes): the reply is larger than 2000 bytes"


def test_slowly_sent_reply_times_out_at_the_deadline(url):
    start = time.monotonic()
    with pytest.raises(FetchError, match="timed out"):
        get(f"{url}/drip/100", replace(POLICY, timeout=0.5))
    assert time.monotonic() - start < 5, "the whole reply would take ten seconds"


def test_redirects_are_followed_up_to_the_limit(url):
    assert get(f"{url}/moved/{MAX_REDIRECTS}", POLICY) == b"xxxxx"
    with pytest.raises(FetchError, match="redirects endlessly"):
        get(f"{url}/moved/{MAX_REDIRECTS + 1}", POLICY)
