"""FAISS's index types: their parameters, when they are rebuilt, and rows in a raw file."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from exhibit.rag.index_kinds import (
    IndexType,
    RawVectors,
    build,
    keys_of,
    name_of,
    name_rows_file,
    reshape,
    search_parts,
    search_rows,
    unwrap_index,
    vectors_of,
)
from exhibit.rag.stores.faiss import FaissStore


def rows(count: int, width: int = 4, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


@pytest.mark.parametrize(("width", "parts"), [(6, 3), (5, 5)])
def test_a_sketch_has_four_bits_for_two_numbers(width, parts):
    index = build(IndexType("pq"), np.arange(100), rows(100, width))
    sketch = faiss.downcast_index(unwrap_index(index).base_index)
    assert (sketch.pq.M, sketch.pq.nbits, sketch.pq.cp.niter) == (parts, 4, 5)
    scores, keys = search_rows(index, rows(1, width), 3, np.array([4, 9]))
    assert set(keys[0].tolist()) == {4, 9, -1} and keys[0, 2] == -1
    assert scores[0, 0] == pytest.approx(max(rows(100, width)[[4, 9]] @ rows(1, width)[0]), rel=1e-5)


def test_an_index_is_built_anew_for_another_type_and_keeps_its_rows():
    vectors, kind = rows(1100), IndexType("pq")
    index = reshape(build(kind, np.arange(1100), vectors), kind)
    assert name_of(index) == "pq" and reshape(index, kind) is index
    flat = reshape(index, IndexType())
    assert name_of(flat) == "flat" and np.array_equal(keys_of(flat), np.arange(1100))
    assert np.array_equal(vectors_of(flat, np.arange(1100)), vectors)


def test_one_query_is_compared_with_every_row():
    vectors = rows(30)
    index = build(IndexType(), np.arange(30) + 5, vectors)
    scores, keys = search_parts(index, vectors[:1], 30)
    assert sorted(keys[0].tolist()) == list(range(5, 35))
    np.testing.assert_allclose(np.sort(scores[0]), np.sort(vectors @ vectors[0]), rtol=1e-5)
    assert vectors_of(index, np.array([], np.int64)).shape == (0, 4)
    for some in ([3], [3, 4, 5], [5, 4], [0, 2, 1, 3], [29]):
        assert np.array_equal(vectors_of(index, np.array(some)), vectors[some])


def test_what_a_full_disk_cut_off_is_not_among_the_rows(tmp_path):
    vectors, path = rows(6), tmp_path / "deep" / "down" / "x.faiss"
    raw = RawVectors(name_rows_file(path), 4)
    assert (len(raw), raw.keys.tolist(), raw.vectors().shape, raw.index().ntotal) == (0, [], (0, 4), 0)
    raw.add(np.arange(2), vectors[:2])
    with name_rows_file(path).open("ab") as file:
        file.write(b"half a row")
    raw.add(np.arange(2, 4), vectors[2:4])
    assert np.array_equal(raw.vectors(), vectors[:4]) and raw.keys.tolist() == [0, 1, 2, 3]
    raw.add(np.arange(4, 6), vectors[4:])
    with name_rows_file(path).open("ab") as file:
        file.write(b"half a row")
    raw.write(tmp_path / "written")
    faiss.write_index(raw.index(), str(tmp_path / "own"))
    assert (tmp_path / "written").read_bytes() == (tmp_path / "own").read_bytes()
    raw.remove()
    raw.remove()
    assert not name_rows_file(path).exists() and len(raw) == 0 and raw.keys.tolist() == []


def test_rows_are_written_once_and_what_is_asked_then_is_read_from_the_file(tmp_path):
    vectors = rows(1200)
    store = FaissStore(tmp_path / "a.faiss", 4, IndexType("fp16"))
    store.add(np.arange(1200), vectors)
    store.save()
    assert len(store) == 1200 and [path.name for path in tmp_path.iterdir()] == ["a.faiss"]
    store.add([5000], vectors[:1])
    assert len(store) == 1201 and 5000 in store.search(vectors[:1] * 9, 1201)[1]
    store.close()
    store.close()
    assert len(FaissStore(tmp_path / "a.faiss", 4)) == 1200


@pytest.mark.parametrize("kind", ["flat", "fp16", "pq"])
@pytest.mark.parametrize("k", [1, 1100, 1300])
def test_as_many_are_found_as_there_are(tmp_path, kind, k):
    vectors = rows(1100)
    vectors[0] *= 9  # the nearest to itself
    store = FaissStore(tmp_path / "a.faiss", 4, IndexType.parse(kind))
    store.add(np.arange(1100), vectors)
    store.save()
    store.remove(range(1050, 1100))
    for queries in (vectors[:1], vectors[:2]):
        scores, keys = store.search(queries, k)
        assert keys.shape == scores.shape == (len(queries), k) and keys.max() < 1050
        assert (keys >= 0).sum() == len(queries) * min(k, 1050)
        assert keys[0, 0] == int(np.argmax(vectors[:1050] @ vectors[0]))
    assert store.search(vectors[:1], 3, within=np.arange(1048, 1100))[1][0, 2] == -1
    assert (store.search(vectors[1050:1060], 20)[1] >= 0).all(), "removed ones take no place"
    assert 0 in store.search(vectors[:2], 50)[1][0]
