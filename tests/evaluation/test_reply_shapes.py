"""Local servers that reply in the formats of public systems: what is read from them without any flag."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exhibit.evaluation.cases import Case
from exhibit.evaluation.servers.probing import advise
from exhibit.evaluation.target_protocol import TargetOptions
from exhibit.evaluation.targets import open_target
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http_policy import Deadline

ASK, ANSWER, WORDS = "What rent is due?", "The rent is EUR 1,200.", "The tenant shall pay a rent of EUR 1,200."
CASE = Case(1, ASK, "EUR 1,200")
FILES = {"lease.pdf": "lease.pdf", "lease": "lease.pdf"}
DATASET = SimpleNamespace(name="leases", documents=SimpleNamespace(named=lambda name: FILES.get(name.strip())))

Reply = tuple[int, str, str]
"""Status, kind and body of a response."""


def as_json(value: Any, status: int = 200) -> Reply:
    return status, "application/json", json.dumps(value)


def events(*pairs: tuple[str, Any]) -> Reply:
    """A stream of named events."""
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in pairs]
    return 200, "text/event-stream", "".join(lines)


@contextmanager
def serving(app: Callable[[str, str, Any], Reply]) -> Iterator[str]:
    """Yield the address of a server that replies as `app(method, path, body)` says."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            status, kind, text = app(self.command, self.path, body)
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/ask"
    finally:
        server.shutdown()
        server.server_close()


def asked(url: str, target: str = "http", **settings: Any) -> tuple[Any, list[str]]:
    """Return the reply to a question and the notes of the probe."""
    made = open_target(target, TargetOptions(retries=0, timeout=60), {"url": url, **settings})
    notes = made.probe(DATASET, [CASE])
    return made.reply(CASE, Deadline(60), "", DATASET.documents.named), notes


WHOLE: dict[str, Any] = {
    "citations": {"answer": ANSWER, "citations": [{"excerpt": WORDS, "doc_id": "lease", "page_num": 2}]},
    "evidence": {"answer": ANSWER, "evidence": [{"snippet": WORDS, "document_title": "lease", "page_numbers": [2, 3]}]},
    "results": {"response": ANSWER, "results": [{"clause_text": WORDS, "contract_id": "lease", "page": 2}]},
    "retrieved_chunks": {
        "answer": ANSWER,
        "retrieved_chunks": [{"preview": WORDS, "pdf_name": "lease.pdf", "page_num": "2"}],
    },
    "retrieved_docs": {
        "reply": ANSWER,
        "retrieved_docs": [{"text": WORDS, "metadata": {"source": "lease.pdf", "page_no": 2}}],
    },
}


@pytest.mark.parametrize("shape", WHOLE)
def test_passages_are_read_under_the_names_that_systems_give_them(shape):
    with serving(lambda method, path, body: as_json(WHOLE[shape])) as url:
        reply, _ = asked(url)
    (passage,) = reply.passages
    assert (reply.answer, passage.text, passage.filename, passage.told_page) == (ANSWER, WORDS, "lease.pdf", 2)


def test_a_box_that_is_written_as_text_is_a_box():
    source = {"text": WORDS, "file": "lease.pdf", "bbox": "[10, 20, 200, 40]", "relevance_score": 0.7}
    with serving(lambda method, path, body: as_json({"answer": ANSWER, "sources": [source]})) as url:
        reply, _ = asked(url)
    assert reply.passages[0].told_box == (10.0, 20.0, 200.0, 40.0) and reply.passages[0].score == 0.7


STREAMS: dict[str, list[tuple[str, Any]]] = {
    "named events": [
        ("status", {"text": "Searching the index …"}),
        ("sources", [{"text": WORDS, "file": "lease.pdf"}]),
        ("token", {"text": "The rent is "}),
        ("token", {"text": "EUR 1,200."}),
        ("done", {}),
    ],
    "types and a bare delta": [
        ("", {"type": "progress", "content": "Thinking"}),
        ("", {"type": "delta", "delta": "The rent is "}),
        ("", {"type": "delta", "delta": "EUR 1,200."}),
        ("", {"type": "sources", "sources": [{"text": WORDS, "file": "lease.pdf"}]}),
    ],
    "the whole answer again": [
        ("", {"token": "The rent is "}),
        ("", {"token": "EUR 1,200."}),
        ("", {"answer": ANSWER, "sources": [{"text": WORDS, "file": "lease.pdf"}]}),
    ],
}


@pytest.mark.parametrize("shape", STREAMS)
def test_only_the_events_that_carry_the_answer_are_pieces_of_it(shape):
    with serving(lambda method, path, body: events(*STREAMS[shape])) as url:
        reply, _ = asked(url)
    assert reply.answer == ANSWER and [one.filename for one in reply.passages] == ["lease.pdf"]


def test_a_target_file_says_which_events_carry_the_answer(tmp_path: Path):
    text = '[ask]\nbody = { q = "{question}" }\n[reply]\npassages = ""\n[stream]\nevents = ["say"]\nanswer = "x"\n'
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    stream = [("say", {"x": "The rent is "}), ("muse", {"x": "hm "}), ("say", {"x": "EUR 1,200."})]
    with serving(lambda method, path, body: events(*stream)) as url:
        reply, _ = asked(url, str(tmp_path / "mine.toml"))
    assert reply.answer == ANSWER


def test_strings_that_name_files_are_names_and_no_words():
    with serving(
        lambda method, path, body: as_json({"answer": ANSWER, "sources": ["lease.pdf", "[2] lease.pdf, p. 4"]})
    ) as url:
        reply, notes = asked(url)
    assert [(one.text, one.filename, one.told_page) for one in reply.passages] == [
        ("", "lease.pdf", None),
        ("", "lease.pdf", 4),
    ]
    assert any("only document metrics are measured" in note for note in notes)


def test_sources_below_an_answer_are_its_passages():
    answer = f"{ANSWER}\n\nSources:\n[1] lease.pdf, p. 3\n- nowhere.pdf\n"
    with serving(lambda method, path, body: as_json({"answer": answer})) as url:
        reply, _ = asked(url)
    assert [(one.filename, one.told_page) for one in reply.passages] == [("lease.pdf", 3)]


def test_after_a_refusal_without_a_schema_the_usual_requests_are_tried():
    def app(method: str, path: str, body: Any) -> Reply:
        if method == "GET" or not isinstance(body, dict) or "message" not in body:
            return as_json({"error": "bad request"}, 404 if method == "GET" else 400)
        return as_json({"answer": ANSWER, "sources": [{"text": WORDS, "file": "lease.pdf"}]})

    with serving(app) as url:
        reply, notes = asked(url)
    assert reply.answer == ANSWER and any("with `message`" in note for note in notes)


def test_what_openapi_says_of_the_request_is_used_where_the_reply_is_not_understood():
    schema = {"type": "object", "required": ["text_in"], "properties": {"question": {"type": "string"}}}
    described = {
        "paths": {
            "/ask": {"post": {"requestBody": {"content": {"application/json": {"schema": {**schema, "required": []}}}}}}
        }
    }

    def app(method: str, path: str, body: Any) -> Reply:
        if path == "/openapi.json":
            return as_json(described)
        return as_json({"wording": ANSWER, "echo": ASK}) if "question" in (body or {}) else as_json({}, 422)

    with serving(app) as url, pytest.raises(ToolkitError) as error:
        asked(url)
    assert "--set target_response_answer_jmespath='wording'" in str(error.value) and "openapi" in str(error.value)


def test_advice_never_proposes_the_question():
    reply = {"echo": f"{ASK} {ASK}", "asked": ASK, "n": {"said": "Yes it is."}}
    assert advise(reply, FILES.get, {ASK, f"{ASK} {ASK}"}).answer == "n.said"


def polling(states: list[dict[str, Any]], first: dict[str, Any], at: str) -> Callable[[str, str, Any], Reply]:
    """Return a server that creates a task for a POST and then returns the task's states, one for each request."""
    left = list(states)

    def app(method: str, path: str, body: Any) -> Reply:
        if method == "POST":
            left[:] = states
            return as_json(first, 202)
        if path != at:
            return as_json({"detail": "no such path"}, 404)
        return as_json(left.pop(0) if len(left) > 1 else left[0])

    return app


DONE = {"status": "done", "answer": ANSWER, "sources": [{"text": WORDS, "file": "lease.pdf"}]}


@pytest.mark.parametrize(
    ("first", "at"),
    [
        ({"task_id": "t1", "status": "queued"}, "/status/t1"),
        ({"job_id": 7, "status": "queued"}, "/ask/7"),
        ({"task_id": "t1", "status_url": "/v1/results/t1"}, "/v1/results/t1"),
    ],
)
def test_a_server_that_gives_a_task_is_asked_until_it_is_done(first, at):
    with serving(polling([{"status": "running"}, DONE], first, at)) as url:
        reply, notes = asked(url)
    assert reply.answer == ANSWER and reply.passages[0].text == WORDS
    assert any("[poll]" in note for note in notes)


def test_a_target_file_may_say_how_a_task_is_polled(tmp_path: Path):
    text = """
[ask]
body = { q = "{question}" }
[poll]
task = "ticket.no"
path = "/results/{task}"
done = "state == 'ready'"
result = "payload"
seconds = 0.01
"""
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    states = [{"state": "busy", "payload": {"answer": "not yet"}}, {"state": "ready", "payload": DONE}]
    with serving(polling(states, {"ticket": {"no": 5}}, "/results/5")) as url:
        reply, _ = asked(url, str(tmp_path / "mine.toml"))
    assert reply.answer == ANSWER


def test_a_server_names_no_other_host_to_be_polled():
    first = {"status_url": "http://192.0.2.1/steal", "status": "queued"}
    with serving(lambda method, path, body: as_json(first)) as url, pytest.raises(ToolkitError, match="no answer"):
        asked(url)


def test_two_steps_retrieve_and_then_answer_with_the_ids(tmp_path: Path):
    text = """
[retrieve]
path = "/search"
body = { q = "{question}" }
passages = "hits"
[ask]
path = "/answer"
body = { q = "{question}", use = "{ids}" }
"""
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")

    def app(method: str, path: str, body: Any) -> Reply:
        if path.endswith("/search"):
            return as_json({"hits": [{"id": "c9", "text": WORDS, "file": "lease.pdf"}]})
        return as_json({"answer": ANSWER if body["use"] == ["c9"] else "without ids"})

    with serving(app) as url:
        reply, _ = asked(url, str(tmp_path / "mine.toml"))
    assert reply.answer == ANSWER and reply.passages[0].text == WORDS
