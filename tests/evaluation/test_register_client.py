"""The client of a register, step by step: pauses, retries, redirects, and the cache and its expiry."""

from __future__ import annotations

from contextlib import contextmanager
from urllib.parse import urlsplit

import httpcore
import pytest

from exhibit.evaluation import registers as client_module
from exhibit.evaluation.registers import Client, RegisterUnreachableError

HOST = "https://law.example"


class Server:
    """A stub server with a list of answers for each path, the last of which is repeated.

    It records the requests and the pauses.
    """

    def __init__(self, folder, **answers) -> None:
        self.answers = {f"/{path}": list(told) for path, told in answers.items()}
        self.asked: list[str] = []
        self.pauses: list[float] = []
        self.now = 1000.0
        self.client = Client(folder, pause=self.pause, clock=lambda: self.now, pool=self)

    def pause(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.now += seconds

    @contextmanager
    def stream(self, method, url, **given):
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        self.asked.append(path)
        if path == "/robots.txt" and path not in self.answers:
            yield httpcore.Response(404, content=b"")
            return
        told = self.answers[path]
        answer = told.pop(0) if len(told) > 1 else told[0]
        if isinstance(answer, Exception):
            raise answer
        yield answer() if callable(answer) else httpcore.Response(answer, content=b"")

    def close(self) -> None:
        """Do nothing: there are no connections."""


def moved(status: int, to: str):
    return lambda: httpcore.Response(status, headers={"location": to}, content=b"")


def said(text: str, status: int = 200, **headers: str):
    return lambda: httpcore.Response(status, content=text.encode(), headers=headers)


@pytest.mark.parametrize(("status", "kept"), [(200, True), (300, True), (404, False), (403, False)])
def test_existing_pages_are_cached(tmp_path, status, kept):
    server = Server(tmp_path, a=[status])
    assert server.client.page(f"{HOST}/a").status == status
    server.client.page(f"{HOST}/a")
    assert server.asked.count("/a") == (1 if kept else 2)


def test_redirects_are_followed_on_the_host_itself_and_not_for_ever(tmp_path):
    inner = {"b?x=1": [moved(302, "/c")], "c": [said("w")]}
    server = Server(tmp_path, a=[moved(301, "http://other.example/b?x=1")], **inner)
    page = server.client.page(f"{HOST}/a", body=True)
    assert (page.url, page.status, page.text) == (f"{HOST}/c", 200, ""), "only the first page's words are read"
    assert server.asked == ["/robots.txt", "/a", "/b?x=1", "/c"]
    other = Server(tmp_path / "2", a=[moved(303, "/thing")])
    assert other.client.page(f"{HOST}/a").url == f"{HOST}/thing"
    assert other.client.page(f"{HOST}/a").status == 200 and other.asked == ["/robots.txt", "/a"]
    again = Server(tmp_path / "3", a=[moved(307, "/b")], b=[moved(308, "/a")])
    with pytest.raises(RegisterUnreachableError, match="redirects without end"):
        again.client.page(f"{HOST}/a")
    assert again.asked == ["/robots.txt", "/a", "/b", "/a", "/b"], "four of them"
    plain = Server(tmp_path / "4", a=[moved(200, "/b")])
    assert plain.client.page(f"{HOST}/a").url == f"{HOST}/a"


def test_a_line_that_is_down_and_a_reply_too_long(tmp_path, monkeypatch):
    server = Server(tmp_path, a=[httpcore.ConnectError("no route")])
    with pytest.raises(
        RegisterUnreachableError, match=r"law\.example cannot be asked: no server answers at .*: no route"
    ):
        server.client.page(f"{HOST}/a")
    quiet = Server(tmp_path / "2", a=[httpcore.ReadTimeout("")])
    with pytest.raises(RegisterUnreachableError, match="cannot be asked: no complete reply within 20 s"):
        quiet.client.page(f"{HOST}/a")
    monkeypatch.setattr(client_module, "_LARGEST", 10)
    long = Server(tmp_path / "3", a=[said("x" * 11)], b=[said("x" * 10)], c=[said("x" * 11)])
    with pytest.raises(RegisterUnreachableError, match=rf"{HOST}/a: "):
        long.client.page(f"{HOST}/a", body=True)
    assert long.client.page(f"{HOST}/b", body=True).text == "x" * 10, "the register itself is there"
    assert long.client.page(f"{HOST}/c").status == 200, "of what is not read the length does not matter"
