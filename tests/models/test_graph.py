"""The graph of a small network with random weights, compared with NumPy: every precision and head."""

from __future__ import annotations

import math

import numpy as np
import onnxruntime
import pytest

from exhibit.models import minilm_graph
from exhibit.models.minilm_graph import balance, build_graph, has_exact_signed_products, read_peaks

WIDTH, HEADS, LAYERS, INNER, WORDS = 128, 4, 2, 256, 30
IDS = np.array([[3, 7, 1, 9, 4], [5, 5, 2, 8, 6]])
TYPES = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"WIDTH": WIDTH, "HEADS": HEADS, "LAYERS": LAYERS}.items():
        monkeypatch.setattr(minilm_graph, name, value)


def made(*heads: str) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(7)

    def random(*shape: int) -> np.ndarray:
        return chance.normal(0, 0.2, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": random(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": random(16, WIDTH),
        "embeddings.token_type_embeddings.weight": random(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        shapes = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        shapes |= {
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for name, shape in shapes.items():
            weights[f"{layer}.{name}.weight"], weights[f"{layer}.{name}.bias"] = random(*shape), random(shape[0])
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name in norms:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + random(WIDTH), random(WIDTH)
    for name, rows, columns in (("head", 1, 2 * WIDTH), ("says", 1, 2 * WIDTH), ("spans", 6, WIDTH)):
        if name in heads:
            weights[f"{name}.weight"], weights[f"{name}.bias"] = random(rows, columns), random(rows)
    return weights


def normalised(state: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    middle = state - state.mean(-1, keepdims=True)
    return (
        middle / np.sqrt((middle**2).mean(-1, keepdims=True) + 1e-12) * weights[f"{name}.weight"]
        + weights[f"{name}.bias"]
    )


def states(weights: dict[str, np.ndarray], types: np.ndarray | None) -> np.ndarray:
    """Return the network's states as its paper defines them, without optimisation."""
    kinds = weights["embeddings.token_type_embeddings.weight"]
    state = (
        weights["embeddings.word_embeddings.weight"][IDS]
        + weights["embeddings.position_embeddings.weight"][: IDS.shape[1]]
    )
    state = normalised(state + (kinds[0] if types is None else kinds[types]), weights, "embeddings.LayerNorm").astype(
        np.float64
    )
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"

        def linear(given, name, layer=layer):
            return given @ weights[f"{layer}.{name}.weight"].T.astype(np.float64) + weights[f"{layer}.{name}.bias"]

        def heads(name, linear=linear, given=None):
            return linear(given, f"attention.self.{name}").reshape(*IDS.shape, HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = (heads(name, given=state) for name in ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(WIDTH // HEADS)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = ((shares / shares.sum(-1, keepdims=True)) @ value).transpose(0, 2, 1, 3).reshape(*IDS.shape, WIDTH)
        state = normalised(
            linear(mixed, "attention.output.dense") + state, weights, f"{layer}.attention.output.LayerNorm"
        )
        wide = linear(state, "intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        state = normalised(linear(wide, "output.dense") + state, weights, f"{layer}.output.LayerNorm")
    return state


def run(weights: dict[str, np.ndarray], precision: str, *, samples=(), signed=False) -> list[np.ndarray]:
    model = build_graph(weights, precision=precision, samples=samples, signed=signed)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {"ids": IDS, "types": TYPES} if "head.weight" in weights else {"ids": IDS}
    assert [one.name for one in session.get_inputs()] == list(given)
    return session.run(None, given)


CASES = [("fp32", (), 2e-6), ("fp16", (), 5e-3), ("int8", (), 0.03), ("int8", [[3, 7, 1, 9, 4], [5, 2]], 0.05)]


@pytest.mark.parametrize(("precision", "samples", "most"), CASES, ids=["fp32", "fp16", "blocks", "rows"])
def test_vectors_are_the_means_of_the_tokens_at_length_one(precision, samples, most):
    weights = made()
    mean = states(weights, None).mean(axis=1)
    [vectors] = run(weights, precision, samples=samples)
    assert (
        vectors.dtype == np.float32
        and np.abs(vectors - mean / np.linalg.norm(mean, axis=1, keepdims=True)).max() < most
    )
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize(("precision", "samples", "most"), CASES, ids=["fp32", "fp16", "blocks", "rows"])
@pytest.mark.parametrize("spans", [False, True])
def test_scores_are_read_from_the_first_token_and_a_mean_and_spans_from_every_token(precision, samples, most, spans):
    weights = made("head", *(["says", "spans"] if spans else []))
    state = states(weights, TYPES)
    both = np.concatenate([state[:, 0], state.mean(axis=1)], axis=-1)
    scores, *more = run(weights, precision, samples=samples)
    scale = 30 * most
    assert np.abs(scores - (both @ weights["head.weight"].T + weights["head.bias"])).max() < scale
    assert len(more) == 2 * spans
    if spans:
        tokens = state @ weights["spans.weight"].T + weights["spans.bias"]
        assert np.abs(more[1] - tokens).max() < scale
        inside = TYPES[:, :, None] / (1 + np.exp(-tokens[:, :, :1]))
        quoted = np.concatenate([state[:, 0], (inside * state).sum(1) / inside.sum(1)], axis=-1)
        assert np.abs(more[0] - (quoted @ weights["says.weight"].T + weights["says.bias"])).max() < scale


@pytest.mark.parametrize("heads", [(), ("head", "says", "spans")], ids=["embedder", "reader"])
def test_signed_weights_that_are_exact_here_change_no_bit(heads):
    weights, samples = made(*heads), [[3, 7, 1, 9, 4], [5, 2]]
    unsigned = run(weights, "int8", samples=samples)
    chosen = run(weights, "int8", samples=samples, signed=has_exact_signed_products())
    assert len(chosen) == len(unsigned) == (3 if heads else 1)
    assert all(np.array_equal(one, other) for one, other in zip(chosen, unsigned, strict=True))


def test_in_integers_a_text_has_the_same_vector_alone_and_beside_another():
    model = build_graph(made(), precision="int8", samples=[[3, 7, 1, 9, 4], [5, 2]]).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for length in (3, 9, 16):
        ids = np.random.default_rng(length).integers(0, WORDS, (5, length))
        alone = np.concatenate([session.run(None, {"ids": ids[[row]]})[0] for row in range(5)])
        assert np.array_equal(session.run(None, {"ids": ids})[0], alone)


def test_which_graphs_have_a_scale_for_each_token():
    rows = [[3, 7, 1]]

    def kinds(*heads, samples=()):
        return {node.op_type for node in build_graph(made(*heads), precision="int8", samples=samples).graph.node}

    assert "MatMulNBits" in kinds() and "MatMulIntegerToFloat" not in kinds()
    assert "MatMulIntegerToFloat" in kinds(samples=rows) and "MatMulNBits" not in kinds(samples=rows)
    assert "MatMulNBits" in kinds("head", samples=rows), "scores alone keep the blocks"
    assert "MatMulIntegerToFloat" in kinds("head", "says", "spans", samples=rows)


def test_channels_are_measured_and_balanced_by_powers_of_two():
    peaks = read_peaks(made(), [[3, 7, 1, 9, 4], [5, 2]])
    assert len(peaks) == 4 * LAYERS and all((peak > 0).all() for peak in peaks.values())
    assert {name: len(peak) for name, peak in peaks.items()}["encoder.layer.1.output.dense"] == INNER
    weight = np.array([[1.0, 2.0, 1.0], [-1.0, 1.0, 0.5]], np.float32)
    assert balance(np.array([1.0, 2.0, 16.0], np.float32), weight).tolist() == [1.0, 1.0, 4.0]
    assert balance(np.zeros(3, np.float32), weight).tolist() == [1.0, 1.0, 1.0], "a channel that is never used"
