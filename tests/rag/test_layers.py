"""Layers that are searched from the top, baselines by words alone, and a separate model for summaries."""

from __future__ import annotations

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from exhibit.evidence import Span
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from exhibit.rag import Config, Pipeline
from exhibit.rag import pipeline as module
from exhibit.rag.config import Weights
from exhibit.rag.lexicon.bm25 import Words
from exhibit.rag.protocols import Chunk, Hit, make_section_key
from exhibit.rag.retrieval.passages import Library, score_rows
from exhibit.rag.retrieval.stages import keep_near_best
from exhibit.rag.stores.faiss import FaissStore
from exhibit.schemas.errors import ToolkitError

LEASE = "{name} LEASE\n\nThis Lease is made between {name} Ltd and Dune plc.\n\n"
CLAUSES = {
    "Rent": "The tenant pays the rent of {name} on the first day of each month.",
    "Repairs": "The landlord repairs the roof of {name} within thirty days of notice.",
    "Term": "The lease of {name} ends after five years unless it is renewed.",
}
QUESTION = "Who repairs the roof of Birch?"


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("Alder", "Birch", "Cedar"):
        body = "".join(f"{n}. {title}\n\n{text}\n\n" for n, (title, text) in enumerate(CLAUSES.items(), 1))
        (folder / f"{name.lower()}.txt").write_text((LEASE + body).format(name=name), encoding="utf-8")
    return folder


def built(corpus: Path, tmp_path: Path, preset: str, **settings) -> Pipeline:
    config = Config.preset(preset, embedder="hashing", chunk_size=120, **settings)
    pipeline = Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=Hashing(256))
    pipeline.index(corpus, tmp_path / "index", force=True)
    return pipeline


def test_chunks_come_from_the_nearest_sections_of_the_nearest_documents(corpus, tmp_path):
    pipeline = built(corpus, tmp_path, "seed", document_limit=0, layer_documents=1, layer_sections=1)
    [found] = pipeline.search([QUESTION])
    assert found.trace["documents layer"] == ["birch.txt"]
    assert {hit.chunk.document for hit in found.ranked} == {"birch.txt"}
    assert {hit.chunk.section for hit in found.ranked} == {found.ranked[0].chunk.section}
    [wider] = built(
        corpus, tmp_path, "seed", document_limit=0, layer_documents=2, layer_sections=0
    ).search([QUESTION])  # fmt: skip
    assert len({hit.chunk.document for hit in wider.ranked}) == 2 and len(wider.ranked) > len(found.ranked)
    filtered = built(corpus, tmp_path, "seed", document_limit=1, layer_documents=2, layer_sections=3)
    [few] = filtered.search([QUESTION])
    assert {hit.chunk.document for hit in few.ranked} == {"birch.txt"}
    assert len({hit.chunk.section for hit in few.ranked}) <= 3
    sections = built(corpus, tmp_path, "seed", document_limit=0, layer_documents=0, layer_sections=2)
    assert len({(hit.chunk.document, hit.chunk.section) for hit in sections.search([QUESTION])[0].ranked}) <= 2


def test_layers_that_are_not_there_cannot_be_searched():
    for settings in ({"layer_documents": 3}, {"layer_sections": 3}, {"weight_summary": 0.5}, {"weight_gist": 0.5}):
        with pytest.raises(ToolkitError, match="set layers to all as well"):
            Config.preset("routed", **settings)


def test_the_likeness_of_summaries_counts_where_any_document_may_answer():
    table = np.array([(key, key // 2, 0, 9, 0, key % 2) for key in range(4)], np.int64)
    words, chunks = Words(), FaissStore.of_rows(np.arange(4), np.ones((4, 2), np.float32))
    words.add(range(4), ["oak"] * 4)
    summaries = FaissStore.of_rows(np.array([0, 1]), np.array([[0, 1], [1, 0]], np.float32))
    gists = FaissStore.of_rows(
        make_section_key(table[:, 1], table[:, 5])[:3], np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    )
    library = Library(table, chunks, words, lambda _: "", summaries=summaries, gists=gists)
    vector, rows, group = np.array([1, 0], np.float32), np.arange(4), np.zeros(1, np.int64)
    weights = Weights(summary=2.0)
    assert score_rows(["oak"], vector, rows, group, library, weights, within=False)["own"].tolist() == [-2, -2, 2, 2]
    assert not score_rows(["oak"], vector, rows, group, library, weights)["own"].any(), "a document was named"
    own = score_rows(["oak"], vector, rows, group, library, Weights(gist=1.0), within=False)["gist"]
    np.testing.assert_allclose(own, [1, 0, 0, 1 / 3], rtol=1e-6)  # a section without a summary is as the others are


@pytest.mark.parametrize("weight", ["weight_gist"])
def test_a_question_that_names_no_document_is_moved_by_the_layers(corpus, tmp_path, weight):
    question = "who repairs the roof?"
    plain = built(corpus, tmp_path, "routed", layers="all").search([question])[0]
    moved = built(corpus, tmp_path, "routed", layers="all", **{weight: 5.0}).search([question])[0]
    assert [hit.score for hit in moved.ranked] != [hit.score for hit in plain.ranked]
    named = "In the Birch lease, who repairs the roof?"
    with_layers = built(corpus, tmp_path, "routed", layers="all", **{weight: 5.0}).search([named])[0]
    assert with_layers.ranked == built(corpus, tmp_path, "routed").search([named])[0].ranked


def test_so_many_passages_are_kept_below_the_threshold():
    hits = [Hit(Chunk("a.txt", Span(n, n + 1)), score) for n, score in enumerate((0.9, 0.8, 0.5, 0.4, 0.3))]
    config = Config.preset("naive", threshold=0.25, min_chunks=4)
    assert [hit.score for hit in keep_near_best(hits, config)] == [0.9, 0.8, 0.5, 0.4]
    assert len(keep_near_best(hits, config.model_copy(update={"min_chunks": 0}))) == 2


def test_the_seed_is_as_it_describes_itself():
    seed = Config.preset("seed")
    assert (seed.k, seed.candidates, seed.document_limit, seed.threshold, seed.budget) == (6, 2, 2, 0.25, 2500)
    assert (seed.document_max, seed.document_mean, seed.top_p, seed.temperature) == (0.6, 0.4, 0.95, 0.1)
    assert (seed.summary_temperature, seed.summary_tokens, seed.summary_shown) == (0.3, 50, 5000)
    assert seed.augment == "summary" and seed.layers == "all" and seed.layer_documents and seed.layer_sections
    assert (seed.splitter, seed.chunk_size, seed.overlap, seed.min_chunks) == ("sections:sentences", 500, 0, 7)
    assert (seed.routing, seed.method, seed.reranker, seed.max_tokens) == (False, "dense", "none", 1000)


@pytest.mark.parametrize("preset", ["bm25", "tfidf"])
def test_baselines_by_words_embed_no_question(corpus, tmp_path, preset, monkeypatch):
    pipeline = built(corpus, tmp_path, preset)
    monkeypatch.setattr(pipeline.embedder, "embed", lambda *_, **__: pytest.fail("asked"))
    [found] = pipeline.search([QUESTION])
    assert found.ranked[0].chunk.document == "birch.txt" and "repairs the roof" in found.ranked[0].text
    assert pipeline.search(["zzz"])[0].ranked == ()


def test_tfidf_is_the_cosine():
    words = Words()
    words.add(range(3), ["oak elm", "oak oak fir", "fir"])
    idf = {
        term: log(1 + (3 - spread + 0.5) / (spread + 0.5)) for term, spread in {"oak": 2, "elm": 1, "fir": 2}.items()
    }
    norms = [sqrt(idf["oak"] ** 2 + idf["elm"] ** 2), sqrt((2 * idf["oak"]) ** 2 + idf["fir"] ** 2)]
    expected = {0: idf["oak"] ** 2 / norms[0], 1: 2 * idf["oak"] ** 2 / norms[1]}
    scores, keys = words.search(["oak"], 5, method="tfidf")
    assert keys.tolist() == sorted(expected, key=lambda key: -expected[key])
    np.testing.assert_allclose(scores, [expected[key] for key in keys.tolist()], rtol=1e-5)


def test_summaries_have_a_model_of_their_own_with_its_settings(corpus, tmp_path, monkeypatch):
    asked: list[tuple[str, int, float, int]] = []

    class Model:
        def __init__(self, name: str) -> None:
            self.name = name

        def complete(self, prompts, *, max_tokens, temperature):
            asked.extend((self.name, max_tokens, temperature, len(prompt.user)) for prompt in prompts)
            return [Completion("A lease") for _ in prompts]

    class Plugin:
        @staticmethod
        def open(argument, options):
            return Model(argument)

    usual = module.load_plugin
    monkeypatch.setattr(
        module,
        "load_plugin",
        lambda package, name: (Plugin, name) if package.endswith("llms") else usual(package, name),
    )
    settings = {"summaries": "llm", "llm": "big", "summary_llm": "small", "summary_tokens": 50, "summary_shown": 40}
    pipeline = built(corpus, tmp_path, "sac", summary_temperature=0.3, **settings)
    assert {(name, tokens, temperature) for name, tokens, temperature, _ in asked} == {("small", 50, 0.3)}
    assert max(length for *_, length in asked) < 700
    assert pipeline.llm is not pipeline.summary_llm
    assert built(corpus, tmp_path, "sac", summaries="llm", llm="big").summary_llm.name == "big"
