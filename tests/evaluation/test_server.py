"""A server described by a target file, tested without a network: paths, versions, rankings, collections, URLs."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from exhibit.evaluation.cases import Case, Turn
from exhibit.evaluation.servers.server import find_secrets, parse_url
from exhibit.evaluation.servers.shapes import PassagesError
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http_policy import Deadline, HttpError, Secrets, UnreachableError

FILE = """
url = "http://x.example/v1"
strip = ["/chat", "/docs"]
plain_collection = true
[settings.colour]
default = "red"
help = "the colour"
[settings.must]
required = true
help = "what must be"
[settings.collection]
default = ""
[settings.side]
default = ""
[ask]
path = ["/v1/a", "/v2/b"]
query = { c = "{collection}" }
body = { q = "{question}", h = ["{history}"], s = "{session}", t = "{thread}", c = "{conversation}", d = "{as_of}" }
[reply]
answer = "a"
passages = "p"
[ranking]
path = "/v1/rank"
body = { q = "{question}" }
passages = "hits"
parameters = ["k"]
"""


class Client:
    """A stub client that answers by path and records its requests."""

    def __init__(self, **replies) -> None:
        self.replies, self.asked, self.secrets, self.closed = replies, [], Secrets(["hunter2-hunter2"]), 0

    @contextmanager
    def send(self, method, url, body=None, *, deadline, **given):
        self.asked.append((method, url, body))
        reply = self.replies[url.partition("?")[0].rpartition("/")[2]]
        if isinstance(reply, Exception):
            raise reply
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        yield SimpleNamespace(kind="application/json", read=lambda: data, check=lambda: None)

    def close(self) -> None:
        self.closed += 1


def server(tmp_path, *, client=None, text=FILE, options=None, **settings):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    made = open_target(str(path), options or TargetOptions(), {"must": "x", **settings})
    made.client = client or Client()
    return made


DATASET = SimpleNamespace(name="my leases", documents=SimpleNamespace(named=lambda name: name))
P, Q = {"filename": "a.txt", "text": "one"}, {"filename": "a.txt", "text": "two"}


def test_the_first_path_that_a_server_has_is_asked_from_then_on(tmp_path):
    client = Client(a=HttpError("no", status=404), b={"a": "Yes.", "p": [P]}, rank={"hits": [Q, P, "bare"]})
    one = server(tmp_path, client=client, parameters='{"k": 3, "z": 1}')
    case = Case(7, "Why?", "", labels={"as_of": "2020-01-01"}, history=(Turn("user", "Before?"),))
    read = one.exchange(case, Deadline(9), "my leases")
    assert [(method, url) for method, url, _ in client.asked] == [
        ("POST", "http://x.example/v1/a?c=my+leases"), ("POST", "http://x.example/v1/v2/b?c=my+leases"),
        ("POST", "http://x.example/v1/rank"),
    ], "a version is not said twice"  # fmt: skip
    assert client.asked[1][2] == {
        "q": "Why?", "h": [{"role": "user", "content": "Before?"}], "s": "7", "t": "my_leases-7", "d": "2020-01-01"
    }  # fmt: skip
    assert client.asked[2][2] == {"q": "Why?", "k": 3}, "of the parameters those that a ranking takes"
    assert read.passages == [P, Q, "bare"] and read.seconds is not None and read.answer == "Yes."
    one.exchange(case, Deadline(9))
    assert [url for _, url, _ in client.asked[3:4]] == ["http://x.example/v1/v2/b?c="]


@pytest.mark.parametrize(
    ("error", "asked"), [(HttpError("no", status=405), 2), (HttpError("no", status=500), 1), (HttpError("no"), 1)]
)
def test_another_path_is_tried_where_there_is_none(tmp_path, error, asked):
    client = Client(a=error, b=HttpError("gone", status=404))
    with pytest.raises(HttpError) as caught:
        server(tmp_path, client=client).exchange(Case(1, "Why?", ""), Deadline(9))
    assert len(client.asked) == asked
    words = {2: "/v2/b: gone", 1: "/v1/a: no" if error.status else "no"}
    assert str(caught.value) == words[asked], "an error says which interface gave it"


def test_two_questions_that_learn_at_once_that_a_path_is_missing_are_both_asked_at_the_next(tmp_path):
    both = threading.Barrier(2)

    class Slow(Client):
        @contextmanager
        def send(self, method, url, body=None, *, deadline, **given):
            if "/v1/a" in url:
                both.wait(60)
            with super().send(method, url, body, deadline=deadline, **given) as response:
                yield response

    client = Slow(a=HttpError("no", status=404), b={"a": "Yes.", "p": []}, c={"a": "No.", "p": []}, rank={"hits": []})
    one = server(tmp_path, client=client, text=FILE.replace('"/v2/b"]', '"/v2/b", "/v3/c"]'))
    with ThreadPoolExecutor(2) as pool:
        reads = list(pool.map(lambda id: one.exchange(Case(id, "Why?", ""), Deadline(60)), (1, 2)))
    assert [read.answer for read in (*reads, one.exchange(Case(3, "Why?", ""), Deadline(60)))] == ["Yes."] * 3


def test_a_session_is_the_conversation_s_or_the_question_s_own(tmp_path):
    client = Client(a={"a": "Yes.", "p": []}, rank={"hits": []})
    one = server(tmp_path, client=client)
    one.exchange(Case(7, "Why?", "", labels={"session": "s 1"}), Deadline(9), "c")
    body = client.asked[0][2]
    assert (body["s"], body["c"], body["t"]) == ("s 1", "s 1", "c-s_1") and "d" not in body


def test_a_reply_that_cannot_be_read_fails_its_question_alone(tmp_path):
    one = server(tmp_path, client=Client(a={"a": "Yes.", "p": 7}, rank={"hits": []}))
    one.system = one.system.model_copy(update={"ranking": None})
    with pytest.raises(PassagesError):
        one.reply(Case(1, "Why?", ""), Deadline(9), "c", lambda name: name)

    def broken(case, deadline, collection):
        raise KeyError("hunter2-hunter2 " + "x" * 300)

    one.exchange = broken
    with pytest.raises(HttpError) as caught:
        one.reply(Case(1, "Why?", ""), Deadline(9), "c", lambda name: name)
    told = str(caught.value)
    assert told.startswith("the reply cannot be read (KeyError: ") and "hunter2" not in told and len(told) == 227


def test_a_reply_has_its_seconds_its_confidence_and_the_connection_is_closed(tmp_path):
    one = server(tmp_path, client=(client := Client(a={"a": "Yes.", "p": [P], "confidence": 0.5}, rank={"hits": []})))
    [(position, reply)] = one.ask(DATASET, [Case(1, "Why?", "")])
    assert position == 0 and reply.answer == "Yes." and reply.confidence == 0.5 and reply.seconds >= 0
    assert client.closed == 1 and [passage.text for passage in reply.passages] == ["one"]


def test_a_success_without_words_is_none_unless_something_was_posted(tmp_path):
    one = server(tmp_path, client=Client(x=b" ", y=b"no json", z={"error": "down"}))
    assert one.fetch("/x", deadline=Deadline(9), method="DELETE") is None
    for path, method, words in (
        ("/x", "POST", "the reply is empty"),
        ("/y", "GET", "the reply is not JSON"),
        ("/z", "GET", "reports an error: down"),
    ):
        with pytest.raises(HttpError, match=words):
            one.fetch(path, deadline=Deadline(9), method=method)


@pytest.mark.parametrize(
    ("url", "plain", "name"),
    [
        ("http://y.example/v1/chat", "http://y.example/v1", "mine:http://y.example/v1"),
        ("http://y.example/docs/", "http://y.example", "mine:http://y.example"),
        ("http://me:pw@y.example/v1?key=s", "http://y.example/v1?key=s", "mine:http://y.example/v1"),
    ],
)
def test_an_address_is_shown_without_what_is_secret(tmp_path, url, plain, name):
    one = server(tmp_path, url=url)
    assert (one.url, one.name) == (plain, name)


def test_what_a_server_needs_is_asked_for(tmp_path):
    with pytest.raises(ToolkitError, match="--target mine needs --set target_must=VALUE: what must be"):
        server(tmp_path, must="")
    for bad in ("ftp://x", "x", "http://"):
        with pytest.raises(ToolkitError, match="is not an address; an example is http://e"):
            parse_url(bad, "http://e")
    assert str(parse_url("https://x/a", "")) == "https://x/a"
    assert find_secrets("http://x/a") == [] and find_secrets("http://u@x/?k=v", [{"token": "t"}, {"n": "m"}]) == [
        "u",
        "v",
        "t",
    ]


def test_documents_go_to_the_collection_that_is_named_or_to_the_dataset_s(tmp_path):
    assert server(tmp_path).collection(DATASET) == "my_leases"
    assert server(tmp_path, collection="own one").collection(DATASET) == "own one"
    bare = server(tmp_path, text=FILE.replace("plain_collection = true", ""))
    assert bare.collection(DATASET) == "my leases" and bare.documents("c") is None
    with pytest.raises(HttpError, match="no collection is named 'c'; name one with --set target_collection=NAME"):
        server(tmp_path, text=FILE.replace("{conversation}", "{collection_id}")).exchange(
            Case(1, "?", ""), Deadline(9), "c"
        )


INGEST = (
    '\n[ingest]\nport = 8082\n[ingest.add]\npath = "/add"\nfile = "file"\n[ingest.list]\npath = "/list"\nitems = "f"\n'
)


def test_the_interface_for_documents_is_where_the_file_says(tmp_path):
    one = server(tmp_path, text=FILE + INGEST, client=(client := Client(list={"f": [{"name": "a.txt"}]})))
    assert list(one.documents("c").listed(Deadline(9))) == ["a.txt"]
    assert client.asked[-1][1] == "http://x.example:8082/list"
    here = server(tmp_path, text=FILE + INGEST.replace("port = 8082\n", ""), client=(client := Client(list={"f": []})))
    here.documents("c").listed(Deadline(9))
    assert client.asked[-1][1] == "http://x.example/v1/list"
    side = FILE.replace('default = ""\n[ask]', 'default = "http://other.example"\n[ask]')
    named = side + INGEST.replace("port = 8082", 'url = "{side}"')
    with pytest.raises(
        ToolkitError, match="sends documents to another server; to allow this, add --set target_side=http://o"
    ):
        server(tmp_path, text=named).documents("c")
    given = server(tmp_path, text=named, side="http://other.example", client=(client := Client(list={"f": []})))
    given.documents("c").listed(Deadline(9))
    assert client.asked[-1][1] == "http://other.example/list"


def test_a_probe_is_made_once_and_lists_documents_where_they_are_brought(tmp_path):
    fresh = TargetOptions(ingest="auto")
    one = server(tmp_path, text=FILE + INGEST, options=fresh, client=(client := Client(list={"f": []})))
    assert one.probe(DATASET, []) == [] and len(client.asked) == 1
    assert one.probe(DATASET, []) == [] and len(client.asked) == 1, "once for the whole run"
    with pytest.raises(ToolkitError, match="it has no interface for documents; remove --ingest"):
        server(tmp_path, options=fresh).probe(DATASET, [])
    with pytest.raises(ToolkitError, match="it has no interface for documents"):
        server(tmp_path, options=TargetOptions(delete_collection=True)).probe(DATASET, [])
    for error, words in (
        (HttpError("no", status=500), "its documents cannot be listed: /list: no"),
        (UnreachableError("away"), "away. Is the server running, and is its address right?"),
    ):
        with pytest.raises(ToolkitError, match=words):
            server(tmp_path, text=FILE + INGEST, options=fresh, client=Client(list=error)).probe(DATASET, [])
