"""Kinds of indexes as FAISS has them: what they are built with, when they are built anew, rows that wait on disk."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from exhibit.rag.index_kinds import (
    IndexType,
    RawVectors,
    add,
    build,
    empty,
    inner,
    keys_of,
    name_of,
    parameters,
    rows_path,
    search_parts,
    search_rows,
    shaped,
    vectors_of,
)
from exhibit.rag.stores import faiss as stores
from exhibit.rag.stores.faiss import FaissStore


def rows(count: int, width: int = 4, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


@pytest.mark.parametrize(
    ("argument", "most", "construction"), [("hnsw", 16, 80), ("hnsw,M=8,efConstruction=33", 8, 33)]
)
def test_a_graph_has_as_many_links_as_it_is_told(argument, most, construction):
    index = build(IndexType.parse(argument), np.arange(50), rows(50))
    graph = inner(index).hnsw
    assert (graph.nb_neighbors(1), graph.nb_neighbors(0), graph.efConstruction) == (most, 2 * most, construction)
    assert inner(index).metric_type == faiss.METRIC_INNER_PRODUCT and name_of(index) == "hnsw"


@pytest.mark.parametrize(("width", "parts"), [(6, 3), (5, 5)])
def test_a_sketch_has_four_bits_for_two_numbers(width, parts):
    index = build(IndexType("pq"), np.arange(100), rows(100, width))
    sketch = faiss.downcast_index(inner(index).base_index)
    assert (sketch.pq.M, sketch.pq.nbits, sketch.pq.cp.niter) == (parts, 4, 5)
    scores, keys = search_rows(index, rows(1, width), 3, np.array([4, 9]))
    assert set(keys[0].tolist()) == {4, 9, -1} and keys[0, 2] == -1
    assert scores[0, 0] == pytest.approx(max(rows(100, width)[[4, 9]] @ rows(1, width)[0]), rel=1e-5)


def test_many_lists_are_searched_by_a_sixteenth_and_few_by_eight():
    index = build(IndexType.parse("ivf,nlist=240"), np.arange(9360), rows(9360))
    assert inner(index).nlist == 240
    assert parameters(index, IndexType("ivf"), 5, None, share=1.0).nprobe == 15
    assert parameters(index, IndexType("ivf"), 5, None, share=0.5).nprobe == 30
    selected = parameters(empty(4), IndexType(), 5, faiss.IDSelectorRange(0, 3), share=1.0)
    assert selected.sel is not None


def test_lists_are_made_anew_when_there_should_be_twice_as_many():
    vectors, kind = rows(1950), IndexType("ivf")
    index = shaped(build(kind, np.arange(1000), vectors[:1000]), kind)
    add(index, np.arange(1000, 1949), vectors[1000:1949])
    assert shaped(index, kind) is index and inner(index).nlist == 25
    add(index, np.array([1949]), vectors[1949:])
    again = shaped(index, kind)
    assert inner(again).nlist == 50 and again.ntotal == 1950 and np.array_equal(keys_of(again), np.arange(1950))
    flat = shaped(again, IndexType())
    assert name_of(flat) == "flat" and np.array_equal(vectors_of(flat, np.arange(1950)), vectors)


def test_threads_are_as_they_were_when_a_graph_was_built():
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(3)
        build(IndexType("hnsw"), np.arange(20), rows(20))
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


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
    raw = RawVectors(rows_path(path), 4)
    assert (len(raw), raw.keys.tolist(), raw.vectors().shape, raw.index().ntotal) == (0, [], (0, 4), 0)
    raw.add(np.arange(2), vectors[:2])
    with rows_path(path).open("ab") as file:
        file.write(b"half a row")
    raw.add(np.arange(2, 4), vectors[2:4])
    assert np.array_equal(raw.vectors(), vectors[:4]) and raw.keys.tolist() == [0, 1, 2, 3]
    raw.add(np.arange(4, 6), vectors[4:])
    with rows_path(path).open("ab") as file:
        file.write(b"half a row")
    raw.write(tmp_path / "written")
    faiss.write_index(raw.index(), str(tmp_path / "own"))
    assert (tmp_path / "written").read_bytes() == (tmp_path / "own").read_bytes()
    raw.remove()
    raw.remove()
    assert not rows_path(path).exists() and len(raw) == 0 and raw.keys.tolist() == []


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


@pytest.mark.parametrize("kind", ["flat", "pq", "ivf,nlist=4", "hnsw"])
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
        if kind in ("flat", "pq"):
            assert (keys >= 0).sum() == len(queries) * min(k, 1050)
            assert keys[0, 0] == int(np.argmax(vectors[:1050] @ vectors[0]))
    assert store.search(vectors[:1], 3, within=np.arange(1048, 1100))[1][0, 2] == -1
    assert (store.search(vectors[1050:1060], 20)[1] >= 0).all(), "removed ones take no place"
    assert 0 in store.search(vectors[:2], 50)[1][0]


@pytest.mark.parametrize(("within", "share"), [(None, 1.0), (range(550), 0.5), (range(2200), 1.0)])
def test_a_search_is_as_much_wider_as_fewer_rows_count(tmp_path, monkeypatch, within, share):
    store = FaissStore(tmp_path / "a.faiss", 4, IndexType.parse("ivf,nlist=4"))
    store.add(np.arange(1100), rows(1100))
    store.save()
    told, usual = [], stores.kinds.parameters
    monkeypatch.setattr(stores, "_FEW", 0)
    monkeypatch.setattr(stores.kinds, "parameters", lambda *given, **how: told.append(how) or usual(*given, **how))
    assert store.search(rows(2), 3, within=within)[1].shape == (2, 3) and told == [{"share": share}]
