"""8-bit quantisation: channels with large values are detected, and dividing them brings the vectors nearer."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from exhibit.models import minilm_graph
from exhibit.models.embedders import minilm
from exhibit.models.minilm_graph import TEXTS, balance, build_graph, has_exact_signed_products, read_peaks
from exhibit.models.network import OFFICIAL, VERSION, Network, load_tokenizer
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
    return [encoding.ids for encoding in load_tokenizer().encode_batch_fast(list(TEXTS))]


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


@pytest.mark.parametrize("signed", [False, has_exact_signed_products()])
def test_a_product_of_integers_is_exact(weights, samples, signed):
    model = build_graph(weights, precision="int8", samples=samples[:1], signed=signed)
    constants = {one.name: one for one in model.graph.initializer}
    [product, *others] = [node for node in model.graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(others) == 23
    weight, scale, scales, state_zero, zero = (numpy_helper.to_array(constants[name]) for name in product.input[1:])
    assert weight.dtype == zero.dtype == (np.int8 if signed else np.uint8)
    states = np.random.default_rng(1).choice([0, 128, 255], (1, 40, len(weight))).astype(np.uint8)
    given = helper.make_tensor_value_info(product.input[0], TensorProto.UINT8, states.shape)
    asked = helper.make_tensor_value_info(product.output[0], TensorProto.FLOAT, None)
    one = helper.make_graph([product], "one", [given], [asked], [constants[name] for name in product.input[1:]])
    graph = helper.make_model(one, opset_imports=model.opset_import, ir_version=10).SerializeToString()
    [[found]] = InferenceSession(graph, providers=["CPUExecutionProvider"]).run(None, {product.input[0]: states})
    exact = (states[0].astype(np.int64) - int(state_zero)) @ (weight.astype(np.int64) - int(zero))
    assert np.allclose(found, exact * (scale * scales), rtol=1e-5, atol=1e-4)


def multiply_in_16_bits(state: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the product as a processor without dot products computes it: pairs of products stop at 16 bits."""
    products = state.astype(np.int64)[:, :, None] * weight.astype(np.int64)
    pairs = np.clip(products[:, ::2] + products[:, 1::2], -(1 << 15), (1 << 15) - 1)
    return (pairs.sum(axis=1) - 128 * weight.sum(axis=0)).astype(np.float32)


def test_a_processor_that_overflows_is_found_out():
    assert not has_exact_signed_products(multiply_in_16_bits)
    assert has_exact_signed_products(lambda state, weight: (state.astype(np.float32) - 128) @ weight)
    one_state_alone = iter([(lambda state, weight: (state.astype(np.float32) - 128) @ weight), multiply_in_16_bits])
    assert not has_exact_signed_products(lambda state, weight: next(one_state_alone)(state, weight))


@pytest.fixture
def overflowing(monkeypatch):
    """A processor whose products with signed weights are wrong."""
    minilm.takes_signed.cache_clear()
    monkeypatch.setattr(minilm, "has_exact_signed_products", lambda: has_exact_signed_products(multiply_in_16_bits))
    yield
    minilm.takes_signed.cache_clear()


def test_where_signed_products_overflow_the_weights_are_unsigned_and_the_graph_is_another_file(
    overflowing, tmp_path, monkeypatch
):
    asked = []
    made = SimpleNamespace(SerializeToString=lambda: b"a graph")
    monkeypatch.setattr(minilm, "build_graph", lambda *given, **options: asked.append(options["signed"]) or made)
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    network = Network("made-up", "made-up-", dict)
    assert minilm.load_graph("int8", network) == b"a graph" and asked == [False]
    assert minilm.find_graph_path("int8", network).name == f"made-up-int8-unsigned-{VERSION}.onnx"
    minilm.takes_signed.cache_clear()
    monkeypatch.setattr(minilm, "has_exact_signed_products", lambda: True)
    assert minilm.find_graph_path("int8", network).name == f"made-up-int8-signed-{VERSION}.onnx"
    assert minilm.load_graph("int8", network) == b"a graph" and asked == [False, True]
    assert minilm.find_graph_path("fp32", network).name == f"made-up-fp32-{VERSION}.onnx"
    minilm.load_graph("fp32", network)
    assert asked == [False, True, False]


@pytest.mark.slow  # builds a graph
def test_the_vectors_of_signed_and_unsigned_weights_are_the_same(weights, samples):
    graph = build_graph(weights, precision="int8", samples=samples).SerializeToString()
    session = minilm.open_session(graph, None)
    chosen = opened(minilm, "int8")
    for ids in chosen.tokenise(CLAUSES):
        assert np.array_equal(session.run(None, {"ids": ids})[0], chosen.run(ids))
