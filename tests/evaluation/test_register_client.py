"""The client of a register, step by step: pauses, retries, redirects, and the cache and its expiry."""

from __future__ import annotations

from contextlib import contextmanager
from urllib.parse import urlsplit

import httpcore
import pytest

from exhibit.evaluation.registers import client as client_module
from exhibit.evaluation.registers.client import Client, DisallowedError, RegisterPage, RegisterUnreachableError
from exhibit.storage.cache import Cache
from exhibit.storage.http_policy import LONGEST_WAIT

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
        self.client = Client(folder, delay=0.5, pause=self.pause, clock=lambda: self.now, pool=self)

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


def test_a_page_is_asked_for_once_with_or_without_its_words(tmp_path):
    server = Server(tmp_path, a=[said("wörds")])
    page = server.client.page(f"{HOST}/a", body=True)
    assert (page.url, page.status, page.text) == (f"{HOST}/a", 200, "wörds")
    assert page.asked == server.now == 1000.5, "half a second after robots.txt"
    assert server.asked == ["/robots.txt", "/a"] and server.pauses == [0.5]
    assert server.client.page(f"{HOST}/a", body=True) == page and len(server.asked) == 2
    bare = server.client.page(f"{HOST}/a")
    assert bare.text == "" and server.asked[2:] == ["/a"], "without its words it is another thing"
    again = Server(tmp_path, a=[])
    assert again.client.page(f"{HOST}/a", body=True) == page and again.asked == []
    server.client.close()


@pytest.mark.parametrize(
    ("status", "kept"), [(200, True), (300, True), (404, True), (410, True), (403, False), (204, False)]
)
def test_answers_that_say_something_about_the_law_are_kept(tmp_path, status, kept):
    server = Server(tmp_path, a=[status])
    assert server.client.page(f"{HOST}/a").status == status
    server.client.page(f"{HOST}/a")
    assert server.asked.count("/a") == (1 if kept else 2)


def test_what_was_absent_is_asked_for_again_after_thirty_days_and_what_was_there_never(tmp_path):
    server = Server(tmp_path, a=[404], b=[200])
    for url in ("a", "b"):
        server.client.page(f"{HOST}/{url}")
    begin = server.client.page(f"{HOST}/a").asked
    server.now = begin + 30 * 24 * 3600 - 1
    server.client.page(f"{HOST}/a")
    assert server.asked.count("/a") == 1
    server.now = begin + 31 * 24 * 3600
    for url in ("a", "b"):
        server.client.page(f"{HOST}/{url}")
    assert server.asked.count("/a") == 2 and server.asked.count("/b") == 1


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


def test_a_busy_register_is_tried_three_times(tmp_path):
    server = Server(tmp_path, a=[503, 429, 200])
    assert server.client.page(f"{HOST}/a").status == 200
    assert server.pauses == [0.5, 1.0, 2.0] and server.asked.count("/a") == 3
    never = Server(tmp_path / "2", a=[500])
    with pytest.raises(RegisterUnreachableError, match=r"law\.example cannot be asked: HTTP 500"):
        never.client.page(f"{HOST}/a")
    assert never.asked.count("/a") == 3 and never.pauses == [0.5, 1.0, 2.0]
    with pytest.raises(RegisterUnreachableError, match="cannot be asked"):
        never.client.page(f"{HOST}/b")
    assert len(never.asked) == 4, "it is not asked again"
    assert len(Cache(tmp_path / "2" / "pages.sqlite")) == 0


@pytest.mark.parametrize(("seconds", "tries"), [(LONGEST_WAIT, 2), (LONGEST_WAIT + 1, 1)])
def test_a_register_is_waited_for_as_long_as_it_asks_within_reason(tmp_path, seconds, tries):
    server = Server(tmp_path, a=[said("", 503, **{"retry-after": str(int(seconds))}), 200])
    if tries == 2:
        assert server.client.page(f"{HOST}/a").status == 200 and server.pauses[-1] == int(seconds)
    else:
        with pytest.raises(RegisterUnreachableError, match="HTTP 503"):
            server.client.page(f"{HOST}/a")
    assert server.asked.count("/a") == tries


def test_robots_txt_is_asked_once_and_obeyed_with_its_pause(tmp_path):
    rules = "User-agent: *\nDisallow: /private\nDisallow: /x?y\nCrawl-delay: 3\n"
    server = Server(tmp_path, **{"robots.txt": [said(rules)], "a": [200], "b": [200], "x": [200]})
    for url in ("a", "b", "x"):
        server.client.page(f"{HOST}/{url}")
    assert server.pauses == [3.0, 3.0, 3.0] and server.asked.count("/robots.txt") == 1
    for url in ("private/a", "x?y=1"):
        with pytest.raises(DisallowedError, match="robots.txt excludes this address"):
            server.client.page(f"{HOST}/{url}")


def test_no_pause_is_left_where_time_has_passed(tmp_path):
    server = Server(tmp_path, a=[200], b=[200])
    server.client.page(f"{HOST}/a")
    server.now += 0.4
    server.client.page(f"{HOST}/b")
    assert server.pauses == [0.5, 0.1]


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
    assert RegisterPage("u", 200) == RegisterPage("u", 200, "", 0.0)


@pytest.mark.parametrize(("length", "read"), [(500 << 10, True), ((500 << 10) + 1, False)])
def test_robots_txt_is_read_up_to_half_a_megabyte(tmp_path, length, read):
    server = Server(tmp_path, **{"robots.txt": [said("#" * length)], "a": [200]})
    if read:
        assert server.client.page(f"{HOST}/a").status == 200
        return
    with pytest.raises(RegisterUnreachableError, match=r"robots\.txt: "):
        server.client.page(f"{HOST}/a")


def test_two_megabytes_of_a_list_are_read(tmp_path):
    server = Server(tmp_path, a=[said("x" * (2 << 20))], b=[said("x" * ((2 << 20) + 1))])
    assert len(server.client.page(f"{HOST}/a", body=True).text) == 2 << 20
    with pytest.raises(RegisterUnreachableError, match=f"{HOST}/b: "):
        server.client.page(f"{HOST}/b", body=True)
