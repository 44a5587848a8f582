"""MiniLM in numpy, written from its description; the graphs are compared with it."""

import math
from collections.abc import Mapping

import numpy as np

_GAUSS = np.vectorize(math.erf)


def compute_states(weights: Mapping[str, np.ndarray], ids: list[int], types: list[int]) -> np.ndarray:
    """Return the last state of each token of one text."""
    table = {name: weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")}
    state = table["word"][ids] + table["position"][: len(ids)] + table["token_type"][types]
    state = _norm(state, weights, "embeddings.LayerNorm")
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    for number in range(len(layers)):
        layer = f"encoder.layer.{number}"
        parts = [_linear(state, weights, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
        mixed = []
        for query, key, value in zip(*(np.split(part, 12, axis=1) for part in parts), strict=True):
            scores = np.exp(query @ key.T / math.sqrt(32))
            mixed.append(scores / scores.sum(axis=1, keepdims=True) @ value)
        attended = _linear(np.concatenate(mixed, axis=1), weights, f"{layer}.attention.output.dense")
        state = _norm(state + attended, weights, f"{layer}.attention.output.LayerNorm")
        wide = _linear(state, weights, f"{layer}.intermediate.dense")
        wide = wide * (1 + _GAUSS(wide / math.sqrt(2))) / 2
        state = _norm(state + _linear(wide, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm")
    return state


def add_lowrank(weights: Mapping[str, np.ndarray], low: Mapping[str, np.ndarray], strength: float) -> dict:
    """Return the weights with the low-rank update `strength * B @ A` added."""
    added = {name: strength * low[name.replace(".weight", ".up")] @ low[name.replace(".weight", ".down")]
             for name in weights if name.replace(".weight", ".up") in low}  # fmt: skip
    return {name: weight + added.get(name, 0) for name, weight in weights.items()}


def _linear(state: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    return state @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(state: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    centred = state - state.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
