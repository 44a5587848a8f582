"""Edge cases of models: quoted texts in errors, slabs of tokens, empty replies, limits of options."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exhibit.models import network, rerankers
from exhibit.models.embedders import CachedEmbedder, VectorCache, hashing, to_unit
from exhibit.models.embedders import openai as openai_embedder
from exhibit.models.embedders.minilm import group_by_length
from exhibit.models.endpoint import Budget, CapError, Prices, find_refused_parameter
from exhibit.models.llms import Completion, Prompt, choose_counter, estimate
from exhibit.models.llms import openai as openai_llm
from exhibit.models.network import Feed, Tokens
from exhibit.models.rerankers.legal import LegalReranker
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.http_policy import HttpError


def test_a_completion_that_says_nothing_took_nothing():
    assert Completion() == Completion("", "", 0, 0, 0.0, False) and Prompt("u") == Prompt("u", "", "")


@pytest.mark.parametrize(("length", "mark"), [(60, ""), (61, " …")])
def test_sixty_characters_of_a_text_are_quoted(length, mark):
    text = "x" * length
    with pytest.raises(ServiceError) as caught:
        to_unit([[0.0, 0.0]], [text], name="n")
    assert str(caught.value).endswith(
        f"a vector with only zeros for the text of {length} characters {text[:60]!r}{mark}"
    )


def test_unit_vectors_stay_as_they_are_and_others_are_made_so():
    nearly = np.array([[1 + 5e-7, 0.0]], np.float32)
    assert to_unit(nearly, ["a"], name="n").tolist() == nearly.tolist()
    assert to_unit([[3.0, 4.0]], ["a"], name="n", dimensions=2) == pytest.approx(np.array([[0.6, 0.8]]))
    for rows, words in {
        ((1.0, 2.0),): "returned 1 x 2 numbers for 1 texts instead of 1 x 3",
        (1.0, 2.0, 3.0): "returned 3 numbers",
        ((math.inf, 1.0, 1.0),): "numbers that are not finite",
    }.items():
        with pytest.raises(ServiceError, match=words):
            to_unit(rows, ["a"], name="n", dimensions=3)


def test_only_what_is_not_kept_is_embedded_and_each_text_once(tmp_path):
    class Counting(hashing.Hashing):
        asked: list[list[str]] = []

        def embed(self, texts, *, role):
            self.asked.append(list(texts))
            return super().embed(texts, role=role)

    inner = Counting(8)
    cached = CachedEmbedder(inner, VectorCache(tmp_path, inner))
    first = cached.embed(["a", "b", "a"], role="passage")
    again = cached.embed(["b", "c"], role="passage")
    assert inner.asked == [["a", "b"], ["c"]] and (first[0] == first[2]).all() and (again[0] == first[1]).all()
    cached.embed(["a"], role="query")
    assert inner.asked[2:] == [["a"]], "a question is not a passage"
    assert len(VectorCache(tmp_path, inner)) == 4 and len(VectorCache(tmp_path, Counting(9))) == 0
    assert (cached.name, cached.dimensions, cached.many) == ("hashing-8", 8, 0)


def test_tokens_come_in_slabs_in_order_in_this_process(monkeypatch):
    monkeypatch.setattr(network, "FEW", 2)
    feed = Feed(workers=0, slab=2)
    assert [(start, len(tokens.lengths)) for start, tokens in feed.slabs(["a", "b", "c", "d", "e"])] == [
        (0, 2),
        (2, 2),
        (4, 1),
    ]
    assert list(feed.slabs([])) == []
    feed.close()


def test_texts_of_one_length_run_together_as_many_as_there_is_room_for():
    tokens = Tokens(np.arange(12, dtype=np.uint16), np.array([2, 3, 2, 2, 3]))
    batches = [(rows.tolist(), ids.tolist()) for rows, ids in tokens.batches(4)]
    assert batches == [
        ([1], [[2, 3, 4]]), ([4], [[9, 10, 11]]), ([0, 2], [[0, 1], [5, 6]]), ([3], [[7, 8]]),
    ]  # fmt: skip
    assert Tokens(np.zeros(0, np.uint16), np.zeros(0, np.int64)).batches(4) == []
    ids = [np.zeros((1, length), np.int64) for length in (2, 5, 2, 2, 5)]
    assert group_by_length(ids, 2) == [[1, 4], [0, 2], [3]] and group_by_length([], 2) == []


def test_hashing_has_as_many_dimensions_as_asked_for():
    assert (hashing.open(None).dimensions, hashing.open("12").dimensions) == (256, 12)
    with pytest.raises(ToolkitError, match="a number of dimensions"):
        hashing.open("many")
    rows = hashing.open("4").embed(["", "law law law", "Law"], role="query")
    assert rows[0].tolist() == [0, 0, 0, 1] and (rows[1] == rows[2]).all() and rows[1][3] == 0


@pytest.mark.parametrize(
    ("argument", "model", "dimensions"),
    [("m@256", "m", 256), ("a@b@1", "a@b", 1), ("m@", "m@", None), ("m", "m", None)],
)
def test_a_model_may_be_asked_for_shorter_vectors(argument, model, dimensions):
    assert openai_embedder.parse_model_name(argument) == (model, dimensions)


@pytest.mark.parametrize("name", ["retries", "backoff", "max_requests", "max_cost", "concurrency", "timeout"])
def test_an_option_that_is_too_low_is_refused(name, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    with pytest.raises(ToolkitError, match=f"openai: the value of {name} is too low"):
        openai_llm.open("m", {name: -1, "prices": {"m": (1.0, 1.0)}})
    for zero in {"retries", "backoff", "max_requests", "max_cost"} & {name}:
        openai_llm.open("m", {zero: 0, "prices": {"m": (1.0, 1.0)}}).close()
    for zero in {"concurrency", "timeout"} & {name}:
        with pytest.raises(ToolkitError, match=f"the value of {zero} is too low"):
            openai_llm.open("m", {zero: 0})


def test_a_model_must_be_named_and_its_options_known(monkeypatch):
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(ToolkitError, match="no model is named"):
        openai_llm.open(None, {})
    with pytest.raises(ToolkitError, match="no option a, b; there are"):
        openai_llm.options_of({"b": 1, "a": 2})
    with pytest.raises(ToolkitError, match="max_cost needs the prices of m"):
        openai_llm.open("m", {"max_cost": 1.0})
    assert openai_llm.options_of({"timeout": None}).timeout == 60.0


def test_a_budget_counts_requests_and_money():
    budget = Budget(max_requests=2, max_cost=3.0, prices=Prices(1_000_000.0, 2_000_000.0))
    with budget.reserve_request(tokens_in=1, tokens_out=1) as receipt:
        assert receipt.cost == 3.0
        receipt.cost = 0.5
    assert (budget.requests, budget.spent) == (1, 0.5)
    with (
        pytest.raises(
            CapError, match=r"the limit max_cost = 3 is reached: 0\.500000 is spent, and the next request may cost 3\.0"
        ),
        budget.reserve_request(tokens_in=1, tokens_out=1),
    ):
        pass
    with budget.reserve_request(tokens_in=0, tokens_out=1):
        pass
    with (
        pytest.raises(CapError, match="the limit of 2 requests is reached"),
        budget.reserve_request(tokens_in=0, tokens_out=0),
    ):
        pass
    assert (budget.requests, budget.spent) == (2, 2.5)


def test_a_parameter_is_refused_by_a_400_that_names_it():
    body = b'{"error": {"param": "max_tokens"}}'
    assert find_refused_parameter(HttpError("no", status=400, body=body)) == "max_tokens"
    for error in (HttpError("no", status=422, body=body), HttpError("no", status=400, body=b'{"error": "x"}')):
        assert find_refused_parameter(error) == ""


def test_tokens_are_estimated_where_no_vocabulary_is_here():
    assert choose_counter(None) is estimate and choose_counter("no such model") is estimate
    assert estimate("") == 0 and estimate("abc") == 1 and estimate("1234") == 2 and estimate("_" * 16) == 2
    assert estimate("CAPITALS") == round(8 / 3.5) and estimate("abcdefghijklmn") == 2


def test_a_reranker_says_whether_it_is_joined_and_how_sure_it_is():
    class Plain:
        name = "plain"

        def score(self, question, passages):
            return [0.0] * len(passages)

    class Sure(Plain):
        retrieval_weight = 0.0

        def confidence(self, scores):
            return max(scores)

    assert rerankers.find_retrieval_weight(Plain()) is None and rerankers.find_retrieval_weight(Sure()) == 0.0
    assert rerankers.estimate_confidence(Plain(), [1.0]) is None and rerankers.estimate_confidence(Sure(), []) is None
    assert rerankers.estimate_confidence(Sure(), [0.25, 0.5]) == 0.5


def test_confidence_is_logistic_in_the_best_score():
    reranker = LegalReranker.__new__(LegalReranker)
    reranker._calibration = {"slope": 2.0, "offset": -1.0}
    assert reranker.confidence([-9.0, 0.5]) == 0.5
    assert reranker.confidence([1.5, 0.0]) == pytest.approx(1 / (1 + math.exp(-2)))


@pytest.mark.parametrize("name", ["hashing", "legal", "minilm"])
def test_an_embedder_that_asks_nobody_says_so(name):
    assert load_plugin("exhibit.models.embedders", name)[0].LOCAL is True


@pytest.mark.parametrize("name", ["legal", "words"])
def test_a_reranker_that_asks_nobody_says_so(name):
    assert load_plugin("exhibit.models.rerankers", name)[0].LOCAL is True
    assert not hasattr(load_plugin("exhibit.models.rerankers", "http")[0], "LOCAL")
