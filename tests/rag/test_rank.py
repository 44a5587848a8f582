"""Ranking and passages: combined signals, whole sentences, rerankers, layers, and the selection for an answer."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.evidence import Span
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline, retrieve
from exhibit.rag.documents import Choice
from exhibit.rag.passages import RankedPassage, complete_sentences, form_passages, make_hits
from exhibit.rag.questions import Query

LEASE = """COMMERCIAL LEASE

This Commercial Lease is made between {landlord} and {tenant}.

1. TERM

1.1 Duration. The term of this Lease is five years from 1 May 2020. It may be renewed once by notice.

1.2 Notice. Either party gives ninety days' notice of renewal.

2. RENT

2.1 Amount. The tenant pays a rent of one thousand pounds a month. The rent is paid in advance.

2.2 Late payment. A late charge of four percent is due on unpaid rent.

3. GENERAL

3.1 Governing law. The laws of {law} govern this Lease.

3.2 Insurance. The tenant insures the premises against fire.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("leases")
    for landlord, tenant, law in (("Elm Estates", "Fox Bakery", "Ohio"), ("Gull Homes", "Heron Books", "Kent")):
        text = LEASE.format(landlord=landlord, tenant=tenant, law=law)
        (folder / f"{tenant.split()[0].lower()}.txt").write_text(text, encoding="utf-8")
    return folder


def build(tmp_path_factory, folder: Path, preset: str = "routed", **settings) -> Pipeline:
    target = tmp_path_factory.mktemp("index")
    config = Config.preset(preset, embedder="hashing:256", answerer="extractive", **{"chunk_size": 160, **settings})
    pipeline = Pipeline(config, cache=target / "cache", engine="serial", embedder=Hashing(256))
    pipeline.index(folder, target / "index")
    return pipeline


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory, folder) -> Pipeline:
    return build(tmp_path_factory, folder)


@pytest.mark.parametrize(
    ("question", "document", "words"),
    [
        ("Consider the Commercial Lease of Fox Bakery; which law governs it?", "fox.txt", "laws of Ohio govern"),
        ("Under the lease with Heron Books, what is the late charge?", "heron.txt", "four percent"),
        ("How long is the term of the lease of Heron Books?", "heron.txt", "five years"),
    ],
)
def test_search_ranks_answering_sentence_of_named_document_first(pipeline, question, document, words):
    [found] = pipeline.search([question])
    assert found.ranked[0].document == document and words in found.ranked[0].text
    assert len(found.ranked[0].text) < 160


def test_ranked_passages_do_not_overlap_and_have_falling_scores(pipeline):
    [found] = pipeline.search(["What does the tenant pay?"])
    spans: dict[str, list[Span]] = {}
    for hit in found.ranked:
        assert len(hit.text) <= 500 and hit.text == hit.text.strip()
        for other in spans.setdefault(hit.document, []):
            assert hit.span.end <= other.start or other.end <= hit.span.start
        spans[hit.document].append(hit.span)
    scores = [hit.score for hit in found.ranked]
    assert scores == sorted(scores, reverse=True)


def test_search_in_named_documents_returns_only_their_passages_up_to_depth(pipeline):
    [found] = pipeline.search(["Which law governs?"], documents=["heron.txt"], depth=2)
    assert {hit.document for hit in found.ranked} == {"heron.txt"} and len(found.ranked) == 2
    assert pipeline.search(["  "])[0].ranked == () and pipeline.search(["x"], documents=[])[0].ranked == ()


def test_search_prefers_contract_clause_to_amendment_with_same_title_and_parties(tmp_path_factory, folder, tmp_path):
    """The amendment repeats title and parties; its recital must not come before the clause that answers."""
    both = tmp_path / "both"
    both.mkdir()
    (both / "lease.txt").write_text((folder / "fox.txt").read_text(), encoding="utf-8")
    (both / "amendment.txt").write_text(
        "AMENDMENT NO. 1 TO COMMERCIAL LEASE\n\nThis Amendment to the Commercial Lease is made between Elm Estates and "
        "Fox Bakery.\n\nRECITALS\n\nWHEREAS, Elm Estates and Fox Bakery are parties to the Commercial Lease, and wish "
        "to amend the late charge of the Commercial Lease.\n\n1. Section 3.2 is deleted.\n",
        encoding="utf-8",
    )
    pipeline = build(tmp_path_factory, both)
    question = "Consider the Commercial Lease between Elm Estates and Fox Bakery; what is the late charge?"
    [found] = pipeline.search([question])
    assert found.ranked[0].document == "lease.txt" and "four percent" in found.ranked[0].text


def test_standardise_scales_scores_of_each_group_separately():
    scores = retrieve.standardise(np.array([1, 3, 5, 5], np.float32), np.array([0, 2]))
    assert scores.tolist() == [-1, 1, 0, 0]


def test_add_context_raises_scores_of_adjacent_chunks_but_not_across_documents():
    table = np.array([[0, 1, 0, 9, 1, 0], [1, 1, 9, 19, 1, 1], [2, 1, 19, 29, 1, 1], [3, 2, 0, 9, 1, 0]], np.int64)
    own = np.array([0, 0, 6, 0], np.float32)
    raised = retrieve.add_context(own, table, retrieve.WEIGHTS)
    assert raised[2] > raised[1] > raised[0] == raised[3] == 0


def test_make_weigher_sums_weights_of_words_found_in_text():
    weigh = retrieve.make_weigher(["rent", "deposit"], np.array([2.0, 3.0], np.float32))
    assert weigh("The rents and the deposit") == 5.0 and weigh("Nothing") == 0


def test_form_passages_respects_size_limit_and_avoids_overlaps(pipeline):
    index = pipeline.opened
    ranked = [(row, 10.0 - row) for row in range(4)]
    args = {"scores": dict(ranked), "depth": 9, "weigh": lambda text: float("five years" in text)}
    trimmed = form_passages(index, ranked, size=200, trim_first=True, **args)
    grown = form_passages(index, ranked, size=200, trim_first=False, **args)
    assert all(passage.span.end - passage.span.start <= 200 for passage in [*trimmed, *grown])
    text = index.text_of(0)
    for passages in (trimmed, grown):
        covered = sorted(passage.span for passage in passages if passage.document == 0)
        assert all(first.end <= second.start for first, second in pairwise(covered))
    assert text[slice(*grown[0].span)].startswith("COMMERCIAL LEASE")


def test_make_hits_locates_section_at_each_offset(pipeline):
    index = pipeline.opened
    number = index.entry("fox.txt").number
    text = index.text_of(number)
    start, end = text.index("1.2 Notice"), text.index("2.2 Late")
    [hit] = make_hits(index, [RankedPassage(number, Span(start, end), 1.0)])
    assert "1.2" in hit.section and "2.1" in hit.locate(text.index("one thousand"))[0]


@pytest.mark.parametrize("preset", ["naive", "rcts", "bm25"])
def test_hit_locates_inner_section_of_large_chunk(tmp_path_factory, folder, preset):
    pipeline = build(tmp_path_factory, folder, preset, chunk_size=900)
    hit = pipeline.search(["Which law governs?"])[0].ranked[0]
    law = hit.locate(hit.span.start + hit.text.index("The laws of"))[0]
    assert "3.1" in law and law != hit.section


def test_complete_sentences_completes_cut_sentences(pipeline):
    index = pipeline.opened
    number = index.entry("fox.txt").number
    text = index.text_of(number)
    start = text.index("tenant pays a rent")
    span = Span(start, start + 12)
    selected = make_hits(index, [RankedPassage(number, span, 1.0)])
    beside = complete_sentences(selected, selected, index)
    whole = "".join(hit.text for hit in sorted([*selected, *beside], key=lambda hit: hit.span))
    assert "The tenant pays a rent of one thousand pounds a month." in whole
    assert all(hit.span.end <= span.start or hit.span.start >= span.end for hit in beside)


class PreferLongTexts:
    """A reranker that prefers long texts."""

    name = "longest"

    def __init__(self, weight: float | None = None) -> None:
        if weight is not None:
            self.retrieval_weight = weight

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        return [float(len(passage)) for passage in passages]

    def confidence(self, scores: Sequence[float]) -> float:
        return 0.2


@pytest.mark.parametrize("weight", [None, 1.5])
@pytest.mark.parametrize("method", ["routed", "dense"])
def test_low_reranker_confidence_empties_the_selection(pipeline, monkeypatch, method, weight):
    monkeypatch.setitem(pipeline.__dict__, "reranker", PreferLongTexts(weight))
    settings = {"reranker": "longest", "rerank": 2, "method": method}
    monkeypatch.setattr(pipeline, "config", pipeline.config.model_copy(update=settings))
    [found] = pipeline.search(["Consider the lease of Fox Bakery; which law governs?"])
    assert (found.selected, found.cut_by, found.confidence) == ((), "confidence", 0.2)
    assert found.before is not None and len(found.before) > 2
    scores = [hit.score for hit in found.ranked]
    assert scores == sorted(scores, reverse=True)
    if method == "dense" and weight is None:  # chunks are unchanged
        first, second = (len(hit.text) for hit in found.ranked[:2])
        assert first >= second and found.ranked[2:] == found.before[2:]


def test_rerank_adds_weighted_retrieval_score_to_reranker_score():
    assert retrieve.rerank("?", ["a", "bb"], [9.0, 1.0], PreferLongTexts(5.0)) == ([0, 1], 0.2)
    assert retrieve.rerank("?", ["a", "bb"], [9.0, 1.0], PreferLongTexts()) == ([1, 0], 0.2)
    assert retrieve.rerank("?", [], [], PreferLongTexts(5.0)) == ([], None)


def test_layer_settings_limit_the_number_of_documents_and_sections(tmp_path_factory, folder):
    pipeline = build(tmp_path_factory, folder, "seed", layer_documents=1, layer_sections=2, document_limit=1)
    [found] = pipeline.search(["Commercial Lease between Gull Homes and Heron Books: late charge"])
    assert {hit.document for hit in found.ranked} == {"heron.txt"}
    sections = {hit.section for hit in found.ranked}
    assert 1 <= len(sections) <= 2 and "late charge" in " ".join(hit.text for hit in found.ranked)


@pytest.mark.parametrize(("limit", "kept"), [(1, [0]), (2, [0, 10, 11]), (3, [0, 10, 11, 30, 31])])
def test_limit_documents_chooses_by_best_and_mean_candidate_scores(limit, kept):
    config = Config.preset("seed", k=3, document_limit=limit)
    # the seventh chunk is not among the first 2 × 3; document 2 has 0.6 × 0.8 + 0.4 × 0.5 = 0.68, document 3 has 0.7
    keys, scores = np.array([0, 10, 11, 20, 21, 30, 31]), np.array([0.9, 0.8, 0.8, 0.8, 0.2, 0.7, 0.9])
    table = np.stack([keys, keys // 10], axis=1)
    index = SimpleNamespace(table=table, find_rows=lambda wanted: np.searchsorted(keys, wanted))
    assert retrieve._limit_documents(np.zeros(2), keys, scores, index, config)[0].tolist() == kept


@pytest.mark.parametrize(
    ("settings", "count", "cut_by"),
    [
        ({"k": 2}, 2, "number"),
        ({"budget_tokens": 1}, 1, "budget"),
        ({"threshold": 0.0}, 2, "threshold"),
        ({"threshold": 0.0, "min_chunks": 3}, 3, "threshold"),
    ],
)
def test_selection_is_limited_by_number_or_budget_or_threshold(pipeline, monkeypatch, settings, count, cut_by):
    monkeypatch.setattr(pipeline, "config", pipeline.config.model_copy(update=settings))
    [found] = pipeline.search(["Which law governs the lease of Fox Bakery?"])
    assert (len(found.selected), found.cut_by) == (count, cut_by)


def test_answer_cites_governing_law_clause_of_named_lease(pipeline):
    [answered] = pipeline.answer(["Consider the lease of Fox Bakery; which law governs this Lease?"])
    assert "laws of Ohio" in answered.answer.text and "fox.txt" in answered.answer.text
    assert answered.context.asks == "which law governs this Lease?"


def test_add_content_ranks_named_document_above_document_with_more_matching_words():
    """If the name had as little weight as the words, freely worded questions would lose their document."""
    table = np.array([[0, 0, 0, 9, 1, 0], [1, 1, 0, 9, 1, 0]], np.int64)
    search = SimpleNamespace(search=lambda terms, k: (np.array([7.0, 4.0], np.float32), np.array([1, 0])))
    index = SimpleNamespace(chunks=search, table=table, find_rows=lambda keys: keys)
    named = Choice(np.array([0, 1]), np.log(np.array([0.88, 0.12])))
    moved = retrieve._add_content(named, Query("Does Fiverr sell data?", "Fiverr", "Does Fiverr sell data?"), index)
    assert next(iter(moved.choose_best(1))) == 0
