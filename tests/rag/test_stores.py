"""Exact search: what FAISS finds is what comparing everything finds, filtered or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.stores.faiss import Store, open
from schemas.errors import BundleError


def unit(rows: int, seed: int, width: int = 8) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def store(tmp_path) -> Store:
    return open(tmp_path, None, name="chunk", dimensions=8)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 9), st.booleans())
def test_search_is_a_sort_of_all_products(tmp_path_factory, rows, k, seed, filtered):
    store = Store(tmp_path_factory.mktemp("store") / "x.faiss", 8)
    vectors, queries = unit(rows, seed), unit(3, seed + 100)
    keys = np.arange(rows) * 7 + 5
    store.add(keys, vectors)
    within = keys[::2] if filtered else keys
    scores, found = store.search(queries, k, within=within if filtered else None)
    for row in range(3):
        chosen = np.isin(keys, within)
        products = vectors[chosen] @ queries[row]
        expected = keys[chosen][np.argsort(-products, kind="stable")][:k]
        assert found[row][: len(expected)].tolist() == expected.tolist()
        assert (found[row][len(expected) :] == -1).all()
        assert np.allclose(scores[row][: len(expected)], np.sort(products)[::-1][:k], atol=1e-6)


def test_a_selector_finds_the_same_as_comparing_by_hand(store, monkeypatch):
    store.add(range(500), unit(500, 1))
    query, within = unit(2, 2), np.arange(0, 500, 3)
    by_hand = store.search(query, 20, within=within)
    monkeypatch.setattr("rag.stores.faiss._FEW", 10)
    by_selector = store.search(query, 20, within=within)
    assert by_hand[1].tolist() == by_selector[1].tolist()


def test_rows_go_and_the_rest_stays(store):
    vectors = unit(10, 3)
    store.add(range(10), vectors)
    store.remove([3, 4, 99])
    assert len(store) == 8
    assert store.search(vectors[3:4], 10)[1][0].tolist().count(3) == 0
    assert store.search(vectors[5:6], 1)[1][0][0] == 5
    assert store.search(vectors[5:6], 1, within=[3, 5])[1][0][0] == 5


def test_save_and_open(store, tmp_path):
    store.add([10, 20], unit(2, 4))
    store.save()
    again = open(tmp_path, None, name="chunk", dimensions=8)
    assert len(again) == 2 and again.search(unit(2, 4)[1:], 1)[1][0][0] == 20
    with pytest.raises(BundleError, match="made for 8 numbers a vector, not 9"):
        open(tmp_path, None, name="chunk", dimensions=9)
    (tmp_path / "chunk.faiss").write_bytes(b"garbage")
    with pytest.raises(BundleError, match="damaged; delete the index"):
        open(tmp_path, None, name="chunk", dimensions=8)


def test_nothing_in_nothing_out(store):
    scores, keys = store.search(unit(2, 5), 3)
    assert keys.tolist() == [[-1] * 3] * 2 and np.isneginf(scores).all()
    assert store.search(unit(1, 5), 3, within=[])[1].tolist() == [[-1] * 3]


def test_what_is_no_vector_is_refused(store):
    broken = unit(2, 6)
    broken[1, 3] = np.nan
    with pytest.raises(BundleError, match="not finite"):
        store.add([1, 2], broken)
    with pytest.raises(BundleError, match="vectors for 3 keys"):
        store.add([1, 2, 3], unit(2, 6))
    assert len(store) == 0
