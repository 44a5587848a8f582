"""What 8-bit integers leave room for: the large channels are seen, and dividing them brings the vectors nearer."""

from __future__ import annotations

import numpy as np
import pytest

from exhibit.models import minilm_graph
from exhibit.models.embedders import minilm
from exhibit.models.minilm_graph import TEXTS, balance, build_graph, read_peaks
from exhibit.models.network import OFFICIAL, ready_tokenizer
from tests.rag.models import opened

CLAUSES = [
    "Either party may terminate this Agreement upon thirty (30) days' written notice to the other party.",
    "The Supplier's liability under this Agreement shall not exceed the fees paid in the preceding twelve months.",
    "IN WITNESS WHEREOF, the parties have executed this Agreement as of the Effective Date.",
    "We do not sell your data.",
]


@pytest.fixture(scope="module")
def weights():
    return OFFICIAL.weights()


@pytest.fixture(scope="module")
def samples():
    return [encoding.ids for encoding in ready_tokenizer().encode_batch_fast(list(TEXTS))]


@pytest.fixture(scope="module")
def peaks(weights, samples):
    return read_peaks(weights, samples)


def test_a_channel_counts_for_as_much_in_the_states_as_in_the_weights():
    peaks = np.array([1, 16, 1, 1, 0], np.float32)
    weight = np.array([[1, 1, 0.25, -1, 1], [0.5, -1, 0.1, 1, 0]], np.float32)
    shares = balance(peaks, weight)
    assert shares.tolist()[:4] == [1, 4, 2, 1] and shares[4] > 0
    assert np.array_equal(np.log2(shares), np.rint(np.log2(shares)))


@pytest.mark.slow
def test_the_large_channels_are_seen(weights, samples):
    peaks = read_peaks(weights, samples[:1])
    assert len(peaks) == 24 and all(np.isfinite(peak).all() for peak in peaks.values())
    wide = peaks["encoder.layer.0.intermediate.dense"]
    assert wide.max() > 8 * np.median(wide)
    assert peaks["encoder.layer.0.output.dense"].shape == (1536,)


def error_of(vectors: np.ndarray) -> float:
    exact = opened(minilm, "fp32").embed(CLAUSES, role="passage")
    return float(1 - (vectors * exact).sum(axis=1).mean())


def test_in_integers_the_vectors_are_near():
    assert error_of(opened(minilm, "int8").embed(CLAUSES, role="passage")) < 0.006


@pytest.mark.slow  # two graphs are built; that one built anew is the one in the cache is a test of the embedder's
def test_dividing_them_brings_the_vectors_nearer(weights, samples, peaks, monkeypatch):
    ids = opened(minilm, "int8").tokenise(CLAUSES)
    monkeypatch.setattr(minilm_graph, "read_peaks", lambda weights, samples: peaks)

    def error() -> float:
        graph = build_graph(weights, precision="int8", samples=samples).SerializeToString()
        session = minilm.open_session(graph, None)
        return error_of(np.concatenate([session.run(None, {"ids": one})[0] for one in ids]))

    divided = error()
    monkeypatch.setattr(minilm_graph, "balance", lambda peaks, weight: np.ones_like(peaks))
    assert divided < 0.006 and divided < error()
