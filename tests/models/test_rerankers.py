"""Rerankers: scores in the order of the passages, and a clear error if a server fails."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Span
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import openai
from exhibit.models.rerankers import http, words
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.protocols import Chunk, Hit
from exhibit.rag.retrieval.routed import embed_imagined
from exhibit.rag.retrieval.stages import rerank
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ServiceError, ToolkitError
from tests.models.openai_server import serve_openai

TEXTS = ["Rent is due each quarter.", "The laws of Ruritania govern this Lease.", "The roof is in good repair."]
HITS = [Hit(Chunk("lease.txt", Span(at, at + 9)), 3.0 - at, text) for at, text in enumerate(TEXTS)]


class Fixed:
    name = "fixed"

    def __init__(self, scores: list[float]) -> None:
        self.scores = scores

    def score(self, question: str, passages) -> list[float]:
        return self.scores[: len(passages)]


@given(st.lists(st.integers(-3, 3), min_size=6, max_size=6), st.integers(0, 7))
def test_the_first_come_by_the_new_scores_and_the_rest_stays(scores, first):
    hits = [Hit(Chunk("lease.txt", Span(at, at + 1)), 9.0 - at, "x") for at in range(6)]
    found = rerank("?", hits, Fixed(list(map(float, scores))), first=first)
    order = sorted(range(min(first, 6)), key=lambda at: (-scores[at], at))
    assert [hit.chunk.span.start for hit in found[:first]] == order
    assert found[first:] == hits[first:]
    assert [hit.score for hit in found] == [hit.score for hit in hits]


def test_a_reranker_with_a_weight_is_joined_with_retrieval():
    hits = [Hit(Chunk("lease.txt", Span(at, at + 1)), score, "x") for at, score in enumerate((3.0, 0.9, 0.8))]
    fixed = Fixed([0.0, 0.1, 1.0])
    assert [hit.chunk.span.start for hit in rerank("?", hits, fixed)] == [2, 1, 0]
    fixed.retrieval_weight = 1.0  # standard scores: -0.81 -0.59 1.41 and 1.41 -0.66 -0.75
    assert [hit.chunk.span.start for hit in rerank("?", hits, fixed)] == [2, 0, 1]
    fixed.retrieval_weight = 3.0
    assert [hit.chunk.span.start for hit in rerank("?", hits, fixed)] == [0, 2, 1]
    assert rerank("?", [], fixed) == []


def test_words_put_the_passage_first_that_has_them():
    found = rerank("Which law governs?", HITS, words.open(None))
    assert [hit.chunk.span.start for hit in found] == [1, 0, 2]
    assert words.open(None).score("Which law?", []) == []
    with pytest.raises(ToolkitError, match="no argument"):
        words.open("x")


def test_words_give_the_same_bits_whatever_the_seed_of_hashes():
    question = "rent notice repair insurance assignment default interest deposit renewal access"
    passages = [f"{question} {'rent ' * n}{'default notice ' * (n % 3)}" for n in range(9)] + ["rent access", "repair"]
    code = (
        "from exhibit.models.rerankers import words\n"
        f"print(list(map(float.hex, words.open(None).score({question!r}, {passages!r}))))"
    )
    scores = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in "0123"
    }
    assert len(scores) == 1


def test_words_count_as_bm25_has_it():
    """Four terms in two passages, two per passage on average: ln(1 + 1.5 / 1.5) × 2 × 2.2 / (2 + 1.2 × 1.375)."""
    scores = words.open(None).score("law", ["law law rent", "rent"])
    assert scores == [pytest.approx(math.log(2) * 4.4 / 3.65), 0.0]
    assert words.open(None).score("law", ["", ""]) == [0.0, 0.0]
    one = words.open(None).score("law", ["law"])
    assert one == [pytest.approx(math.log(1 + 0.5 / 1.5) * 2.2 / 2.2)]


def test_rerankers_are_named_by_their_files():
    assert load_plugin("exhibit.models.rerankers", "words")[0] is words
    with pytest.raises(ToolkitError, match="there are cross-encoder, http, legal, words"):
        load_plugin("exhibit.models.rerankers", "nobody")


# ---------------------------------------------------------------- a server


class Server:
    """A rerank server on this machine that scores a document by its length, or sends a given reply."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        self.reply: bytes | None = None
        self.status = 200
        self.away, self.closing = threading.Event(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                if outer.away.is_set():
                    outer.closing.wait(60)
                    return
                outer.keys.append(self.headers.get("Authorization"))
                results = [{"index": i, "relevance_score": len(d)} for i, d in enumerate(body["documents"])]
                reply = outer.reply or json.dumps({"results": results[::-1]}).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/rerank"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.closing.set()
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_a_pipelines_reranker_has_the_seconds_that_the_user_gives(server, tmp_path):
    server.away.set()
    reranker = Pipeline(Config(reranker=f"http:{server.url}"), cache=tmp_path, timeout=0.3).reranker
    with pytest.raises(ServiceError, match=r"no reply \(no complete reply within 0\.3 s"):
        reranker.score("Which law?", ["law"])


def test_a_server_scores_and_gets_its_key(server, monkeypatch):
    monkeypatch.setenv("RERANK_API_KEY", "rk-planted-77aa")
    reranker = http.open(f"rerank-large@{server.url}")
    assert reranker.score("Which law?", TEXTS) == [float(len(text)) for text in TEXTS]
    assert server.asked[0]["model"] == "rerank-large" and server.asked[0]["query"] == "Which law?"
    assert server.keys == ["Bearer rk-planted-77aa"]
    assert reranker.name == "http:rerank-large"
    assert reranker.score("Which law?", []) == []


def test_a_server_without_model_or_key_is_asked_without(server, monkeypatch):
    monkeypatch.delenv("RERANK_API_KEY", raising=False)
    http.open(server.url).score("Which law?", TEXTS)
    assert "model" not in server.asked[0] and server.keys == [None]


@pytest.mark.parametrize(
    "reply",
    [
        b"no json",
        b"[]",
        b'{"results": [{"index": 0}]}',
        b'{"results": [{"index": 0, "relevance_score": 1}]}',
        json.dumps({"results": [{"index": n, "score": 1.0 if n else math.nan} for n in range(len(TEXTS))]}).encode(),
        json.dumps({"results": [{"index": n, "score": 1.0 if n else math.inf} for n in range(len(TEXTS))]}).encode(),
    ],
)
def test_a_reply_that_scores_not_every_passage_is_an_error(server, reply):
    server.reply = reply
    with pytest.raises(ServiceError, match="127.0.0.1"):
        http.open(server.url).score("Which law?", TEXTS)


def test_a_server_that_refuses_or_is_gone_says_so_without_the_key(server, monkeypatch):
    monkeypatch.setenv("RERANK_API_KEY", "rk-planted-77aa")
    reranker = http.open(server.url)
    server.status = 401
    with pytest.raises(ServiceError, match="HTTP 401") as refused:
        reranker.score("Which law?", TEXTS)
    assert "planted" not in str(refused.value)
    with pytest.raises(ServiceError, match="is the reranker running"):
        http.open("http://127.0.0.1:9/rerank").score("Which law?", TEXTS)


@pytest.mark.parametrize("argument", [None, "", "model", "ftp://host/x", "m@http://user:secret@host/x"])
def test_an_address_that_is_none_is_refused(argument):
    with pytest.raises(ToolkitError, match="no server is named") as error:
        http.open(argument)
    assert "secret" not in str(error.value)


# ---------------------------------------------------------------- imagined passages


def test_a_question_moves_towards_the_passage_that_a_model_imagines(monkeypatch):
    embedder = Hashing(64)
    vectors = embedder.embed(["Which law?", "Which roof?"], role="query")
    target = embedder.embed([TEXTS[1]], role="passage")[0]
    with serve_openai() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        server.reply = lambda prompt: TEXTS[1]
        server.faults = {"roof": [400] * 9}
        llm = openai.open("m", {})
        moved, imagined = embed_imagined(["Which law?", "Which roof?"], vectors, llm, embedder, share=0.5)
    assert imagined == [TEXTS[1], ""]
    assert moved[0] @ target > vectors[0] @ target
    assert np.linalg.norm(moved, axis=1) == pytest.approx([1, 1])
    assert moved[1].tolist() == vectors[1].tolist()  # its passage failed: as if there were no model


# ---------------------------------------------------------------- a cross-encoder


@pytest.fixture
def encoders(monkeypatch):
    """A fake package with a model that scores a pair by its common words."""
    asked: list[tuple[str, str]] = []

    class CrossEncoder:
        def __init__(self, name: str) -> None:
            if name == "missing/model":
                raise OSError("missing/model is not a folder\nlong advice")

        def predict(self, pairs, **options):
            asked.extend(pairs)
            return np.array([len(set(one.lower().split()) & set(two.lower().split())) for one, two in pairs])

    module = ModuleType("sentence_transformers")
    module.CrossEncoder = CrossEncoder
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.delitem(sys.modules, "exhibit.models.rerankers.cross_encoder", raising=False)
    yield asked
    sys.modules.pop("exhibit.models.rerankers.cross_encoder", None)


def test_a_cross_encoder_reads_question_and_passage_together(encoders):
    module, argument = load_plugin("exhibit.models.rerankers", "cross-encoder:some/model")
    reranker = module.open(argument)
    assert reranker.name == "cross-encoder:some/model" and reranker.score("Which law?", []) == []
    found = rerank("the laws of ruritania \ud800", HITS, reranker)
    assert [hit.chunk.span.start for hit in found] == [1, 2, 0]
    assert encoders[0] == ("the laws of ruritania ?", TEXTS[0])
    with pytest.raises(ToolkitError, match="missing/model: cannot be loaded: missing/model is not a folder$"):
        module.open("missing/model")
    with pytest.raises(ToolkitError, match="no model is named"):
        module.open(None)


def test_a_cross_encoder_without_its_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delitem(sys.modules, "exhibit.models.rerankers.cross_encoder", raising=False)
    with pytest.raises(ToolkitError, match=r"pip install 'exhibit-rag\[st\]'"):
        load_plugin("exhibit.models.rerankers", "cross-encoder:m")
