"""Embeddings from a server: in the right order whatever it does, and a clear error if it fails."""

from __future__ import annotations

import http.server
import json
import os
import threading

import numpy as np
import pytest

from exhibit.models.embedders import azure
from exhibit.models.embedders import openai as openai_plugin
from exhibit.models.embedders.openai import OpenAIEmbedder
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import ServiceError, ToolkitError

KEY = "sk-planted-93c1d05e77aa42f1"


class _Embeddings(http.server.BaseHTTPRequestHandler):
    """A stub of the embeddings API; `faults` are its next faults, one per request; `limit` is the most texts."""

    asked: list[dict] = []
    faults: list[object] = []
    limit = 1000

    def log_message(self, format, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append({**body, "path": self.path, "key": self.headers.get("Authorization")})
        fault = self.faults.pop(0) if self.faults else None
        texts = body["input"]
        if isinstance(fault, int):
            self.reply({"error": {"message": f"no, {self.headers.get('Authorization')}"}}, fault)
        elif len(texts) > self.limit or "refused" in texts:
            self.reply({"error": {"message": f"{len(texts)} texts, one of them bad or too many"}}, 422)
        elif callable(fault):
            self.reply(fault(self.vectors(body)))
        elif fault is not None:
            self.send(fault, 200)
        else:
            self.reply(self.vectors(body))

    def vectors(self, body):
        width = body.get("dimensions", 4)
        rows = [[float(len(text)), 1.0, *[0.5] * (width - 2)] for text in body["input"]]
        data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
        return {"data": data[::-1]}  # the order is not promised

    def reply(self, value, status=200):
        self.send(json.dumps(value).encode(), status)

    def send(self, data, status):
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "7")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server(monkeypatch):
    handler = type("Embeddings", (_Embeddings,), {"asked": [], "faults": []})
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield handler
    running.shutdown()
    running.server_close()


def lengths(vectors):
    """Return the text lengths that are encoded in these vectors."""
    return np.rint(vectors[:, 0] / vectors[:, 1]).astype(int).tolist()


def test_a_server_is_asked_in_batches_and_the_order_is_kept(server):
    model = openai_plugin.open("local-model")
    assert model.dimensions == 4 and model.name == "openai:local-model"
    texts = ["x" * (1 + n % 50) for n in range(500)]
    vectors = model.embed(texts, role="passage")
    assert lengths(vectors) == [len(text) for text in texts]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    batches = [call["input"] for call in server.asked[1:]]
    assert sum(map(len, batches)) == 500 and max(map(len, batches)) <= 96
    assert {call["path"] for call in server.asked} == {"/v1/embeddings"}
    assert {call["key"] for call in server.asked} == {f"Bearer {KEY}"} and "dimensions" not in server.asked[0]


def test_a_pipelines_embedder_has_the_seconds_that_the_user_gives(server, tmp_path):
    over = threading.Event()
    server.faults.extend([lambda reply: over.wait(60) and reply] * 9)
    pipeline = Pipeline(Config(embedder="openai:local-model"), cache=tmp_path, timeout=0.3)
    with pytest.raises(ServiceError, match=r"openai:local-model: .*no reply within 0\.3 s"):
        pipeline.embedder.embed(["law"], role="query")
    over.set()
    assert len(server.asked) <= 1, "all tries together have the seconds"  # none where the machine is too busy


def test_azure_is_asked_by_deployment(server, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    model = azure.open("legal-eu@8")
    assert model.name == "azure:legal-eu@8" and lengths(model.embed(["abc"], role="query")) == [3]
    [call] = server.asked
    assert call["path"] == "/openai/deployments/legal-eu/embeddings?api-version=2024-10-21"
    assert call["dimensions"] == 8 and call["key"] is None
    with pytest.raises(ToolkitError, match="no deployment is named"):
        azure.open(None)


def test_shorter_vectors_are_asked_for_and_are_another_model(server):
    model = openai_plugin.open("text-embedding-3-large@256")
    assert model.name == "openai:text-embedding-3-large@256" and model.dimensions == 256
    assert model.embed(["a"], role="query").shape == (1, 256)
    assert [call["dimensions"] for call in server.asked] == [256]
    assert openai_plugin.open("text-embedding-3-large").dimensions == 3072


def test_blank_and_endless_texts_are_sent_as_something_servers_take(server):
    model = OpenAIEmbedder("m")
    assert lengths(model.embed(["", "\n", "x" * 100_000], role="query")) == [1, 1, 24_000]
    assert model.embed([], role="query").shape == (0, 4)


@pytest.mark.parametrize("fault", [429, 500, 503, b"<html>", b"", b"[]"])
def test_what_passes_is_tried_again(server, fault):
    model = OpenAIEmbedder("m", wait=lambda seconds: waits.append(seconds), backoff=0.01)
    waits: list[float] = []
    server.faults = [fault, fault]
    assert lengths(model.embed(["abc"], role="query")) == [3]
    assert len(server.asked) == 4 and len(waits) >= 2
    assert (max(waits) > 6) == (fault == 429)  # as long as the server asks for


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (401, "check OPENAI_API_KEY"),
        (403, "check OPENAI_API_KEY"),
        (404, "HTTP 404"),
        (b'{"object": "list"}', "no list 'data'"),
        (lambda reply: {"data": reply["data"][1:]}, "its 1 vectors have other indexes"),
        (lambda reply: {"data": [{**item, "index": 0} for item in reply["data"]]}, "vectors have other indexes"),
        (
            lambda reply: {"data": [{"index": 0}, {"index": 1}]},
            "item 0 of the reply has no list 'embedding' of numbers",
        ),
        (lambda reply: {"data": [{"index": n, "embedding": [1.0] * (n + 1)} for n in (0, 1)]}, "different lengths"),
        (lambda reply: {"data": [{"index": n, "embedding": [1.0] * 7} for n in (0, 1)]}, "2 x 7 numbers"),
        (lambda reply: {"data": [{"index": n, "embedding": [n, 0, 0, 0]} for n in (0, 1)]}, "zeros for .*'one'"),
        (lambda reply: {"data": [{"index": n, "embedding": [float("nan")] * 4} for n in (0, 1)]}, "not finite .*'one'"),
        (
            lambda reply: {"data": [{"index": n, "embedding": ["1"] * 4} for n in (0, 1)]},
            "no list 'embedding' of numbers",
        ),
        (
            lambda reply: {"data": [{"index": [n], "embedding": [1.0] * 4} for n in (0, 1)]},
            "vectors have other indexes",
        ),
        (lambda reply: {"data": [{"index": n, "embedding": [10**400] * 4} for n in (0, 1)]}, "no table of numbers"),
    ],
)
def test_what_does_not_pass_is_an_error_at_once(server, fault, message):
    model = OpenAIEmbedder("m")
    server.faults = [fault]
    with pytest.raises(ServiceError, match=message) as caught:
        model.embed(["one", "two"], role="passage")
    assert len(server.asked) == 2 and KEY not in str(caught.value)


def test_no_server_at_all_is_an_error_after_the_last_try(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ServiceError, match="openai:m: .*no reply"):
        OpenAIEmbedder("m", retries=2, backoff=0.001)


def test_a_server_that_never_recovers_is_given_up(server):
    model = OpenAIEmbedder("m", retries=2, wait=lambda seconds: None)
    server.faults = [500] * 9
    with pytest.raises(ServiceError, match="HTTP 500") as caught:
        model.embed(["one"], role="passage")
    assert len(server.asked) == 1 + 3 and KEY not in str(caught.value)


def test_a_batch_that_is_too_large_for_a_server_is_halved(server):
    model = OpenAIEmbedder("m")
    server.limit = 10
    texts = ["x" * n for n in range(1, 61)]
    assert lengths(model.embed(texts, role="passage")) == list(range(1, 61))


@pytest.mark.parametrize("status", [400, 413, 422])
def test_two_texts_that_a_server_refuses_are_sent_one_by_one(server, status):
    model = OpenAIEmbedder("m")
    server.faults = [status]
    assert lengths(model.embed(["a", "bb"], role="passage")) == [1, 2]
    assert [body["input"] for body in server.asked[1:]] == [["a", "bb"], ["a"], ["bb"]]


def test_long_texts_are_sent_a_few_at_a_time(server):
    model = OpenAIEmbedder("m", concurrency=1)
    model.embed(["x" * 30_000] * 14, role="passage")  # 24,000 characters of each are read
    assert [len(body["input"]) for body in server.asked[1:]] == [12, 2]
    model.embed(["x"] * 97, role="passage")
    assert [len(body["input"]) for body in server.asked[3:]] == [96, 1]


def test_the_lengths_of_known_models_need_not_be_asked(server):
    models = ("text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002")
    assert [openai_plugin.open(model).dimensions for model in models] == [3072, 1536, 1536]
    assert server.asked == []


def test_a_text_that_a_server_refuses_is_named(server):
    with pytest.raises(ServiceError, match=r"HTTP 422.*text of 7 characters: 'refused'"):
        OpenAIEmbedder("m").embed(["good", "fine", "refused", "well"], role="passage")


def test_a_model_must_be_named():
    with pytest.raises(ToolkitError, match="no model is named"):
        openai_plugin.open(None)
