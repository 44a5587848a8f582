"""The HTTP client without a server: requests, redirects, retries, replies, and its error messages."""

import gzip
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import httpcore
import pytest

from exhibit.storage import http as http_module
from exhibit.storage.http import (
    TRANSIENT,
    BodyError,
    Deadline,
    Event,
    HttpClient,
    HttpError,
    LateError,
    Response,
    Retries,
    Rules,
    Secrets,
    TooLargeError,
    UnreachableError,
    decode_body,
    parse_retry_after,
    read_events,
)


class StubPool:
    """A stub connection pool that returns the given replies, or raises the given errors, in turn."""

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    @contextmanager
    def stream(self, method, url, *, headers, content, extensions):
        self.asked.append((method, url, dict(headers), content))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        yield reply


def reply(status=200, headers=(), parts=(b"",)):
    pairs = [(name.encode(), value.encode()) for name, value in dict(headers).items()]
    return SimpleNamespace(status=status, headers=pairs, iter_stream=lambda: iter(parts))


def response(*given, seconds=9.0, most=1 << 20, **named):
    return Response(reply(*given, **named), Deadline(seconds), Secrets(["planted"]), url="http://x/", most=most)


def send(pool, url="http://a/x", **given):
    client = HttpClient({"Authorization": "Bearer planted"}, secrets=Secrets(["Bearer planted"]))
    client._pools[""] = pool
    with client.send("POST", url, deadline=Deadline(9), **given) as got:
        return got


def test_request_body_is_json_or_the_given_bytes():
    pool = StubPool(reply(), reply(), reply())
    send(pool, body={"q": "é\ud800"})
    send(pool, content=b"raw", headers={"Content-Type": "x/y"})
    send(pool)
    (method, url, headers, content), (_, _, raw, given), (_, _, bare, nothing) = pool.asked
    assert (method, url, headers["Content-Type"]) == ("POST", "http://a/x", "application/json")
    assert json.loads(content) == {"q": "é\ufffd"} and headers["Accept-Encoding"] == "gzip"
    assert (raw["Content-Type"], given) == ("x/y", b"raw") and "Content-Type" not in bare and nothing is None


@pytest.mark.parametrize("follow", [0, 1, 2])
def test_redirect_never_sends_the_key_to_another_host(follow):
    pool = StubPool(*(reply(302, {"Location": where}) for where in ("/y", "http://b/z", "http://c/")))
    got = send(pool, follow=follow)
    urls = ["http://a/x", "http://a/y", "http://b/z"][: follow + 1]
    assert (got.status, got.url, [url for _, url, *_ in pool.asked]) == (302, urls[-1], urls)
    assert ["Authorization" in headers for _, _, headers, _ in pool.asked] == [True, True, False][: follow + 1]
    assert send(StubPool(reply(300, {"Location": "/y"})), follow=3).status == 300


def test_redirect_to_another_host_drops_every_header_with_a_secret():
    pool = StubPool(reply(307, {"Location": "http://a/y"}), reply(307, {"Location": "http://b/z"}), reply())
    keys = {"api-key": "k1", "X-Auth": "planted", "Ocp-Apim-Subscription-Key": "k2", "Cookie": "session=1"}
    send(pool, follow=2, headers={**keys, "X-Trace": "7"})
    first, second, third = (headers for _, _, headers, _ in pool.asked)
    assert first == second and keys.items() <= first.items()
    assert third.keys() == first.keys() - keys.keys() - {"Authorization"} and third["X-Trace"] == "7"


@pytest.mark.parametrize(
    ("error", "kind", "words", "transient"),
    [
        (httpcore.ReadTimeout(""), LateError, "no complete reply within 9 s", False),
        (httpcore.ConnectError("planted refused"), UnreachableError, "no server answers at http://a/x: ", True),
        (httpcore.ConnectError(""), UnreachableError, "no connection", True),
        (httpcore.ConnectError("CERTIFICATE_VERIFY_FAILED"), UnreachableError, "CERTIFICATE", False),
        (httpcore.ReadError("planted"), HttpError, r"the connection broke \(ReadError\)", True),
        (httpcore.UnsupportedProtocol("x"), HttpError, "no request can be sent to http://a/x: x", False),
    ],
)
def test_connection_errors_become_http_errors_without_secrets(error, kind, words, transient):
    with pytest.raises(kind, match=words) as caught:
        send(StubPool(error), url="http://a/x?key=planted")
    assert caught.value.transient is transient and "planted" not in str(caught.value)


def test_response_has_a_content_type_a_body_and_the_lines_of_the_body():
    got = response(200, {"Content-Type": "Text/HTML ; charset=x", "X-A": "b"}, parts=[b"a\nb", b"c\n\n", b"d"])
    assert (got.kind, got.headers["x-a"], got.status) == ("text/html", "b", 200)
    assert list(got.lines()) == ["a", "bc", "", "d"] and got.read() == b"a\nbc\n\nd"
    assert list(response(parts=[b"a\n"]).lines()) == ["a"] and response().kind == ""
    with pytest.raises(LateError):
        response(parts=[b"a"], seconds=0.0).read()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (199, b"", "HTTP 199"),
        (300, b"", "HTTP 300 Multiple Choices"),
        (404, b'{"error": {"message": "planted is no key"}}', "HTTP 404 Not Found: [hidden] is no key"),
        (503, b"Service Unavailable", "HTTP 503 Service Unavailable"),
        (799, b"odd", "HTTP 799: odd"),
    ],
)
def test_error_status_is_reported_with_the_servers_message(status, body, words):
    with pytest.raises(HttpError) as caught:
        response(status, {"Retry-After": "3"}, parts=[body]).check()
    error = caught.value
    assert str(error).replace("***", "[hidden]").replace("…", "[hidden]").startswith(words.partition("[")[0])
    assert (error.status, error.wait, error.body) == (status, 3.0, body) and error.transient is (status in TRANSIENT)
    assert "planted" not in str(error)
    for fine in (200, 299):
        response(fine).check()
    assert {408, 425, 429, 500, 502, 599} <= TRANSIENT and not TRANSIENT & {400, 404, 501, 505, 600}


def decode(data, encoding="", most=1000):
    return b"".join(decode_body([data], encoding, most=most))


@pytest.mark.parametrize(
    ("data", "encoding", "most", "words"),
    [
        (b"abc", "", 2, "larger than 2 bytes"),
        (b"x" * ((1 << 20) + 1), "", 1 << 20, "larger than 1 MB$"),
        (gzip.compress(b"x" * 1001, mtime=0), "gzip", 1000, "larger than 1000 bytes"),
        (b"abc", "br", 9, "compressed as 'br'"),
        (b"no gzip", "gzip", 9, "damaged"),
        (gzip.compress(b"x" * 99, mtime=0)[:-9], "gzip", 99, "reply is incomplete"),
    ],
)
def test_body_is_refused_when_it_is_too_large_or_cannot_be_decompressed(data, encoding, most, words):
    with pytest.raises(BodyError, match=words) as caught:
        decode(data, encoding, most)
    assert isinstance(caught.value, TooLargeError) is words.startswith("larger")


def test_body_exactly_at_the_size_limit_is_read():
    assert decode(b"abc", most=3) == b"abc" and decode(b"", "gzip") == b""
    assert decode(gzip.compress(b"x" * 1000, mtime=0), "gzip") == b"x" * 1000


def test_read_events_parses_named_and_unnamed_json_events():
    lines = [": hello", "event: answer", 'data: {"a":', "data: 1}", "", '{"b": 2}', "id: 3", "data:", "data: [DONE]"]
    lines += ["event: end"]
    assert list(read_events(lines)) == [
        Event("answer", {"a": 1}), Event("", {"b": 2}), Event("", None, done=True), Event("end", None, done=True),
    ]  # fmt: skip
    for bad in (["data: {", ""], ["{"], ["data: {"]):
        with pytest.raises(HttpError, match="a line of the stream is not JSON"):
            list(read_events(bad))


def test_robots_rules_give_delay_and_allowed_paths():
    rules = Rules("us", "\ufeffUser-agent: us\nCrawl-delay: 4\nDisallow: /a\n")
    assert rules.delay == 4.0 and not rules.allow("/a?b") and rules.allow("//a") and Rules().delay == 0.0
    assert Rules("us", "User-agent: us\nCrawl-delay: -4").delay == 0.0


@pytest.mark.parametrize(
    ("proxy", "address", "user"),
    [
        ("proxy:3128", "http://proxy:3128", None),
        ("http://proxy", "http://proxy:80", None),
        ("https://ada:secret@proxy:8443", "https://proxy:8443", ("ada", "secret")),
        ("http://ada@proxy:1", "http://proxy:1", ("ada", "")),
    ],
)
def test_client_uses_the_user_and_the_port_in_the_address_of_the_proxy(monkeypatch, proxy, address, user):
    options = {}
    http_module._find_proxy.cache_clear()
    monkeypatch.setattr(http_module, "getproxies", lambda: {"http": proxy})
    monkeypatch.setattr(http_module, "proxy_bypass", lambda host: False)
    monkeypatch.setattr(httpcore, "HTTPProxy", lambda **given: options.update(given) or StubPool(reply(204)))
    with HttpClient(connections=3).send("GET", "http://far/", deadline=Deadline(9)) as got:
        assert got.status == 204
    assert (options["proxy_url"], options["proxy_auth"]) == (address, user)
    assert options["max_connections"] == options["max_keepalive_connections"] == 3


class FailingStep:
    """A step that fails with each given error in turn, then succeeds."""

    def __init__(self, *errors: HttpError) -> None:
        self.errors, self.done = list(errors), 0

    def __call__(self) -> str:
        self.done += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def busy(**given: object) -> HttpError:
    return HttpError("busy", transient=True, **given)  # type: ignore[arg-type]


def test_retry_pauses_double_up_to_a_maximum():
    pauses: list[float] = []
    assert Retries(9, 1.0, sleep=pauses.append)(FailingStep(*(busy() for _ in range(7)))) == "done"
    assert [round(pause) for pause in pauses] == [1, 2, 4, 8, 16, 30, 30]


def test_retries_stop_when_the_next_pause_would_end_after_the_deadline():
    step = FailingStep(busy(), busy(), busy())
    with pytest.raises(HttpError):
        Retries(5, 20.0, sleep=lambda _: None)(step, deadline=Deadline(30))
    assert step.done == 2, "a pause of 20 s fits, a pause of 40 s does not"


def test_retry_after_is_read_in_seconds_or_as_a_date():
    for header, seconds in {"7": 7, "0.5": 0.5, "-3": 0, "soon": 0, "": 0, "nan": 0, "inf": float("inf")}.items():
        assert parse_retry_after(header) == seconds
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 < parse_retry_after(later) <= 90 and parse_retry_after("Mon, 01 Jan 2001 00:00:00 GMT") == 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", ""),
        (b"out of\n memory\x00", "out of memory"),
        (b"\xff", "\N{REPLACEMENT CHARACTER}"),
        ('{"error": {"message": "no such model", "code": 7}}', "no such model"),
        ('[{"detail": [{"msg": "first"}, {"msg": "second"}]}]', "first"),
        ('{"code": 7}', '{"code": 7}'),
        ('{"message": "", "detail": "the second"}', "the second"),
        ('"only words"', "only words"),
        ("[]", "[]"),
        ("[7]", "[7]"),
        ("<p>not <b>found</b> &amp; gone</p>", "not found & gone"),
        ("a &lt; b", "a < b"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "…"),
    ],
)
def test_server_message_is_a_single_short_line(said, words):
    assert Secrets().words(said) == words


def test_secrets_strip_removes_the_longest_secret_first():
    secrets = Secrets(["Bearer planted-key", "planted", "abc", "Basic"])
    text = "Bearer planted-key, planted, abc, Basic, bearer"
    assert secrets.strip(text) == "***, ***, abc, Basic, bearer"
    assert secrets.words(json.dumps({"error": text})) == "***, ***, abc, Basic, bearer"
    assert Secrets(["four"]).strip("four") == "***"


def test_steps_are_retried_again_after_a_step_succeeds():
    retries = Retries(1, 0.0, in_vain=1)
    with pytest.raises(HttpError):
        retries(FailingStep(busy(), busy()))
    assert retries(FailingStep()) == "done" and retries(FailingStep(busy())) == "done"


def test_status_429_makes_all_threads_wait():
    pauses: list[float] = []
    retries = Retries(1, 1.0, sleep=pauses.append)
    assert retries(FailingStep(busy(status=429, wait=50.0))) == "done" and retries(FailingStep()) == "done"
    assert [round(pause) for pause in pauses] == [50, 50]
    other = Retries(1, 1.0, sleep=pauses.append)
    assert other(FailingStep(busy(status=503, wait=50.0))) == "done" and other(FailingStep()) == "done"
    assert [round(pause) for pause in pauses] == [50, 50, 50], "other errors affect a single thread"
