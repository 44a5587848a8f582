"""The project's own models: the merged weights are the trained ones, and the packaged files are small and checked."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from exhibit.models import network, reader
from exhibit.models.embedders import legal, minilm
from exhibit.models.network import load_tokenizer, read_safetensors
from exhibit.models.rerankers import legal as reranker
from exhibit.models.rerankers import teacher
from exhibit.schemas.errors import SourceError, ToolkitError
from tests.rag.models import open_model
from tests.rag.reference import add_lowrank, compute_states

CLAUSE = "Either party may terminate this Agreement upon thirty (30) days' written notice to the other party."


@pytest.fixture(scope="module")
def official() -> dict[str, np.ndarray]:
    return network.OFFICIAL.weights()


def test_legal_embedder_equals_official_weights_merged_with_adapter(official):
    model = open_model(legal, "fp32")
    ids = load_tokenizer().encode(CLAUSE).ids
    network = add_lowrank(official, read_safetensors(legal.ADAPTER), 1.0)
    mean = compute_states(network, ids, [0] * len(ids)).mean(axis=0)
    expected = mean / np.linalg.norm(mean)
    assert model.embed([CLAUSE], role="passage")[0] @ expected > 1 - 1e-5
    # the adapter changes the vectors
    assert open_model(minilm, "fp32").embed([CLAUSE], role="passage")[0] @ expected < 0.99


def test_legal_embedder_refuses_an_unknown_variant():
    assert open_model(legal, "int8").name != open_model(minilm, "int8").name
    with pytest.raises(ToolkitError, match="legal:int8, legal:fp32"):
        legal.open("int4")


QUESTION = "Which law governs the contract?"
PASSAGES = [CLAUSE, "This Agreement is governed by the laws of the State of Delaware.", "Rent is due each quarter."]


@pytest.mark.slow
def test_legal_reranker_scores_equal_scores_computed_from_trained_weights_and_head(official):
    model = open_model(reranker, "fp32")
    trained = read_safetensors(reranker.WEIGHTS)
    network = add_lowrank(official, trained, 1.0)
    for (ids, types, _), score in zip(model.tokenise(QUESTION, PASSAGES), model.score(QUESTION, PASSAGES), strict=True):
        state = compute_states(network, ids[0].tolist(), types[0].tolist())
        both = np.concatenate([state[0], state.mean(axis=0)])
        assert score == pytest.approx(float(both @ trained["head.weight"][0] + trained["head.bias"][0]), abs=1e-3)


def test_legal_reranker_cuts_question_to_64_tokens_and_pair_to_256():
    model = open_model(reranker, "int8")
    (ids, types, _), (long, _, _) = model.tokenise("which law " * 100, ["It is", "the law " * 300])
    assert ids[0, 0] == 101 and ids[0, 63] == 102 and ids[0, -1] == 102 and ids.shape == (1, 64 + 3)
    assert types[0].tolist() == [0] * 64 + [1] * 3
    assert long.shape == (1, 256) and long[0, -1] == 102


def test_legal_reranker_gives_the_same_ranking_in_int8_and_fp32():
    model = open_model(reranker, "int8")
    scores = model.score(QUESTION, PASSAGES)
    assert np.argmax(scores) == np.argmax(open_model(reranker, "fp32").score(QUESTION, PASSAGES)) == 1
    assert model.score(QUESTION, PASSAGES[2:]) == scores[2:] and model.score(QUESTION, []) == []
    assert np.isfinite(model.score("\ud800", ["", "\ud800 half a pair"])).all()
    with pytest.raises(ToolkitError, match="no reranker 'legal:int4'"):
        reranker.open("int4")


def test_legal_reranker_confidence_is_between_0_and_1_and_grows_with_best_score():
    model = open_model(reranker, "int8")
    sure, unsure = model.confidence([4.0, -6.0, -7.0]), model.confidence([-6.0, -6.5, -7.0])
    assert 0 < unsure < 0.5 < sure < 1


@pytest.mark.parametrize(
    ("weights", "most"),
    [
        (legal.ADAPTER, 4_500_000),
        (reranker.WEIGHTS, 4_500_000),
        (reader.WEIGHTS, 6_500_000),
        (teacher.WEIGHTS, 2_000_000),
    ],
)
def test_packaged_weights_match_their_recorded_checksum(weights, most):
    record = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    assert weights.stat().st_size <= most
    assert record["sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()


def test_read_lowrank_refuses_weights_that_differ_from_recorded_checksum(tmp_path):
    weights = tmp_path / "legal.safetensors"
    weights.write_bytes(legal.ADAPTER.read_bytes()[:-1] + b"x")
    shutil.copyfile(legal.ADAPTER.with_suffix(".json"), weights.with_suffix(".json"))
    with pytest.raises(SourceError, match="install the package again"):
        network.read_lowrank(weights)
