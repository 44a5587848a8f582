"""Milvus: addresses, tokens, and the same results as FAISS, in a local file."""

import json

import numpy as np
import pytest

from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.stores import faiss, milvus
from exhibit.schemas.errors import BundleError, ServiceError, ToolkitError

pytestmark = pytest.mark.extra


@pytest.mark.parametrize(
    ("argument", "uri", "kind"),
    [
        (None, "/x/milvus.db", "FLAT"),
        ("lite?index=hnsw", "/x/milvus.db", "HNSW"),
        ("/data/a.db", "/data/a.db", "FLAT"),
        ("http://host:19530/db?index=AUTOINDEX", "http://host:19530/db", "AUTOINDEX"),
    ],
)
def test_milvus_parse_returns_uri_and_index_type_or_an_error_that_hides_the_password(monkeypatch, argument, uri, kind):
    monkeypatch.setenv("EXHIBIT_CACHE", "/x")
    assert milvus._parse(argument) == (uri, kind)
    for wrong in ("http://root:secret@host", "somewhere", "lite?index=PQ"):
        with pytest.raises(ToolkitError, match=r"^(?!.*secret)"):
            milvus._parse(wrong)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def vectors() -> np.ndarray:
    rows = np.random.default_rng(1).normal(size=(200, 16)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_milvus_search_returns_same_results_as_faiss(tmp_path, vectors, monkeypatch):
    monkeypatch.setattr(milvus, "_MAX_KEYS", 2)  # so that one search needs several messages
    stores = [module.open(tmp_path, None, name="chunk", dimensions=16) for module in (milvus, faiss)]
    for store in stores:
        store.add(np.arange(200), vectors)
        store.remove([7, 8])
    for within in (None, [1, 2, 3, 50, 199], np.arange(40, 90)):
        (scores, keys), (exact, wanted) = (store.search(vectors[:3], 4, within=within) for store in stores)
        assert keys.tolist() == wanted.tolist() and scores == pytest.approx(exact, abs=1e-4)
    assert stores[0].vectors([5, 7, 6]) == pytest.approx(vectors[[5, 6]], abs=1e-6)
    stores[0].close()


def test_milvus_ignores_and_replaces_rows_of_a_stopped_run(tmp_path, vectors):
    store = milvus.open(tmp_path, None, name="chunk", dimensions=16)
    store.add(np.arange(5), vectors[:5])
    store.save(np.arange(5))
    store.add(np.arange(5, 9), vectors[5:9])  # the process is killed before it saves
    store.close()
    again = milvus.open(tmp_path, None, name="chunk", dimensions=16)
    assert len(again) == 5 and again.search(vectors[6:7], 9)[1].max() == 4
    again.add([5], vectors[100:101])
    again.save(np.arange(6))
    assert len(again) == 6 and again.search(vectors[100:101], 1)[1].tolist() == [[5]]
    assert not len(again.vectors([6, 7, 8]))
    again.close()


def test_milvus_index_ranks_like_faiss_after_rebuild_removal_and_addition(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name, law in (("alder", "Norway"), ("birch", "Ohio")):
        clauses = "".join(f"1.{n} Clause {n}. Notice of {n} days under the law of {law}.\n\n" for n in range(1, 9))
        (corpus / f"{name}.txt").write_text(f"SUPPLY AGREEMENT of {name}\n\n{clauses}", encoding="utf-8")
    found = []
    for store in ("milvus:lite", "faiss"):
        config = Config.preset("sac-multilayer", store=store, chunk_size=120, embedder="hashing:64")
        pipeline = Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=Hashing(64))
        for _ in range(2):
            pipeline.index(corpus, tmp_path / store.partition(":")[0], force=True)
        pipeline.remove("alder.txt")
        pipeline.add(corpus / "alder.txt")
        ranked = pipeline.search(["notice of 3 days under the law of Ohio"])[0].ranked
        found.append([(hit.document, hit.span, round(hit.score, 3)) for hit in ranked])
        pipeline.opened.close()
    assert found[0] == found[1] and found[0]


def test_milvus_refuses_foreign_collection_and_hides_token_in_connection_error(tmp_path, monkeypatch):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "milvus.json").write_text(json.dumps({"name": "all_of_yours", "store": "http://a:1"}))
    with pytest.raises(BundleError, match="damaged"):
        milvus.drop(tmp_path)
    monkeypatch.setenv("MILVUS_TOKEN", "root:secret")
    monkeypatch.setattr(milvus, "_CONNECT_SECONDS", 0.3)
    with pytest.raises(ServiceError) as error:
        milvus._connect("http://127.0.0.1:9")
    assert "secret" not in str(error.value) and "is the server running" in str(error.value)
