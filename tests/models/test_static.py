"""Vectors of tokens: unit vectors that know words alike, kept in the cache, and an index that is searched by them."""

from __future__ import annotations

import numpy as np
import pytest

from exhibit.models.embedders import static
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import ToolkitError

CLAUSES = [
    "Either party may terminate this Agreement upon thirty (30) days' written notice to the other party.",
    "This Agreement shall be governed by the laws of the State of Delaware.",
    "Confidential Information means any non-public information disclosed by Harrow Mill Ltd. to the Recipient.",
]


@pytest.fixture(scope="module")
def embedder():
    """The embedder with a table in which no two tokens are alike: made in no time, and shared words decide."""
    drawn = np.random.default_rng(7).standard_normal((30_522, static.WIDTH)).astype(np.float32)

    def run(ids):
        assert ids.shape[1] == 3 and (ids[:, 0] == 101).all() and (ids[:, 2] == 102).all()
        return drawn[ids[:, 1]]

    return static.Static(static.make_table(run))


def test_vectors_are_units_whatever_the_texts(embedder, monkeypatch):
    odd = ["", " \n", "\x00", "\ud800 half a pair", "合同", "x" * 10_000, *CLAUSES]
    vectors = embedder.embed(odd, role="passage")
    assert vectors.shape == (len(odd), embedder.dimensions) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    monkeypatch.setattr(static, "_SLAB", 2)
    np.testing.assert_allclose(embedder.embed(odd, role="query"), vectors, atol=1e-6)
    assert embedder.embed([], role="passage").shape == (0, embedder.dimensions)


def test_a_vector_is_the_sum_of_its_tokens_and_frequent_ones_count_less(embedder):
    table = embedder._table
    the, clause = 1996, 11075
    (found,) = embedder.embed(["the clause"], role="passage")
    told = table[[101, the, clause, 102]].sum(axis=0)
    np.testing.assert_allclose(found, told / np.linalg.norm(told), atol=1e-6)
    alike = static.make_table(lambda ids: np.where(ids[:, 1:2] % 2, 1.0, -1.0) * np.ones((1, static.WIDTH)))
    assert np.linalg.norm(alike[the]) < np.linalg.norm(alike[clause]) < np.linalg.norm(alike[30_001])


def test_the_table_is_made_once_and_made_again_where_it_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    made = []

    def make(run):
        made.append(run(np.array([[101, 2000, 102]])).shape)
        return np.full((30_522, static.WIDTH), 0.5, np.float32)

    monkeypatch.setattr(static, "ready_graph", lambda *_: b"")
    monkeypatch.setattr(static, "open_session", lambda *_: _Session())
    monkeypatch.setattr(static, "make_table", make)
    first, second = static.ready_table(), static.ready_table()
    assert made == [(1, static.WIDTH)] and np.array_equal(first, second) and second.dtype == np.float32
    static.table_path().write_bytes(b"cut")
    assert np.array_equal(static.ready_table(), first) and len(made) == 2


class _Session:
    def run(self, _, given):
        return [np.zeros((len(given["ids"]), static.WIDTH), np.float32)]


def test_the_preset_indexes_and_finds(tmp_path, embedder):
    config = Config.preset("fast")
    assert config.embedder == "static" and config.routing and config.lexicon
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number, clause in enumerate(CLAUSES):
        (folder / f"{number}.txt").write_text(f"AGREEMENT\n\n1. {clause}\n", encoding="utf-8")
    pipeline = Pipeline(config, cache=tmp_path / "cache", embedder=embedder, jobs=1)
    pipeline.index(folder, tmp_path / "index")
    (found,) = pipeline.search(["By the laws of which State shall this be governed?"])
    assert "Delaware" in found.ranked[0].text


def test_it_takes_no_argument():
    with pytest.raises(ToolkitError, match="takes no argument"):
        static.open("128")
