"""Real vectors: the requested number of distinct chunks is embedded and a description is written beside them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench import vectors
from bench.stores import read_vectors
from exhibit.models.embedders import hashing
from exhibit.schemas.errors import ToolkitError

CLAUSES = [
    f"{number}. The Tenant shall pay the Rent of Unit {number} on the first day of each month." for number in range(90)
]


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "leases"
    folder.mkdir()
    for name in ("one", "two"):  # the second is the first again
        (folder / f"{name}.txt").write_text("\n\n".join(CLAUSES), encoding="utf-8")
    return folder


def test_no_chunk_is_there_twice_and_smaller_ones_come_when_the_larger_are_too_few(source):
    texts = [path.read_text(encoding="utf-8") for path in sorted(source.iterdir())]
    few, least = vectors.choose_distinct_chunks(texts, 10)
    assert (len(few), least) == (10, 500)
    many, least = vectors.choose_distinct_chunks(texts, 60)
    assert len(many) == len(set(many)) == 60 and least < 500
    assert set(few) != set(many[:10]), "in an order drawn at random"
    assert many == vectors.choose_distinct_chunks(texts, 60)[0]
    with pytest.raises(ToolkitError, match="fewer than --rows 100000"):
        vectors.choose_distinct_chunks(texts, 100_000)


def test_vectors_and_questions_are_written_with_what_they_are(source, tmp_path, capsys):
    bundle = tmp_path / "leases-rag"
    bundle.mkdir()
    asked = [{"question": text} for text in ("Who pays the rent?", "When is it due?", "Who pays the rent?")]
    (bundle / "train.json").write_text(json.dumps(asked), encoding="utf-8")
    out = tmp_path / "made" / "vectors.npy"
    told = ["--source", str(source), "--questions", str(bundle), "--rows", "50", "--embedder", "hashing:64"]
    assert vectors.main([*told, "--out", str(out)]) == 0
    assert np.load(out).dtype == np.float16
    rows, queries = read_vectors(out), read_vectors(out.with_suffix(".queries.npy"))
    assert rows.shape == (50, 64) and queries.shape == (2, 64) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert vectors.read_description(out) in capsys.readouterr().out
    assert "50 different chunks of 2 documents" in vectors.read_description(
        out
    ) and "2 questions of leases-rag" in vectors.read_description(out)
    assert vectors.read_description(tmp_path / "other.npy") == "other.npy"


def test_weights_that_are_not_installed_are_given_to_the_embedder(source, tmp_path, monkeypatch):
    given = []

    class Module:
        @staticmethod
        def open(argument, **options):
            given.append((argument, options))
            return hashing.Hashing(16)

    monkeypatch.setattr(vectors, "load_plugin", lambda room, name: (Module, name.partition(":")[2]))
    told = ["--source", str(source), "--rows", "10", "--out", str(tmp_path / "v.npy")]
    for more in ([], ["--weights", str(tmp_path / "weights")]):
        assert vectors.main([*told, "--embedder", "cuda:minilm", *more]) == 0
    assert given == [("minilm", {}), ("minilm", {"weights": tmp_path / "weights"})]
