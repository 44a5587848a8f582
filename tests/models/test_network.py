"""The neural network: its weights, batches of equal length, cached graphs, and a model of sentence-transformers."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
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


def test_read_safetensors_multiplies_eight_bit_weights_by_the_stored_scales(tmp_path):
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


def test_load_tokenizer_truncates_to_limit_including_special_tokens():
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


def test_has_exact_signed_products_is_false_when_products_overflow():
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
    assert asked[-1] == "a", "roles are cached separately"


WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the lease ends today law of england governs query : passage".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers with vectors of 32 numbers, and a prompt for queries."""
    import torch
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    root = tmp_path_factory.mktemp("tiny")
    (root / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    torch.manual_seed(7)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, **sizes)).save_pretrained(root / "bert")
    BertTokenizerFast(vocab=str(root / "vocab.txt")).save_pretrained(root / "bert")
    bert = models.Transformer(str(root / "bert"), max_seq_length=32)
    pooled = models.Pooling(32)
    model = SentenceTransformer(modules=[bert, pooled], prompts={"query": "query : "}, device="cpu")
    model.save(str(root / "model"))
    return root / "model"


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore")  # names that the library has moved since its version 3
def test_sentence_transformers_model_gives_unit_vectors_independent_of_batch(folder: Path) -> None:
    from exhibit.models.embedders.sentence_transformers import open as open_model

    model = open_model(str(folder))
    texts = ["the lease ends today", "the law of england governs the lease", "", "half a pair \ud800"]
    rows = model.embed(texts, role="passage")
    assert rows.shape == (4, model.dimensions) == (4, 32) and rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(model.embed(texts[1:2], role="passage")[0], rows[1], atol=1e-3)
    assert np.abs(model.embed(texts[:1], role="query")[0] - rows[0]).max() > 1e-3, "queries have a prompt"
