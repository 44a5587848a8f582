"""Embeddings from a server are in the order of the texts; a failure gives a clear error."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.models.embedders import azure, openai
from exhibit.models.openai import OpenAIEmbedder
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import ServiceError, ToolkitError
from tests.loopback import Reply, serve

KEY = "sk-planted-93c1d05e77aa42f1"


def make_vectors(body):
    width = body.get("dimensions", 4)
    rows = [[float(len(text)), 1.0, *[0.5] * (width - 2)] for text in body["input"]]
    data = [{"index": position, "embedding": row} for position, row in enumerate(rows)]
    return {"data": data[::-1]}  # servers promise no order


@pytest.fixture
def server(monkeypatch):
    """The requests to a stub of the embeddings API, and its next faults, one per request."""
    stub = SimpleNamespace(requests=[], faults=[])

    def answer(request):
        key = request.headers.get("Authorization")
        stub.requests.append({**request.body, "path": request.path, "key": key})
        fault = stub.faults.pop(0) if stub.faults else None
        if isinstance(fault, int):
            return Reply({"error": {"message": f"no, {key}"}}, fault, {"Retry-After": "7"} if fault == 429 else {})
        if callable(fault):
            return Reply(fault(make_vectors(request.body)))
        return Reply(make_vectors(request.body) if fault is None else fault)

    with serve(answer) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield stub


def read_lengths(vectors):
    """Return the text lengths that are encoded in these vectors."""
    return np.rint(vectors[:, 0] / vectors[:, 1]).astype(int).tolist()


def test_embed_sends_batches_and_returns_vectors_in_text_order(server):
    model = openai.open("local-model")
    assert model.dimensions == 4 and model.name == "openai:local-model"
    assert read_lengths(model.embed(["", "x" * 100_000], role="query")) == [1, 24_000]
    server.requests[1:] = []
    texts = ["x" * (1 + n % 50) for n in range(500)]
    vectors = model.embed(texts, role="passage")
    assert read_lengths(vectors) == [len(text) for text in texts]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    batches = [call["input"] for call in server.requests[1:]]
    assert sum(map(len, batches)) == 500 and max(map(len, batches)) <= 96
    assert {(call["path"], call["key"]) for call in server.requests} == {("/v1/embeddings", f"Bearer {KEY}")}


def test_embed_stops_after_the_timeout_of_the_pipeline(server, tmp_path):
    over = threading.Event()
    server.faults.extend([lambda reply: over.wait(60) and reply] * 9)
    pipeline = Pipeline(Config(embedder="openai:local-model"), cache=tmp_path, timeout=0.3)
    with pytest.raises(ServiceError, match=r"openai:local-model: .*no complete reply within 0\.3 s"):
        pipeline.embedder.embed(["law"], role="query")
    over.set()
    assert len(server.requests) <= 1, "the timeout includes all retries"


def test_embedder_requests_named_dimensions_and_knows_default_dimensions(server):
    model = openai.open("text-embedding-3-large@256")
    assert model.name == "openai:text-embedding-3-large@256" and model.dimensions == 256
    assert openai.open("text-embedding-3-large").dimensions == 3072 and server.requests == []
    model.embed(["a"], role="query")
    assert [call["dimensions"] for call in server.requests] == [256]
    for plugin in (openai, azure):
        with pytest.raises(ToolkitError, match="no model is named"):
            plugin.open(None)


@pytest.mark.parametrize("fault", [429, 500, 503, b"<html>", b"", b"[]"])
def test_transient_fault_is_retried(server, fault):
    waits: list[float] = []
    model = OpenAIEmbedder("m", wait=waits.append)
    server.faults = [fault, fault]
    assert read_lengths(model.embed(["abc"], role="query")) == [3]
    assert len(server.requests) == 4 and len(waits) >= 2
    assert (max(waits) > 6) == (fault == 429), "Retry-After sets the pause"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (401, "check OPENAI_API_KEY"),
        (404, "HTTP 404"),
        (422, "HTTP 422.*2 texts, the first is 'one'"),
        (b'{"object": "list"}', "does not have one 'embedding' for each of 2 texts"),
        (lambda reply: {"data": reply["data"][1:]}, "does not have one 'embedding'"),
        (lambda reply: {"data": [{"index": 0}, {"index": 1}]}, "does not have one 'embedding'"),
        (lambda reply: {"data": [{"index": [n], "embedding": [1.0] * 4} for n in (0, 1)]}, "does not have one"),
        (lambda reply: {"data": [{"index": n, "embedding": [float("nan")] * 4} for n in (0, 1)]}, "not finite .*'one'"),
    ],
)
def test_permanent_error_is_raised_without_retry(server, fault, message):
    model = OpenAIEmbedder("m")
    server.faults = [fault]
    with pytest.raises(ServiceError, match=message) as caught:
        model.embed(["one", "two"], role="passage")
    assert len(server.requests) == 2 and KEY not in str(caught.value)
