"""A real model of sentence-transformers: tiny, built by the test, and used like any model from the Hub."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
    assert np.abs(model.embed(texts[:1], role="query")[0] - rows[0]).max() > 1e-3, "a query has its prompt"
