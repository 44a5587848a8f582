"""The network: weights, batches of equal lengths, graphs in the cache, and products that do not overflow."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from safetensors.numpy import save_file

from exhibit.models import network
from exhibit.models.embedders import CachedEmbedder
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.network import (
    OFFICIAL,
    group_by_length,
    has_exact_signed_products,
    load_graph,
    merge,
    read_safetensors,
)


def test_read_safetensors_restores_eight_bit_weights_by_their_scales(tmp_path):
    scales = np.array([[0.5], [2.0]], np.float32)
    tensors = {"a.weight": np.array([[2, 4], [1, 1]], np.int8), "a.weight.scale": scales, "b": np.ones(2, np.float16)}
    save_file(tensors, tmp_path / "w.safetensors")
    weights = read_safetensors(tmp_path / "w.safetensors")
    assert weights["a.weight"].tolist() == [[1, 2], [2, 2]] and weights["b"].dtype == np.float32
    assert set(weights) == {"a.weight", "b"}


def test_merge_adds_low_rank_weights():
    low = {"a.up": np.ones((2, 1), np.float32), "a.down": np.full((1, 2), 3, np.float32)}
    merged = merge({"a.weight": np.ones((2, 2), np.float32), "b": np.zeros(1, np.float32)}, low)
    assert merged["a.weight"].tolist() == [[4, 4], [4, 4]] and merged["b"].tolist() == [0]


def test_group_by_length_groups_equal_lengths_longest_first():
    ids = [np.zeros((1, length), np.int64) for length in (3, 9, 3, 3, 9)]
    assert group_by_length(ids, 0) == [[1], [4], [0], [2], [3]]
    assert group_by_length(ids, 6) == [[1], [4], [0, 2], [3]]


def test_load_tokenizer_truncates_to_limit_and_keeps_special_tokens():
    cut, whole = network.load_tokenizer(max_tokens=8), network.load_tokenizer()
    text = "This Agreement\n is made (30) days’ notice"
    assert cut.encode(text).ids == [*whole.encode(text).ids[:7], whole.encode(text).ids[-1]]
    assert len(cut.encode("").ids) == 2 and network.clean_text("\ud800") == "?"


def test_load_graph_builds_missing_graph_once(tmp_path, monkeypatch):
    monkeypatch.setattr(network, "find_model_folder", lambda: tmp_path)
    monkeypatch.setattr(network, "load_tokenizer", lambda: SimpleNamespace(encode_batch_fast=lambda texts: []))
    built: list[str] = []

    def build(weights, *, precision, samples, signed):
        built.append(precision)
        return SimpleNamespace(SerializeToString=lambda: b"graph")

    monkeypatch.setattr(network, "build_graph", build)
    stub = network.Network("stub", dict)
    assert [load_graph("fp32", stub), load_graph("fp32", stub)] == [b"graph"] * 2 and len(built) == 1
    assert network.find_graph_path("fp32", stub) != network.find_graph_path("fp32", OFFICIAL)


def test_has_exact_signed_products_detects_overflow():
    def saturate(state, weight):
        product = state.astype(np.int64)[:, :, None] * weight.astype(np.int64)[None]
        pairs = np.clip(product[:, ::2] + product[:, 1::2], -(2**15), 2**15 - 1)
        return pairs.sum(axis=1).astype(np.float32) - 128 * weight.sum(axis=0)

    assert not has_exact_signed_products(saturate)
    assert has_exact_signed_products(lambda state, weight: (state.astype(np.float32) - 128) @ weight)


def test_cached_vectors_are_not_computed_again(tmp_path):
    inner = Hashing(16)
    asked: list[str] = []
    inner.embed = lambda texts, role, embed=inner.embed: (asked.extend(texts), embed(texts, role=role))[1]
    embedder = CachedEmbedder(inner, tmp_path)
    first = embedder.embed(["a", "b", "a"], role="passage")
    again = CachedEmbedder(inner, tmp_path).embed(["b", "a", "c"], role="passage")
    assert asked == ["a", "b", "c"] and np.array_equal(first[[1, 0]], again[:2])
    embedder.embed(["a"], role="query")
    assert asked[-1] == "a", "the vector of a question may differ from that of a passage"
