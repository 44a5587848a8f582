"""The Hub of the tests, with hand-made requests that no client would send."""

from __future__ import annotations

import gzip
import json
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hub.loopback import LoopbackHub

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
API = "/api/datasets/me/x"


class Answer:
    """A reply of the Hub."""

    def __init__(self, connection: HTTPConnection) -> None:
        reply = connection.getresponse()
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


def ask(hub: LoopbackHub, method: str, path: str, body: bytes = b"", *, token: str = "", **headers: str) -> Answer:
    """Send a request without a client; return the reply."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        named["Authorization"] = f"Bearer {token}"
    connection = HTTPConnection("127.0.0.1", urlsplit(hub.url).port, timeout=20)
    try:
        connection.request(method, path, body or None, named)
        return Answer(connection)
    finally:
        connection.close()


def commit(
    hub: LoopbackHub, token: str, *lines: tuple[str, dict[str, object]], query: str = "", **header: str
) -> Answer:
    """Send a commit without a client; return the reply."""
    all_lines = [("header", {"summary": "by hand", **header}), *lines]
    body = b"".join(json.dumps({"key": key, "value": value}).encode() + b"\n" for key, value in all_lines)
    return ask(hub, "POST", f"{API}/commit/main{query}", body, token=token, Content_Type="application/x-ndjson")


def small(path: str, content: bytes) -> tuple[str, dict[str, object]]:
    """Return the line of a commit's body for a small file."""
    return "file", {"path": path, "content": b64encode(content).decode(), "encoding": "base64"}


def test_a_commit_is_made_whole_or_not_at_all(hub: LoopbackHub) -> None:
    hub.create("me/x")
    mine, good, digest = hub.token(), small("good.txt", b"good"), "ab" * 32
    large = ("lfsFile", {"path": "large.pdf", "algo": "sha256", "oid": digest, "size": 3})
    refused = {
        "not uploaded": (good, large),
        "binary": (good, small("x.pdf", PDF)),
        "no such file": (good, ("deletedFile", {"path": "none"})),
        "no such folder": (good, ("deletedFolder", {"path": "none/"})),
        "out of the repository": (good, small("a/../b", b"b")),
        "file and folder": (good, small("good.txt/b", b"b")),
        "too long": (good, small("n" * 256, b"b")),
        "no base64": (good, ("file", {"path": "b", "content": "?", "encoding": "base64"})),
        "what": (good, ("rename", {"path": "b"})),
    }
    for why, lines in refused.items():
        assert commit(hub, mine, *lines).status in (400, 404), why
        assert len(hub.commits("me/x")) == 1, why
    cut_off = ask(
        hub, "POST", f"{API}/commit/main", b'{"key": "header", "va', token=mine, Content_Type="application/x-ndjson"
    )
    assert cut_off.status == 400
    assert (
        commit(hub, mine, good, query="?create_pr=1", parentCommit="0" * 40).json()["error"].startswith("Invalid rev")
    )

    head = hub.commits("me/x")[0].oid
    assert commit(hub, mine, good, parentCommit=head).status == 200
    hub.commit("me/x", {"theirs.txt": b"theirs"})
    late = commit(hub, mine, small("late.txt", b"late"), parentCommit=head)
    assert (late.status, late.headers["X-Error-Message"]) == (
        412,
        "A commit has happened since. Please refresh and try again.",
    )
    assert set(hub.files("me/x")) == {".gitattributes", "good.txt", "theirs.txt"}


def test_large_files_must_be_what_they_are_announced_as(hub: LoopbackHub) -> None:
    hub.create("me/x")
    mine, content = hub.token(), PDF * 9
    digest = sha256(content).hexdigest()
    wanted = {
        "operation": "upload",
        "transfers": ["basic"],
        "hash_algo": "sha256",
        "objects": [{"oid": digest, "size": 135}],
    }
    batch = ask(hub, "POST", "/datasets/me/x.git/info/lfs/objects/batch", json.dumps(wanted).encode(), token=mine)
    actions = batch.json()["objects"][0]["actions"]
    address = urlsplit(actions["upload"]["href"])
    signed = f"{address.path}?{address.query}"
    assert ask(hub, "PUT", signed, b"something else").status == 400
    assert ask(hub, "PUT", address.path, content).status == 403
    assert ask(hub, "PUT", signed, content, token=mine).status == 400  # the storage wants no token beside the signature
    verify, body = urlsplit(actions["verify"]["href"]).path, json.dumps({"oid": digest, "size": len(content)}).encode()
    assert ask(hub, "POST", verify, body, token=mine).status == 404
    assert ask(hub, "PUT", signed, content).status == 200
    assert ask(hub, "POST", verify, body, token=mine).status == 200
    line = ("lfsFile", {"path": "a.pdf", "algo": "sha256", "oid": digest, "size": len(content)})
    assert commit(hub, mine, line).status == 200
    assert hub.files("me/x")["a.pdf"] == content
    again = ask(hub, "POST", "/datasets/me/x.git/info/lfs/objects/batch", json.dumps(wanted).encode(), token=mine)
    assert "actions" not in again.json()["objects"][0]


def test_ranges_etags_and_redirects(hub: LoopbackHub) -> None:
    text, paper = b"0123456789" * 300, PDF + bytes(range(256)) * 4
    oid = hub.commit("me/x", {"a/t.txt": text, "a/p.pdf": paper}).oid
    large = ask(hub, "HEAD", "/datasets/me/x/resolve/main/a/p.pdf")
    digest = sha256(paper).hexdigest()
    assert (large.status, large.headers["X-Linked-Etag"], large.headers["X-Repo-Commit"]) == (302, f'"{digest}"', oid)
    assert large.headers["X-Linked-Size"] == str(len(paper))
    assert large.headers["Location"].startswith(hub.storage_url)
    where = large.headers["Location"].removeprefix(hub.storage_url)
    assert ask(hub, "GET", where).body == paper
    for asked, first, last in (("5-9", 5, 9), ("1000-", 1000, len(paper) - 1), ("-7", len(paper) - 7, len(paper) - 1)):
        part = ask(hub, "GET", where, Range=f"bytes={asked}")
        assert (part.status, part.headers["Content-Range"]) == (206, f"bytes {first}-{last}/{len(paper)}")
        assert part.body == paper[first : last + 1]
    assert ask(hub, "GET", where, Range=f"bytes={len(paper)}-").status == 416
    assert ask(hub, "GET", urlsplit(where).path).status == 403

    moved = ask(hub, "GET", "/datasets/me/x/resolve/main/a/t.txt")
    assert moved.status == 307
    plain = ask(hub, "GET", moved.headers["Location"])
    assert (plain.body, plain.headers["X-Repo-Commit"]) == (text, oid)
    same = ask(hub, "GET", moved.headers["Location"], If_None_Match=plain.headers["ETag"])
    assert (same.status, same.body) == (304, b"")
    packed = ask(hub, "GET", moved.headers["Location"], Accept_Encoding="gzip")
    assert gzip.decompress(packed.body) == text and packed.headers["ETag"].startswith("W/")
    missing = ask(hub, "HEAD", "/datasets/me/x/resolve/main/a/none.txt")
    assert (missing.status, missing.headers["X-Error-Code"], missing.headers["X-Repo-Commit"]) == (
        404,
        "EntryNotFound",
        oid,
    )
    assert ask(hub, "GET", f"{API}/tree/main/none").headers["X-Error-Code"] == "EntryNotFound"
    assert ask(hub, "POST", f"{API}/paths-info/main", "&".join(["paths=a"] * 1001).encode()).status == 413


PART = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(st.lists(PART.filter(lambda part: part not in (".", "..", ".git")), min_size=1, max_size=3).map("/".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_survives(hub: LoopbackHub, name: str) -> None:
    hub.store.repos.clear()
    hub.create("me/x")
    mine = hub.token()
    assert commit(hub, mine, small(name, name.encode())).status == 200
    moved = ask(hub, "GET", f"/datasets/me/x/resolve/main/{quote(name)}")
    assert ask(hub, "GET", moved.headers["Location"]).body == name.encode()
    told = ask(hub, "GET", f"{API}/tree/main?recursive=true").json()
    assert [one["path"] for one in told if one["type"] == "file"] == sorted([name, ".gitattributes"])
    body = ("paths=" + quote(name, safe="")).encode()
    found = ask(hub, "POST", f"{API}/paths-info/main", body, Content_Type="application/x-www-form-urlencoded").json()
    assert [one["path"] for one in found] == [name]


def test_pull_requests_that_conflict_are_not_merged(hub: LoopbackHub) -> None:
    hub.commit("me/x", {"a.txt": b"a", "b.txt": b"b"})
    mine = hub.token()
    for number in (1, 2):
        made = commit(hub, mine, small("a.txt", b"change %d" % number), query="?create_pr=1").json()
        assert made["pullRequestUrl"] == f"{hub.url}/datasets/me/x/discussions/{number}"
    assert ask(hub, "POST", f"{API}/discussions/1/merge", token=mine).status == 200
    assert ask(hub, "GET", f"{API}/discussions/2", token=mine).json()["filesWithConflicts"] == ["a.txt"]
    assert ask(hub, "POST", f"{API}/discussions/2/merge", token=mine).status == 409
    assert ask(hub, "POST", f"{API}/discussions/1/merge", token=mine).status == 400
    assert hub.files("me/x")["a.txt"] == b"change 1"
    draft = ask(hub, "POST", f"{API}/discussions", b'{"title": "t", "pullRequest": true}', token=mine).json()["num"]
    assert ask(hub, "POST", f"{API}/discussions/{draft}/merge", token=mine).status == 400


def test_commits_at_the_same_time_follow_each_other(hub: LoopbackHub) -> None:
    hub.create("me/x")
    mine = hub.token()
    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda n: commit(hub, mine, small(f"{n}.txt", b"%d" % n)).status, range(60)))
    assert done == [200] * 60
    assert len(hub.commits("me/x")) == 61
    assert len(hub.files("me/x")) == 61


def test_what_is_not_known_is_noticed() -> None:
    with LoopbackHub() as hub:
        assert ask(hub, "GET", "/api/spaces-of-nobody?a=1").status == 404
        assert ask(hub, "CONNECT", "example.org:443").status == 404
        assert ask(hub, "GET", "http://example.org/x").status == 404
        assert hub.unknown == ["GET /api/spaces-of-nobody?a=1", "CONNECT example.org:443", "GET http://example.org/x"]


def test_the_end_waits_for_nobody() -> None:
    with LoopbackHub() as hub:
        hub.fault("GET", "/whoami", delay=600, times=None)
        idle = [HTTPConnection("127.0.0.1", urlsplit(hub.url).port, timeout=30) for _ in range(20)]
        for connection in idle:
            connection.request("GET", "/api/telemetry/x")
            assert connection.getresponse().read() == b""
        waiting = [threading.Thread(target=ask_in_vain, args=(hub,), daemon=True) for _ in range(4)]
        for thread in waiting:
            thread.start()
        while any(thread.is_alive() for thread in waiting) and len(hub.asked("GET", "/whoami")) < 4:
            time.sleep(0.01)
        assert len(hub.asked("GET", "/whoami")) == 4
    for thread in waiting:
        thread.join(120)
    assert not any(thread.is_alive() for thread in waiting)
    with pytest.raises(OSError):
        ask(hub, "GET", "/api/whoami-v2")
    for connection in idle:
        assert connection.sock.recv(1) == b""  # closed, not left to time out
        connection.close()


def ask_in_vain(hub: LoopbackHub) -> None:
    """Send a request and check that no reply arrives."""
    with pytest.raises((OSError, HTTPException)):
        ask(hub, "GET", "/api/whoami-v2")
