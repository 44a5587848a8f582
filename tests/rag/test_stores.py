"""The properties of a store: it finds the nearest rows, filtered or not; no removed ones; and the same after opening.

Those of Milvus are in test_milvus.py, and are the same.
"""

from __future__ import annotations

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stores import make_mixture
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.index_kinds import IndexType, add, keys_of, make_empty, name_of
from exhibit.rag.stores import faiss as module
from exhibit.rag.stores import rank_keys
from exhibit.rag.stores.faiss import FaissStore, open
from exhibit.schemas.errors import BundleError, ToolkitError

KINDS = ("flat", "fp16", "pq")


def unit(rows: int, seed: int, width: int = 8) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]))


def nearest(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :k]


@pytest.fixture
def store(tmp_path) -> FaissStore:
    return open(tmp_path, None, name="chunk", dimensions=8)


@pytest.fixture(scope="module")
def cloud() -> np.ndarray:
    return make_mixture(3000, 32, 1)


@pytest.fixture(params=KINDS)
def built(request, tmp_path, cloud) -> FaissStore:
    """A saved store of each index type with 3,000 rows."""
    store = open(tmp_path, request.param, name="chunk", dimensions=32)
    store.add(range(3000), cloud)
    store.save()
    assert name_of(store._index) == request.param.partition(",")[0]
    return store


# ---------------------------------------------------------------- exact


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 9), st.booleans())
def test_search_is_a_sort_of_all_products(tmp_path_factory, rows, k, seed, filtered):
    store = FaissStore(tmp_path_factory.mktemp("store") / "x.faiss", 8)
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
        assert (found[row][len(expected) :] == -1).all() and np.isneginf(scores[row][len(expected) :]).all()
        assert np.allclose(scores[row][: len(expected)], np.sort(products)[::-1][:k], atol=1e-6)


def test_a_selector_finds_the_same_as_comparing_by_hand(store, monkeypatch):
    store.add(range(500), unit(500, 1))
    query, within = unit(2, 2), np.arange(0, 500, 3)
    by_hand = store.search(query, 20, within=within)
    monkeypatch.setattr(module, "_FEW", 10)
    by_selector = store.search(query, 20, within=within)
    assert by_hand[1].tolist() == by_selector[1].tolist()


def test_equals_come_in_the_order_of_their_keys(store):
    store.add([9, 4, 7, 1], np.repeat(unit(1, 1), 4, axis=0))
    assert store.search(unit(1, 1), 5)[1].tolist() == [[1, 4, 7, 9, -1]]
    assert store.search(unit(1, 1), 5, within=[9, 1, 9, 4])[1].tolist() == [[1, 4, 9, -1, -1]]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 12))
def test_ranking_is_a_sort_by_score_then_key(values, k):
    scores = np.array([values], dtype=np.float32)
    keys = np.random.default_rng(k).permutation(len(values))[None].astype(np.int64)
    expected = sorted(zip(scores[0].tolist(), keys[0].tolist(), strict=True), key=lambda pair: (-pair[0], pair[1]))[:k]
    best, best_keys = rank_keys(scores, keys, k)
    assert list(zip(best[0].tolist(), best_keys[0].tolist(), strict=True))[: len(expected)] == expected
    assert (best_keys[0][len(expected) :] == -1).all()


def test_nothing_in_nothing_out(store):
    scores, keys = store.search(unit(2, 5), 3)
    assert keys.tolist() == [[-1] * 3] * 2 and np.isneginf(scores).all()
    assert store.search(unit(1, 5), 3, within=[])[1].tolist() == [[-1] * 3]


def test_what_is_no_vector_is_refused(store):
    broken = unit(2, 6)
    broken[1, 3] = np.nan
    with pytest.raises(BundleError, match="NaN or infinity"):
        store.add([1, 2], broken)
    with pytest.raises(BundleError, match=r"expected \(3, "):
        store.add([1, 2, 3], unit(2, 6))
    assert len(store) == 0


# ---------------------------------------------------------------- every kind


def test_every_kind_finds_nearly_all_that_is_nearest(built, cloud):
    queries = make_mixture(50, 32, 2)
    scores, found = built.search(queries, 20)
    assert recall(found, nearest(cloud, queries, 20)) > 0.95
    assert np.allclose(scores, np.take_along_axis(queries @ cloud.T, found, axis=1), atol=2e-3)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("few", [0, 4096], ids=["selector", "by hand"])
def test_every_kind_searches_within_keys(built, cloud, few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    queries, within = make_mixture(20, 32, 3), np.arange(400, 1000)
    found = built.search(queries, 20, within=within)[1]
    assert np.isin(found, within).all()
    assert recall(found, within[nearest(cloud[within], queries, 20)]) > 0.95


def test_every_kind_removes_rows_for_good(built, cloud):
    gone = np.arange(100, 160)
    built.remove([*gone, 99_999])
    for again in (built, _saved(built)):
        assert len(again) == 2940
        assert not np.isin(again.search(cloud[gone], 50)[1], gone).any()
        assert not np.isin(again.search(cloud[gone], 50, within=np.arange(90, 200))[1], gone).any()
        assert (again.search(cloud[200:250], 1)[1][:, 0] == np.arange(200, 250)).mean() > 0.95


def test_every_kind_gives_its_rows_back(built, cloud):
    built.remove([41])
    rows = built.vectors([977, 41, 3, 99_999])
    assert rows.dtype == np.float32 and np.allclose(rows, cloud[[977, 3]], atol=2e-3)
    assert built.vectors([]).shape == (0, 32)


def test_every_kind_takes_more_rows_later(built, cloud):
    more = make_mixture(500, 32, 9)
    built.remove([7])
    built.add([7, *range(5000, 5499)], more)  # a key that was removed may come again
    for again in (built, _saved(built)):
        assert len(again) == 3499
        assert (again.search(more[1:], 1)[1][:, 0] == np.arange(5000, 5499)).mean() > 0.95
        assert again.search(more[:1], 1, within=[7, 8])[1].tolist() == [[7]]


def test_every_kind_keeps_what_it_is_told_to(built):
    built.keep(np.arange(2900, 3100))
    assert len(built) == 100


def test_every_kind_is_the_same_each_time(built, cloud, tmp_path):
    built.save()
    first = built.path.read_bytes()
    again = FaissStore(tmp_path / "again.faiss", 32, built._kind)
    again.add(range(3000), cloud)
    again.save()
    assert again.path.read_bytes() == first


def test_a_large_file_is_mapped_and_can_still_be_changed(built, cloud, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 1)
    mapped = FaissStore(built.path, 32, built._kind)
    assert mapped._mapped
    assert mapped.search(cloud[:20], 5)[1].tolist() == built.search(cloud[:20], 5)[1].tolist()
    mapped.add([9000], make_mixture(1, 32, 7))
    mapped.remove([0])
    mapped.save()
    assert len(FaissStore(built.path, 32, built._kind)) == 3000
    other = FaissStore(built.path, 32, built._kind)
    other.remove([1])
    other.save()
    assert len(FaissStore(built.path, 32, built._kind)) == 2999 and 1 not in other.search(cloud[1:2], 9)[1]


def test_a_type_that_cannot_remove_rows_is_built_anew_when_it_is_saved(tmp_path, cloud):
    store = open(tmp_path, "pq", name="chunk", dimensions=32)
    store.add(range(3000), cloud)
    store.save()
    store.remove(range(600))
    assert store._index.ntotal == 3000 and len(store) == 2400
    store.save()
    assert store._index.ntotal == len(store) == 2400 and (keys_of(store._index) >= 0).all()


@pytest.mark.parametrize("kind", ["flat", "fp16"])
def test_a_single_query_is_shared_out_by_rows_and_finds_the_same(tmp_path, cloud, kind, monkeypatch):
    store = open(tmp_path, kind, name="chunk", dimensions=32)
    store.add(np.arange(3000)[::-1], cloud)
    store.save()
    queries = make_mixture(20, 32, 2)
    together = store.search(queries, 300)[1]
    monkeypatch.setattr(module.kinds, "_PART", 700)
    monkeypatch.setattr(module.kinds.os, "cpu_count", lambda: 8)
    threads = []
    searched = module.kinds._search_selected
    monkeypatch.setattr(module.kinds, "_search_selected", lambda *given: threads.append(1) or searched(*given))
    singly = [store.search(query[None], 300)[1][0] for query in queries]
    assert len(threads) == 4 * len(queries)
    assert recall(np.array(singly), together) > 0.999  # rounding may swap two at the edge
    assert (np.array(singly) == together).mean() > 0.99


def test_sketches_choose_what_is_compared_exactly(tmp_path, cloud):
    found = {}
    for refine in (20, 3000):
        store = open(tmp_path / str(refine), f"pq,refine={refine}", name="chunk", dimensions=32)
        store.add(range(3000), cloud)
        store.save()
        found[refine] = store.search(make_mixture(50, 32, 2), 2)[1]
    exact = nearest(cloud, make_mixture(50, 32, 2), 2)
    assert recall(found[20], exact) < recall(found[3000], exact) == 1.0


def test_a_width_that_is_odd_can_be_sketched(tmp_path):
    vectors = unit(1200, 3, width=9)
    store = open(tmp_path, "pq", name="chunk", dimensions=9)
    store.add(range(1200), vectors)
    store.save()
    assert recall(store.search(vectors[:30], 5)[1], nearest(vectors, vectors[:30], 5)) == 1.0


def test_few_rows_are_compared_one_by_one_whatever_the_type(tmp_path, cloud):
    store = open(tmp_path, "pq", name="chunk", dimensions=32)
    store.add(range(999), cloud[:999])
    store.save()
    assert name_of(store._index) == "flat"
    store.add([999], cloud[999:1000])
    store.save()
    assert name_of(store._index) == "pq"


def test_an_index_type_that_is_not_there_is_refused(tmp_path):
    for argument, words in (
        ("lsh", "there are flat, fp16, pq"),
        ("pq,M=3", "pq takes refine=NUMBER"),
        ("pq,refine=many", "'refine=many' is no option"),
        ("flat,x=1", "flat takes no options"),
    ):
        with pytest.raises(ToolkitError, match=words):
            open(tmp_path, argument, name="chunk", dimensions=8)


def _saved(store: FaissStore) -> FaissStore:
    store.save()
    return FaissStore(store.path, store.dimensions, store._kind)


# ---------------------------------------------------------------- on disk


def test_save_and_open(store, tmp_path):
    store.add([10, 20], unit(2, 4))
    store.save()
    again = open(tmp_path, None, name="chunk", dimensions=8)
    assert len(again) == 2 and again.search(unit(2, 4)[1:], 1)[1][0][0] == 20
    with pytest.raises(BundleError, match="built for vectors of 8 numbers, not 9"):
        open(tmp_path, None, name="chunk", dimensions=9)


@pytest.mark.parametrize("large", [1, 1 << 30], ids=["mapped", "read"])
def test_a_damaged_file_is_told(store, tmp_path, large, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", large)
    store.add(range(100), unit(100, 4))
    store.save()
    whole = (tmp_path / "chunk.faiss").read_bytes()
    for damaged in (b"garbage", whole[: len(whole) // 2]):
        (tmp_path / "chunk.faiss").write_bytes(damaged)
        with pytest.raises(BundleError, match="damaged; delete the index"):
            open(tmp_path, None, name="chunk", dimensions=8)


def test_an_index_of_another_type_retrieves_the_same(tmp_path, samples):
    found = {}
    for kind in ("faiss", "faiss:pq"):
        config = Config.preset("sac", store=kind, chunk_size=80)
        pipeline = Pipeline(config, cache=tmp_path / "cache", jobs=1, embedder=Hashing(128))
        report = pipeline.index(samples / "cuad" / "CUAD_v1" / "full_contract_txt", tmp_path / kind.replace(":", "-"))
        assert report.chunks > 1000, "fewer stay flat"
        [found[kind]] = pipeline.search(["Which law governs the distributor agreement?"])
    one, two = ([(hit.chunk.document, hit.chunk.span) for hit in found[kind].ranked] for kind in found)
    assert len(set(one) & set(two)) >= 0.9 * len(one) > 0


# ---------------------------------------------------------------- built from none


@pytest.mark.parametrize("rows", [0, 1, 1500])
def test_what_is_streamed_is_the_file_that_faiss_writes(store, tmp_path, rows):
    vectors, keys = unit(1500, seed=3), np.arange(1500, dtype=np.int64)[::-1] * 3
    index = make_empty(8)
    for part in (slice(0, min(rows, 700)), slice(min(rows, 700), rows)):
        store.add(keys[part], vectors[part])
        add(index, keys[part].copy(), vectors[part])
    store.save()
    faiss.write_index(index, str(tmp_path / "own"))
    assert store.path.read_bytes() == (tmp_path / "own").read_bytes()
    assert len(store) == rows


def test_vectors_wait_on_disk_until_the_index_is_saved(store):
    vectors, raw = unit(20, seed=4), store.path.with_name(store.path.name + ".rows")
    store.add(range(10), vectors[:10])
    store.add(range(10, 20), vectors[10:])
    assert raw.stat().st_size == vectors.nbytes and store._opened is None and len(store) == 20
    store.keep(np.arange(30))
    assert store._opened is None  # nothing was to be removed
    store.save()
    assert not raw.exists() and store._opened is None and len(store) == 20
    assert store.search(vectors[7:8], 1)[1].tolist() == [[7]]


@pytest.mark.parametrize("asked", ["search", "remove", "keep"])
def test_what_is_asked_before_saving_is_answered(store, asked):
    vectors = unit(20, seed=5)
    store.add(range(20), vectors)
    if asked == "remove":
        store.remove([3])
    elif asked == "keep":
        store.keep(np.setdiff1d(np.arange(20), [3]))
    nearest = store.search(vectors[3:4], 1)[1].item()
    assert (nearest == 3) == (asked == "search") and not list(store.path.parent.glob("*.rows"))


def test_what_was_never_saved_goes_and_what_a_stopped_run_left_does_not_count(store):
    raw = store.path.with_name(store.path.name + ".rows")
    raw.write_bytes(b"left by a run that was stopped")
    store.add([1], unit(1, seed=6))
    assert raw.stat().st_size == 4 * 8
    store.close()
    assert not list(raw.parent.iterdir())


@pytest.mark.parametrize(("kind", "k", "factor"), [("pq", 64, 32.0), ("pq", 512, 8.0), ("pq,refine=100", 5, 20.0)])
def test_an_inexact_index_is_searched_as_wide_as_it_is_told(cloud, kind, k, factor):
    index = module.kinds.build(IndexType.parse(kind), np.arange(1000), cloud[:1000])
    assert module.kinds.make_parameters(index, IndexType.parse(kind), k, None).k_factor == factor
    assert module.kinds.make_parameters(make_empty(8), IndexType(), 5, None) is None


@pytest.mark.parametrize("kind", ["flat", "pq"])
def test_a_store_knows_its_rows_whatever_was_removed(tmp_path, cloud, kind):
    store = open(tmp_path, kind, name="chunk", dimensions=32)
    store.add(range(1200), cloud[:1200])
    assert len(store) == 1200 and not store.path.is_file()
    store.save()
    assert len(store) == 1200, "before its file is opened again"
    store.remove([0, 5, 99_999])
    store.remove([])
    store.add([], cloud[:0])
    assert len(store) == 1198 and store.vectors([5, 6, -1, 0]).shape == (1, 32)
    assert store.search(cloud[5:6], 1)[1][0, 0] != 5 and store.search(cloud[6:7], 1)[1][0, 0] == 6
    store.save()
    again = open(tmp_path, kind, name="chunk", dimensions=32)
    assert len(again) == 1198 and 0 not in again.search(cloud[:1], 20)[1]
    again.keep(np.arange(6, 106))
    assert len(again) == 100
    again.save()
    assert len(again) == 100 and set(again.search(cloud[:1], 200)[1][0].tolist()) == {-1, *range(6, 106)}
    with pytest.raises(BundleError, match="built for vectors of 32 numbers, not 31"):
        open(tmp_path, kind, name="chunk", dimensions=31)


def test_rows_are_asked_for_in_any_order_and_twice(store):
    vectors = unit(6, 1)
    store.add([3, 1, 2, 9, 5, 7], vectors)
    assert np.array_equal(store.vectors([9, 3, 3, 4]), vectors[[3, 0, 0]])
    scores, keys = store.search(vectors[:2], 4, within=[9, 3, 3, 4, -1])
    assert sorted(keys[0].tolist()) == [-1, -1, 3, 9] and scores[0, 0] == pytest.approx(1.0)
    assert FaissStore.of_rows(np.arange(0), vectors[:0]).vectors([1, 2]).shape == (0, 8)
    plain = FaissStore.of_rows(np.arange(6), vectors)
    assert np.array_equal(plain.vectors([0, 5]), vectors[[0, 5]]) and plain.vectors([5, 6]).shape == (1, 8)
    assert plain.vectors([0, 2, 4]).tolist() == vectors[[0, 2, 4]].tolist() and plain.vectors([-1, 0]).shape == (1, 8)
    assert plain.search(vectors[:0], 3)[1].shape == (0, 3)
    assert plain.search(vectors[:1], 4, within=[0, 0, 2])[1].tolist() in ([[0, 2, -1, -1]], [[2, 0, -1, -1]])
    assert plain.vectors([0, 2, 1, 3]).tolist() == vectors[[0, 2, 1, 3]].tolist()
    assert plain.vectors([2, 3, 4]).tolist() == vectors[2:5].tolist()
