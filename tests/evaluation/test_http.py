"""A server under test: its request bodies, reply formats, streams, errors, keys, and target files."""

import json

import pytest

from exhibit.evaluation.cases import Reply
from exhibit.evaluation.replies import ReplyError, read_passages, read_reply
from exhibit.evaluation.server_files import fill, hide_secrets, make_body, read_system
from exhibit.evaluation.targets import TargetOptions, ask_all, open_target
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.loopback import LINES, SSE, StreamedReply, imitating
from tests.evaluation.metrics.build import case

RENT = "The rent is 900 pounds a month."
FILES = {"lease.pdf": "lease.pdf", "lease.pdf#page=3": "lease.pdf", "lease": "lease.pdf", "nda.pdf": "nda.pdf"}


def ask(url, dataset, settings=None, *, target="http", count=1, **options):
    """Probe a server, ask it questions, and return the notes and the first reply."""
    options = {"backoff": 0.01, "retries": 1, **options}
    opened = open_target(target, TargetOptions(**options), {"url": url, **(settings or {})})
    notes = opened.probe(dataset, dataset.cases)
    replies = list(opened.ask(dataset, dataset.cases[:count]))
    return notes, replies[0].reply


def answering(accepts, reply=None):
    """Return a server that answers if `accepts` returns true for the body, and otherwise replies 422."""

    def serve(system, request):
        if request.method == "GET" and request.path == "/openapi.json":
            return 404, {"detail": "Not Found"}
        if not accepts(request.body or {}):
            return 422, {"detail": [{"type": "missing", "loc": ["body", "x"], "msg": "Field required"}]}
        return reply or {"answer": RENT, "passages": [{"text": RENT, "filename": "alder.txt"}]}

    return serve


@pytest.mark.parametrize(
    ("accepts", "requests"),
    [
        (lambda body: set(body) == {"question"}, 1),
        (lambda body: set(body) == {"query"}, 2),
        (lambda body: body.get("messages", [{}])[-1].get("role") == "user", 3),
    ],
)
def test_http_target_tries_common_request_bodies_until_accepted(dataset, accepts, requests):
    with imitating(answering(accepts), dataset.cases) as system:
        notes, reply = ask(f"{system.url}/ask", dataset)
        assert reply.answer == RENT and len([r for r in system.asked if r.method == "POST"]) == requests + 1
    assert any("the server answers requests of the form" in note for note in notes) is (requests > 1)
    assert not any("http:http" in note for note in notes) and all(note.startswith("http://") for note in notes)


def test_http_target_sends_parameters_in_context_like_evaltools(dataset):
    with imitating(answering(lambda body: "messages" in body), dataset.cases) as system:
        ask(f"{system.url}/chat", dataset, {"parameters": '{"overrides": {"top": 3}}'})
        messages = [{"role": "user", "content": dataset.cases[0].question}]
        assert system.asked[-1].body == {"messages": messages, "context": {"overrides": {"top": 3}}}


SCHEMA = {
    "paths": {"/ask": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/d/Ask"}}}}}}},
    "d": {
        "Ask": {
            "properties": {
                "user_query": {"anyOf": [{"type": "null"}, {"type": "string"}]},
                "top": {"type": "integer", "default": 5},
                "filters": {"type": ["array", "null"]},
                "mode": {"enum": ["fast", "slow"]},
                "chat_history": {"type": "array"},
            },
            "required": ["user_query", "mode", "chat_history", "filters"],
        },
        "Inner": {"properties": {"input": {"properties": {"text": {"type": ["string", "null"]}}}}},
        "Chat": {"properties": {"messages": {"type": "array"}}},
        "None": {"properties": {"weather": {"type": "string"}}, "required": ["weather"]},
        "Invalid": {"properties": {"q": {"anyOf": [True, 7]}, "text": {"$ref": 7}}, "required": 7},
        "Itself": {"properties": {name: {"$ref": "#/d/Itself"} for name in ("q", "query", "text", "input", "message")}},
    },
}


@pytest.mark.parametrize(("name", "body"), [
    ("Ask", {"user_query": "{question}", "mode": "fast", "chat_history": [], "filters": []}),
    ("Inner", {"input": {"text": "{question}"}}), ("Chat", {"messages": [{"role": "user", "content": "{question}"}]}),
    ("None", None), ("Itself", None), ("Invalid", None),
])  # fmt: skip
def test_make_body_finds_question_field_in_openapi_schema(name, body):
    schema = json.loads(json.dumps(SCHEMA).replace("#/d/Ask", f"#/d/{name}"))
    assert make_body(schema, "/ask") == body
    assert make_body(schema, "/other") is None and make_body([], "/ask") is None


def test_http_target_uses_openapi_description_of_server(dataset):
    def serve(system, request):
        if request.path == "/openapi.json":
            return SCHEMA
        return {"answer": request.body["user_query"]} if request.body.get("mode") == "fast" else (422, {})

    with imitating(serve, dataset.cases) as system:
        notes, reply = ask(f"{system.url}/ask", dataset)
    assert reply.answer == dataset.cases[0].question
    assert any("the request follows the server's /openapi.json" in note for note in notes)


def test_http_target_puts_question_into_address(dataset):
    def serve(system, request):
        return {"answer": request.query["q"]}

    with imitating(serve, dataset.cases) as system:
        _, reply = ask(f"{system.url}/ask?q={{question}}", dataset)
    assert reply.answer == dataset.cases[0].question


def test_fill_template_replaces_placeholders_with_values():
    template = {"q": "{question}", "turns": ["{question}", "x"], "...": "{parameters}", "day": "{as_of}"}
    values = {"question": "Who?", "parameters": {"k": 3}, "as_of": None}
    assert fill(template, values) == {"q": "Who?", "turns": ["Who?", "x"], "k": 3}


@pytest.mark.parametrize(
    ("serve", "settings", "message"),
    [
        (
            lambda system, request: {"weather": "It is fine today"},
            {},
            r"Sent: \{\"question\".* or .*messages.*Received: no answer in the reply; its form is \{weather: text\}\. "
            r"Write the body as --set target_request=.* and .* --set target_response_answer_jmespath=PATH",
        ),
        (answering(lambda body: False), {}, "Received: HTTP 422 .*Field required.* --set target_request="),
        (lambda system, request: (401, {"detail": "no key"}), {}, "does not accept the key: .*no key"),
        (lambda system, request: (404, {}), {}, "no endpoint for questions at this address"),
        (lambda system, request: (500, {"detail": "boom"}), {}, "Received: HTTP 500 .*boom"),
        (lambda system, request: {"error": "overloaded"}, {}, "the server reports an error: overloaded"),
        (
            lambda system, request: {"say": RENT},
            {"request": {"q": "{question}"}, "response_answer_jmespath": "text"},
            r"Sent: \{\"q\".* Received: no answer in the reply at text",
        ),
        (
            lambda system, request: {"answer": RENT},
            {"response_context_jmespath": "hits"},
            r"no passages at hits in the reply: \{answer: text\}",
        ),
        (
            lambda system, request: {"answer": RENT, "passages": [{"key": 7}]},
            {},
            r"Sent: .* Received: passages without text, of the form .*\{key: number\}",
        ),
    ],
)
def test_http_target_probe_error_shows_request_reply_and_remedy(dataset, serve, settings, message):
    with imitating(serve, dataset.cases) as system, pytest.raises(ToolkitError, match=message):
        ask(f"{system.url}/ask", dataset, settings, retries=0)


CLAUSE = {"text": RENT, "filename": "lease.pdf"}


@pytest.mark.parametrize(
    ("reply", "answer", "files"),
    [
        ({"answer": "A b.", "passages": [CLAUSE]}, "A b.", ["lease.pdf"]),
        ({"output": {"answer": "A b.", "contexts": [RENT]}}, "A b.", [None]),
        ({"response": "A b.", "source_nodes": [{"node": {"text": RENT, "metadata": {"file_name": "lease.pdf"}}}]},
         "A b.", ["lease.pdf"]),
        ({"result": "A b.", "source_documents": [{"page_content": RENT, "metadata": {"source": "lease.pdf"}}]},
         "A b.", ["lease.pdf"]),
        ({"llm": {"replies": ["A b."]}, "retriever": {"documents": [{"content": RENT, "meta": {"file": "lease"}}]}},
         "A b.", ["lease.pdf"]),
        ({"answers": [{"data": "A b.", "documents": [{"content": RENT, "meta": {"file_path": "lease"}}]}]},
         "A b.", ["lease.pdf"]),
        ({"context": [{"page_content": RENT, "metadata": {"source": "lease", "page": 0}}], "answer": "A b."},
         "A b.", ["lease.pdf"]),
        ({"choices": [{"message": {"content": "A b."}}], "citations": [CLAUSE]}, "A b.", ["lease.pdf"]),
        ({"message": {"content": "A b."}, "context": {"data_points": {"text": [f"lease.pdf#page=3: {RENT}"]}}},
         "A b.", ["lease.pdf"]),
        ({"user_input": "q", "response": "A b.", "retrieved_contexts": [RENT], "reference": "C d."}, "A b.", [None]),
        ({"query": "q", "retrieved_passages": [RENT]}, None, [None]),
        ({"generated_answer": "A b.", "generated_contexts": [RENT], "answer": "C d.", "contexts": ["x"]},
         "A b.", [None]),
        ({"generated_answer": "A b.", "generated_contexts": [RENT], "retrieved_docs": ["lease.pdf_3"]},
         "A b.", ["lease.pdf"]),
        ({"id": 1, "truth": "C d.", "reply": {"answer": "A b.", "passages": [CLAUSE]}, "scores": {}},
         "A b.", ["lease.pdf"]),
    ],
)  # fmt: skip
def test_read_reply_reads_answer_and_passages_from_known_keys(reply, answer, files):
    read = read_reply(reply, FILES.get)
    assert (read.answer, [passage.filename for passage in read.passages]) == (answer, files)
    assert all(passage.text == RENT for passage in read.passages)


@pytest.mark.parametrize(("passage", "page", "span"), [
    ({**CLAUSE, "page_number": 3, "start": 5, "end": 9}, 3, (5, 9)),
    ({**CLAUSE, "page": "4", "span": [1, 2]}, 4, (1, 2)), ({**CLAUSE, "pages": [7, 8], "span": [9, 2]}, 7, None),
    ({"text": RENT, "url": "lease.pdf", "title": "lease.pdf#page=12"}, 12, None), (f"lease.pdf: {RENT}", None, None),
])  # fmt: skip
def test_read_passages_reads_filename_page_and_span_from_known_keys(passage, page, span):
    [read] = read_passages([passage], names=FILES.get)
    assert (read.text, read.filename, read.told_page, read.span) == (RENT, "lease.pdf", page, span)


@pytest.mark.parametrize("given", [7, [7], [[]]])
def test_read_passages_rejects_values_without_passages(given):
    with pytest.raises(ReplyError):
        read_passages(given, names=FILES.get)


@pytest.mark.parametrize(("reply", "confidence"), [
    ({"confidence": 0.7}, 0.7), ({"metadata": {"confidence_score": 1}}, 1.0), ({"confidence": "0.7"}, 0.7),
    ({"confidence": 70}, None), ({"confidence": True}, None), ({"confidence": "high"}, None),
    ({"confidence": 0.0}, 0.0), ({"message": {"content": "x"}, "context": {"confidence_score": 1}}, 1.0),
    ({"result": {"metadata": {"confidence": 0.5}}}, 0.5), ({"passages": [{"confidence": 0.9}]}, None),
])  # fmt: skip
def test_read_reply_ignores_confidence_that_is_invalid_or_belongs_to_a_passage(reply, confidence):
    assert read_reply({"answer": "A b.", **reply}, FILES.get).confidence == confidence


def test_http_target_returns_positions_of_context_and_reranked_passages(dataset):
    first, second = {"text": "one two", "filename": "alder.txt"}, {"text": "three", "filename": "birch.txt"}
    body = {"answer": RENT, "passages": [first, second], "retrieved": [second, first]}
    body |= {"context": [second], "reranked": [2, 1]}
    with imitating(lambda system, request: body, dataset.cases) as system:
        _, reply = ask(f"{system.url}/ask", dataset)
    assert (reply.context, reply.reranked) == ((2,), (2, 1))
    assert [passage.text for passage in reply.retrieved] == ["three", "one two"]


def events(*items):
    return [f"data: {json.dumps(item)}\n\n" for item in items]


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        (events({"delta": RENT[:8]}, {"delta": RENT[8:]}, {"sources": [CLAUSE], "confidence": 0.2}), SSE),
        (events({"answer": RENT[:9]}, {"answer": RENT[9:]}, {"answer": RENT, "passages": [CLAUSE]}), SSE),
        (["event: token\ndata: \"The rent is \"\n\n", "event: status\ndata: \"thinking\"\n\n",
          "event: token\ndata: \"900 pounds a month.\"\n\n", f"event: sources\ndata: {json.dumps([CLAUSE])}\n\n"], SSE),
        ([json.dumps({"delta": {"content": RENT[:9]}}) + "\n", json.dumps({"delta": {"content": RENT[9:]}}) + "\n",
          json.dumps({"context": {"data_points": {"text": [f"alder.txt: {RENT}"]}}}) + "\n"], LINES),
    ],
)  # fmt: skip
def test_http_target_joins_streamed_answer_and_passages(dataset, pieces, kind):
    with imitating(lambda system, request: StreamedReply(pieces, kind), dataset.cases) as system:
        _, reply = ask(f"{system.url}/ask", dataset)
    assert reply.answer == RENT and [passage.text for passage in reply.passages] == [RENT]
    assert reply.confidence == (0.2 if "confidence" in pieces[-1] else None)


def test_http_target_retries_stream_without_end_mark(dataset):
    whole = [*events({"delta": RENT}), "data: [DONE]\n\n"]

    def serve(system, request):
        return StreamedReply(whole if len(system.asked) != 4 else whole[:1])

    with imitating(serve, dataset.cases) as system:
        _, reply = ask(f"{system.url}/ask", dataset)
        assert reply.answer == RENT and len(system.asked) == 5


def test_ask_all_stops_asking_questions_when_its_iterator_is_closed():
    cases = [case(id=number, question=f"q{number}") for number in range(50)]
    asked = []

    def ask_one(case, deadline):
        asked.append(case.id)
        return Reply(answer="x")

    replies = ask_all(cases, ask_one, TargetOptions(threads=1))
    next(replies)
    replies.close()
    seen = len(asked)
    assert seen < 20 and len(asked) - seen <= 1


FILE = """
[ask]
path = "/run"
body = { inputs = { text = "{question}", limit = 8 }, "..." = "{parameters}" }
[reply]
answer = "data.say"
passages = "data.found"
fields = { text = "words", filename = "place" }
pages_from = 0
[settings]
shelf = { default = "http://127.0.0.2:9" }
"""


def nested_reply(system, request):
    return {"data": {"say": RENT, "found": [{"words": RENT, "place": "alder.txt", "page": 0}]}}


def test_target_file_defines_request_and_reply_fields(dataset, tmp_path):
    (tmp_path / "mine.toml").write_text(FILE, encoding="utf-8")
    with imitating(nested_reply, dataset.cases) as system:
        _, reply = ask(system.url, dataset, {"parameters": {"deep": True}}, target=str(tmp_path / "mine.toml"))
        assert system.asked[0].path == "/run"
        assert system.asked[0].body == {"inputs": {"text": dataset.cases[0].question, "limit": 8}, "deep": True}
    assert (reply.answer, reply.passages[0].filename, reply.passages[0].told_page) == (RENT, "alder.txt", 1)


@pytest.mark.parametrize(("text", "message"), [
    ("[reply]\nanswer = 'a..b'", "is not JMESPath"), ("[ask]\npath = 'ask'", "ask.path"),
    ("[asks]\npath = '/ask'", "asks"),
    ("key = 'OPENAI_API_KEY'", "name the variable EXHIBIT_TARGET_.*--set target_key=NAME"), ("= 3", "mine.toml"),
])  # fmt: skip
def test_read_system_rejects_invalid_target_file(tmp_path, text, message):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ToolkitError, match=message):
        read_system(str(tmp_path / "mine.toml"))


def test_target_file_cannot_insert_environment_variables_into_requests(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-aaaabbbb")
    text = FILE.replace("limit = 8", 'limit = "{OPENAI_API_KEY} $OPENAI_API_KEY ${OPENAI_API_KEY}"')
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with imitating(nested_reply, dataset.cases) as system:
        ask(system.url, dataset, target=str(tmp_path / "mine.toml"))
        assert "planted" not in str(system.asked[0].body) and "sk-planted" not in str(system.asked[0].headers)


def test_target_file_uploads_to_a_second_server_only_if_the_user_names_the_server(tmp_path, dataset):
    file = tmp_path / "mine.toml"
    file.write_text(f'{FILE}[ingest]\nsetting = "shelf"\nadd = {{ path = "/add", file = "file" }}\n', encoding="utf-8")
    with imitating(nested_reply, dataset.cases) as system:
        with pytest.raises(ToolkitError, match="uploads go to a second server; name it with --set target_shelf=URL"):
            open_target(str(file), TargetOptions(ingest="auto"), {"url": system.url})
        assert not system.asked
        named = open_target(str(file), TargetOptions(ingest="auto"), {"url": "http://x", "shelf": system.url})
        with pytest.raises(ToolkitError, match="no server answers"):
            named.ingest(dataset)
        assert [asked.path for asked in system.asked] == ["/add"] * 3


def test_http_target_sends_key_and_hides_key_in_errors_and_settings(dataset, monkeypatch):
    monkeypatch.setenv("MY_KEY", "planted-secret-1234")

    def echo(system, request):
        return 400, {"detail": f"bad {request.headers.get('Authorization')}"}

    with imitating(echo, dataset.cases) as system:
        with pytest.raises(ToolkitError) as error:
            ask(f"{system.url}/ask", dataset, {"key": "MY_KEY"})
        assert system.asked[0].headers["Authorization"] == "Bearer planted-secret-1234"
    assert "planted" not in str(error.value)
    assert (
        open_target("http", TargetOptions(), {"url": "http://me:pass@host/ask?code=1"}).name == "http:http://host/ask"
    )
    shown = hide_secrets({"url": "http://me:pass@host/ask?key=abc", "api_key": "abcd", "header": {"X-Key": "MY_KEY"}})
    assert shown["url"] == "http://host/ask" and "abcd" not in str(shown) and shown["header"] == {"X-Key": "MY_KEY"}
