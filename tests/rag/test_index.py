"""Indexes and stores: exact search, changes on disk, damage, and settings without effect."""

import json
from pathlib import Path

import numpy as np
import pytest

from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.config import list_presets
from exhibit.rag.index import MANIFEST, open_index
from exhibit.rag.stores import faiss
from exhibit.schemas.errors import BundleError, ToolkitError

CONTRACT = "SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {party} and Dune plc.\n\n" + "".join(
    f"1.{n} Clause {n}. {{party}} shall give {n} days' notice under the law of {{law}}.\n\n" for n in range(1, 9)
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for name, party, law in (("alder", "Alder Ltd", "Norway"), ("birch", "Birch Inc.", "Ohio")):
        (folder / f"{name}.txt").write_text(CONTRACT.format(party=party, law=law), encoding="utf-8")
    return folder


def make_pipeline(tmp_path: Path, preset: str = "routed", **settings) -> Pipeline:
    config = Config.preset(preset, embedder="hashing:64", answerer="extractive", chunk_size=120, **settings)
    return Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=Hashing(64))


@pytest.fixture
def vectors() -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("queries", [1, 9])
@pytest.mark.parametrize("within", [None, [4, 5, 6, 7], [3, 50, 299, 7], []])
def test_faiss_search_is_exact(tmp_path, vectors, queries, within):
    store = faiss.open(tmp_path, None, name="chunk", dimensions=16)
    store.add(np.arange(300), vectors)
    scores, keys = store.search(vectors[:queries], 5, within=within)
    allowed = np.arange(300) if within is None else np.array(sorted(within), np.int64)
    for row in range(queries):
        exact = vectors[allowed] @ vectors[row] if len(allowed) else np.zeros(0)
        order = np.lexsort((allowed, -exact))[:5]
        assert keys[row].tolist() == [*allowed[order].tolist(), *[-1] * (5 - len(order))]
        assert scores[row, : len(order)] == pytest.approx(exact[order], abs=1e-5)


def test_faiss_search_orders_equal_scores_by_key(tmp_path):
    store = faiss.open(tmp_path, None, name="chunk", dimensions=4)
    store.add(np.arange(40), np.zeros((40, 4), np.float32))
    assert store.search(np.ones((1, 4), np.float32), 3)[1].tolist() == [[0, 1, 2]]


def test_faiss_store_loads_only_remaining_rows_and_rejects_unsuitable_or_damaged_file(tmp_path, vectors):
    store = faiss.open(tmp_path, None, name="chunk", dimensions=16)
    store.add([2, 5, 9], vectors[:3])
    store.remove([5, 77])
    store.save(np.array([2, 9]))
    again = faiss.open(tmp_path, None, name="chunk", dimensions=16)
    assert len(again) == 2 and np.array_equal(again.vectors([9, 5, 2]), vectors[[2, 0]])
    with pytest.raises(BundleError, match="8 numbers"):
        faiss.open(tmp_path, None, name="chunk", dimensions=8)
    (tmp_path / "chunk.faiss").write_bytes(b"IxM2 and nothing")
    with pytest.raises(BundleError, match="damaged"):
        faiss.open(tmp_path, None, name="chunk", dimensions=16)


def test_faiss_refuses_unknown_index_type(tmp_path):
    with pytest.raises(ToolkitError, match="faiss:pq"):
        faiss.open(tmp_path, "pq", name="chunk", dimensions=16)


@pytest.mark.parametrize("preset", ["routed", "seed", "bm25"])
def test_pipeline_adds_and_removes_documents_without_rebuilding_index(tmp_path, corpus, preset):
    pipeline, whole = make_pipeline(tmp_path, preset), make_pipeline(tmp_path, preset)
    whole.index(corpus, tmp_path / "whole")
    pipeline.index(corpus / "alder.txt", tmp_path / "index")
    pipeline.add(corpus / "birch.txt")
    question = "Consider the Supply Agreement of Birch Inc.; how many days' notice under clause 3?"
    both = make_pipeline(tmp_path, preset).open(tmp_path / "index")
    assert "birch.txt" in {hit.document for hit in both.search([question])[0].ranked}
    for asked in (question, "Which law governs the Birch agreement?", "How many days' notice?"):
        ranked = [each.search([asked])[0].ranked for each in (both, whole)]
        first, second = ([(hit.document, hit.span, round(hit.score, 4)) for hit in hits] for hits in ranked)
        assert first == second, "the order must not depend on the time of addition"
    both.remove("birch.txt")
    alone = make_pipeline(tmp_path, preset).open(tmp_path / "index")
    assert {hit.document for hit in alone.search([question])[0].ranked} == {"alder.txt"}
    assert alone.text("birch.txt") is None and alone.chunk_spans("birch.txt") == []
    with pytest.raises(BundleError, match=r"no document 'birch\.txt'"):
        alone.remove("birch.txt")


def test_chunks_tile_the_document(tmp_path, corpus):
    pipeline = make_pipeline(tmp_path)
    pipeline.index(corpus, tmp_path / "index")
    text, spans = pipeline.text("alder.txt"), pipeline.chunk_spans("alder.txt")
    assert text is not None and "".join(text[slice(*span)] for span in spans) == text
    index = open_index(tmp_path / "index", pipeline.config)
    for hit in pipeline.search(["Which law governs?"])[0].ranked:
        assert hit.text == index.text_of(index.entry(hit.document).number)[slice(*hit.span)]


def test_index_adds_folder_to_names_of_files_with_the_same_name(tmp_path):
    for year in ("2019", "2020"):
        (tmp_path / "in" / year).mkdir(parents=True)
        (tmp_path / "in" / year / "lease.txt").write_text(f"LEASE of {year}. The rent is paid monthly.")
    pipeline = make_pipeline(tmp_path)
    pipeline.index(tmp_path / "in", tmp_path / "index")
    assert [entry.filename for entry in pipeline.opened.documents] == ["2019/lease.txt", "2020/lease.txt"]


def test_interrupted_add_leaves_index_unchanged(tmp_path, corpus, monkeypatch):
    pipeline = make_pipeline(tmp_path)
    pipeline.index(corpus / "alder.txt", tmp_path / "index")
    before = [(hit.document, hit.span) for hit in pipeline.search(["Which law?"])[0].ranked]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(faiss.FaissStore, "add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        pipeline.add(corpus / "birch.txt")
    assert [(hit.document, hit.span) for hit in pipeline.search(["Which law?"])[0].ranked] == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / MANIFEST).unlink(), "no index here"),
        (lambda f: (f / MANIFEST).write_text("{"), "damaged"),
        (lambda f: (f / MANIFEST).write_text('{"format": "exhibit-index/1"}'), "not an index of this version"),
        (lambda f: (f / "index.sqlite").unlink(), "index.sqlite is missing or damaged"),
    ],
)
def test_open_index_reports_missing_or_damaged_files(tmp_path, corpus, damage, message):
    make_pipeline(tmp_path).index(corpus, tmp_path / "index")
    damage(tmp_path / "index")
    with pytest.raises(BundleError, match=message):
        open_index(tmp_path / "index")


def test_open_index_refuses_database_with_a_trigger_even_if_the_checksum_matches(tmp_path, corpus):
    import sqlite3

    from exhibit.storage.bundle import sha256_of

    make_pipeline(tmp_path).index(corpus, tmp_path / "index")
    path = tmp_path / "index" / "index.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON texts BEGIN SELECT 1; END")
    manifest = json.loads((tmp_path / "index" / MANIFEST).read_text())
    manifest["sha256"]["index.sqlite"] = sha256_of(path)
    (tmp_path / "index" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="tables are not those of an index"):
        open_index(tmp_path / "index", overrides={"embedder": "hashing:64"})


def test_open_refuses_index_built_with_other_settings_or_embedder(tmp_path, corpus):
    make_pipeline(tmp_path).index(corpus, tmp_path / "index")
    with pytest.raises(BundleError, match="chunk_size"):
        open_index(tmp_path / "index", Config(chunk_size=300, embedder="hashing:64", answerer="extractive"))
    other = Pipeline(make_pipeline(tmp_path).config, cache=tmp_path / "cache", embedder=Hashing(32))
    with pytest.raises(BundleError, match="built with the embedder hashing-64"):
        other.open(tmp_path / "index")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"document_limit": 2}, "document_limit.* have an effect only with method = dense"),
        ({"layer_documents": 4}, "need layers = all"),
        ({"layers": "all", "layer_sections": 4}, "have an effect only with method = dense"),
        ({"rerank": 16}, "rerank has an effect only with a reranker"),
        ({"method": "bm25", "document_limit": 2}, "have an effect only with method = dense"),
        ({"summary_llm": "openai:m"}, "summary_llm has an effect only with summaries = llm"),
        ({"filenames": False}, "filenames"),
        ({"lexicon": False}, "needs an index with a lexicon"),
        ({"min_chunks": 3}, "min_chunks has an effect only with a threshold"),
        ({"ocr_language": "de"}, "have an effect only with ocr = true"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"hyde_weight": 0.5}, "hyde_weight"),
    ],
)
def test_config_rejects_settings_that_are_invalid_or_have_no_effect(settings, message):
    with pytest.raises(ToolkitError, match=message):
        Config.parse(settings)


def test_presets_have_expected_names_and_seed_values():
    assert list_presets() == "bm25 careful naive rcts routed sac sac-multilayer seed tfidf".split()
    assert Config.preset("routed") == Config()
    seed = Config.preset("seed")
    assert (seed.k, seed.document_limit, seed.threshold, seed.budget_tokens, seed.top_p) == (6, 2, 0.25, 2500, 0.95)
    assert (seed.summary_temperature, seed.summary_tokens, seed.summary_input_characters) == (0.3, 50, 5000)
    assert (seed.augment, seed.layers) == ("summary", "all") and seed.layer_documents and seed.layer_sections
    assert (seed.splitter, seed.chunk_size, seed.overlap, seed.min_chunks) == ("sections:sentences", 500, 0, 7)
    assert (seed.method, seed.reranker) == ("dense", "none")
    assert (seed.temperature, seed.max_tokens) == (0.1, 1000)
    for name, message in (("routd", "did you mean routed"), ("none-such", f"one of {', '.join(list_presets())}")):
        with pytest.raises(ToolkitError, match=message):
            Config.preset(name)


def test_preset_is_read_from_a_toml_file(tmp_path):
    (tmp_path / "mine.toml").write_text('splitter = "naive"\nchunk_size = 300\n')
    assert Config.preset(str(tmp_path / "mine.toml"), k=3).model_dump()["chunk_size"] == 300
    (tmp_path / "bad.toml").write_text('colour = "red"\nchunk_size = 0\n')
    with pytest.raises(ToolkitError, match="colour: .*; settings are ocr, ocr_language"):
        Config.preset(str(tmp_path / "bad.toml"))
