"""Servers that violate HTTP or never end a reply: every client reports one line within its deadline."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from exhibit.evaluation.cases import Case
from exhibit.evaluation.servers.shapes import PassagesError
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.models.llms import Prompt
from exhibit.models.llms.openai import OpenAI, ServerOptions
from exhibit.storage.http_policy import Deadline, HttpError
from tests.campaign import replies
from tests.campaign.fuzz import value
from tests.hostile.test_wire import server

Send = Callable[[BaseHTTPRequestHandler], None]


def said(*parts: bytes, forever: bool = False) -> Send:
    """Return a server function that sends these bytes; with `forever`, it repeats the last part without end."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        for part in parts:
            handler.wfile.write(part)
        while forever:
            handler.wfile.write(parts[-1])

    return send


def answer(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode("latin-1") + body


def event(delta: object) -> bytes:
    """Return an event of a language model's streamed reply."""
    chunk = {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    return b"data: %s\n\n" % json.dumps(chunk).encode()


STREAM = "Content-Type: text/event-stream"
CHUNKED = "Transfer-Encoding: chunked"
SERVERS: dict[str, Send] = {
    "interim replies without end": said(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, forever=True),
    "a header without end": said(b"HTTP/1.1 200 OK\r\nX-Long: ", b"a" * 65536, forever=True),
    "headers without end": said(b"HTTP/1.1 200 OK\r\n", b"X-Many: a\r\n" * 1000, forever=True),
    "a status without end": said(b"HTTP/1.1 200 ", b"a" * 65536, forever=True),
    "no HTTP": said(b"\x00\xff\xfe SSH-2.0-OpenSSH\r\n\r\n"),
    "nothing": said(b""),
    "a status of five digits": said(b"HTTP/1.1 99999 Odd\r\n\r\n"),
    "a redirect to itself": said(b"HTTP/1.1 302 Found\r\nLocation: /ask\r\nContent-Length: 0\r\n\r\n"),
    "a chunk of half the world": said(answer(b"7fffffffffffffff\r\n{", CHUNKED)),
    "a chunk with a size of letters": said(answer(b"zz\r\n{}\r\n", CHUNKED)),
    "a chunk whose size never ends": said(answer(b"", CHUNKED), b"1" * 65536, forever=True),
    "chunks of one byte without end": said(answer(b"", CHUNKED), b"1\r\n \r\n" * 1000, forever=True),
    "trailers without end": said(answer(b"2\r\n{}\r\n0\r\n", CHUNKED), b"X-Trail: a\r\n" * 1000, forever=True),
    "a length that is too long": said(answer(b"{}", "Content-Length: 1000")),
    "a length beyond all": said(answer(b"{}", f"Content-Length: {10**30}")),
    "a negative length": said(answer(b"{}", "Content-Length: -1")),
    "two lengths": said(answer(b"{}", "Content-Length: 2", "Content-Length: 1")),
    "brotli": said(answer(b"\x0b\x02\x80{}\x03", "Content-Encoding: br", "Content-Length: 6")),
    "zstd within gzip": said(answer(b"(\xb5/\xfd", "Content-Encoding: zstd, gzip", "Content-Length: 4")),
    "a hundred encodings": said(answer(b"{}", "Content-Encoding: " + "gzip," * 100, "Content-Length: 2")),
    "an empty line without end": said(answer(b"", STREAM), b"\n" * 65536, forever=True),
    "a line without end": said(answer(b"", STREAM), b"a" * 65536, forever=True),
    "comments without end": said(answer(b"", STREAM), b": still here\n\n" * 1000, forever=True),
    "an answer without end": said(answer(b"", STREAM), event({"content": "and "}) * 100, forever=True),
    "thoughts without end": said(answer(b"", STREAM), event({"reasoning_content": "hm "}) * 100, forever=True),
    "an event that is nested too deep": said(answer(b"data: " + b"[" * 100_000 + b"\n\n", STREAM)),
    "an event with a number that is too long": said(answer(b"data: [%s]\n\n" % (b"9" * 5000), STREAM)),
    "an event that is no object": said(answer(b"data: 7\n\ndata: null\n\ndata: [[]]\n\n", STREAM)),
    "an event of many lines": said(answer(b"data: [\n" * 5000, STREAM)),
    "choices that are a number": said(answer(b'data: {"choices": 7}\n\n', STREAM)),
    "no word and a long reason": said(
        answer(b'data: {"choices": [{"delta": {}, "finish_reason": "a\\nb"}], "usage": "x"}\n\n', STREAM)
    ),
    "an event whose parts are odd": said(answer(b'data: {"choices": [7, null]}\n\n' + event([]) + event(7), STREAM)),
}


def patience(what: str) -> float:
    """Return the timeout of an exchange in seconds; it is short for replies that never end."""
    return 0.1 if "without end" in what or "never ends" in what else 30.0


@pytest.mark.parametrize("what", SERVERS)
def test_a_system_under_test_that_does_so_gives_no_reply(what):
    with server(SERVERS[what]) as url:
        target = open_target("http", TargetOptions(threads=1), {"url": url, "stream": True})
        with pytest.raises(HttpError) as caught:
            target.exchange(Case(id=1, question="When?", truth="x"), Deadline(patience(what)))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("heard", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("what", SERVERS)
def test_a_language_model_that_does_so_gives_an_error_of_one_line(what, heard, monkeypatch):
    pieces: list[str] = []
    with server(SERVERS[what]) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        options = ServerOptions(timeout=patience(what), retries=0, heard=pieces.append if heard else None)
        (reply,) = OpenAI("tiny", options).complete([Prompt("q")], max_tokens=5, temperature=0.0)
    assert reply.error and len(reply.error.splitlines()) == 1
    assert not reply.text


@pytest.mark.parametrize(("seeds", "least"), [(80, 10), pytest.param(400, 50, marks=pytest.mark.slow)])
def test_odd_values_in_a_reply_of_any_system_fail_its_question_alone(seeds, least):
    """Numbers, null and strings in place of lists and objects, at any depth; `make fuzz` tries many more."""
    outcomes = Counter()
    for seed in range(seeds):
        try:
            replies.ask(random.Random(f"odd-{seed}"), value)
            outcomes["read"] += 1
        except (HttpError, PassagesError) as error:
            assert str(error).strip()
            outcomes["failed"] += 1
    assert min(outcomes["read"], outcomes["failed"]) > least


def test_what_nobody_thought_of_in_a_reply_fails_its_question_alone(monkeypatch):
    target = open_target("http", TargetOptions(threads=1), {"url": "http://127.0.0.1:9"})
    monkeypatch.setattr(target, "exchange", lambda *_: {}["choices"])
    with pytest.raises(HttpError, match=r"the reply cannot be read \(KeyError: 'choices'\)"):
        target.reply(replies.CASE, Deadline(30), "leases", lambda name: name)
