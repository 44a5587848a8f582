"""The default preset through the whole pipeline: documents by name, passages by evidence, and optional stages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from exhibit.rag import Config, Pipeline
from exhibit.rag.config import DEFAULT, Weights
from exhibit.rag.lexicon.documents import Choice
from exhibit.rag.retrieval.routed import choose_likely_documents
from exhibit.rag.saved_index import open_index
from exhibit.schemas.errors import BundleError, ToolkitError

LAWS = {"alder": "Norway", "birch": "Ohio", "cedar": "Chile", "dune": "Peru"}
QUESTION = "Consider the Supply Agreement of {name} Ltd; which law governs it?"


@pytest.fixture
def corpus(tmp_path) -> Path:
    """Four agreements that differ in a name and a law; one is named in its file name only."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, law in LAWS.items():
        party = "the Supplier" if name == "dune" else f"{name.title()} Ltd"
        (folder / f"{name.title()}-Supply-Agreement.txt").write_text(
            f"SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {party} and the Buyer.\n\n"
            "1. Term. The term of this Agreement is five years from the Effective Date.\n\n"
            f"2. Governing Law. This Agreement is governed by the law of {law}. The courts there have jurisdiction.\n\n"
            "3. Notice. Either party gives ninety days' notice of termination in writing.\n",
            encoding="utf-8",
        )
    return folder


@pytest.fixture
def make(tmp_path, corpus):
    def run(*, llm=None, fresh: bool = False, **settings) -> Pipeline:
        config = Config.preset("routed", **{"chunk_size": 120, **settings})
        pipeline = Pipeline(config, cache=tmp_path / "cache", jobs=1, embedder=Hashing(256), llm=llm)
        if fresh or not (tmp_path / "index").exists():
            pipeline.index(corpus, tmp_path / "index", force=True)
            return pipeline
        return pipeline.open(tmp_path / "index")

    return run


def test_it_is_the_default_and_finds_the_clause_of_the_agreement_that_is_named(make):
    assert Pipeline().config == Config.preset("routed")
    pipeline = make()
    for name, law in LAWS.items():
        [found] = pipeline.search([QUESTION.format(name=name.title())])
        assert found.ranked[0].chunk.document == f"{name.title()}-Supply-Agreement.txt"
        assert law in found.ranked[0].text and "governed" in found.ranked[0].text
        assert found.ranked[0].chunk.section.endswith("Governing Law")
        likeliest = next(iter(found.trace["documents"]["likeliest"]))
        assert likeliest == found.ranked[0].chunk.document


def test_passages_are_words_of_their_document_within_the_limit_and_never_twice(make, corpus):
    [found] = make(passage_size=90).search([QUESTION.format(name="Birch")])
    seen = set()
    for hit in found.ranked:
        text = (corpus / hit.chunk.document).read_text(encoding="utf-8")
        assert hit.text == text[slice(*hit.chunk.span)] and 0 < len(hit.text) <= 90
        places = {(hit.chunk.document, at) for at in range(*hit.chunk.span)}
        assert not places & seen
        seen |= places
    assert [hit.score for hit in found.ranked] == sorted((hit.score for hit in found.ranked), reverse=True)


def test_file_names_can_be_left_out_of_it(make):
    question = QUESTION.format(name="Dune")  # it says its name in the file's name alone
    [named] = make().search([question])
    [blind] = make(filenames=False).search([question])
    assert named.ranked[0].chunk.document.startswith("Dune")
    likeliest = next(iter(named.trace["documents"]["likeliest"]))
    assert likeliest.startswith("Dune") and named.trace["documents"]["sure"] > blind.trace["documents"]["sure"]


def test_a_question_that_names_nothing_looks_everywhere(make):
    [found] = make().search(["which law governs?"])
    assert found.trace["documents"]["kept"] == "any"
    assert {hit.chunk.document for hit in found.ranked} == {f"{name.title()}-Supply-Agreement.txt" for name in LAWS}
    assert make().search(["  "])[0].ranked == ()


def test_a_library_of_clauses_is_searched_whole_though_a_word_or_a_kind_favours_many(make, corpus):
    for path in corpus.iterdir():
        path.unlink()
    rooms = [
        f"{floor} {room}"
        for floor in ("upper", "lower", "outer")
        for room in ("attic", "hall", "study", "dairy", "loft")
    ]
    for room in rooms:
        (corpus / f"{room}.txt").write_text(f"The tenant shall paint the {room} in the fifth year.", encoding="utf-8")
    (corpus / "policy.txt").write_text(
        "PRIVACY POLICY\n\nThis Privacy Policy tells what we collect when you use our app.", encoding="utf-8"
    )
    waiver = "Neither party is liable for indirect damage, except for a breach of confidentiality."
    (corpus / "clause-16.txt").write_text(waiver, encoding="utf-8")
    # `confidentiality` reads like the kind of a document, which all but the policy may be
    [found] = make().search(["confidentiality exceptions to indirect damage waiver"])
    assert found.trace["query"]["kind"] == "nda"
    assert found.trace["documents"]["kept"] == "any"
    assert found.ranked[0].chunk.document == "clause-16.txt"


@pytest.mark.parametrize(
    ("weights", "kept"),
    [
        ([0.01] * 100, None),  # nothing is named
        ([0.02, 0.02, *[0.01] * 96], None),  # two are a little likelier than the others
        ([0.4, 0.15, *[0.45 / 98] * 98], 8),  # of those that are looked into, one is likelier meant than not
        ([0.995, *[0.005 / 99] * 99], 1),
    ],
)
def test_documents_are_chosen_when_one_of_them_is_likelier_meant_than_not(weights, kept):
    choice = Choice(np.arange(len(weights)), np.log(weights))
    likely = choose_likely_documents(choice, Config.preset("routed"))
    assert (likely and len(likely)) == kept


def test_documents_come_and_go_with_their_words(make, corpus, tmp_path):
    pipeline = make()
    before = pipeline.search([QUESTION.format(name="Cedar")])
    pipeline.remove("Cedar-Supply-Agreement.txt")
    [gone] = pipeline.search([QUESTION.format(name="Cedar")])
    assert all(not hit.chunk.document.startswith("Cedar") for hit in gone.ranked)
    pipeline.add(corpus / "Cedar-Supply-Agreement.txt")
    again = make().search([QUESTION.format(name="Cedar")])
    assert [hit.chunk for hit in again[0].ranked[:3]] == [hit.chunk for hit in before[0].ranked[:3]]


def test_an_index_without_words_or_with_damaged_ones_is_refused(make, corpus, tmp_path):
    pipeline = make()
    (tmp_path / "index" / "index.sqlite").write_bytes(b"PK")
    with pytest.raises(BundleError, match=r"index\.sqlite is missing or damaged; build the index again"):
        open_index(tmp_path / "index")
    with pytest.raises(ToolkitError, match="routing needs an index with a lexicon: set lexicon to true"):
        Config.preset("rcts", routing=True)
    plain = Pipeline(Config.preset("rcts"), cache=tmp_path / "cache", jobs=1, embedder=Hashing(256))
    plain.index(corpus, tmp_path / "plain")
    with pytest.raises(BundleError, match="built with other settings"):
        pipeline.open(tmp_path / "plain")


def test_a_reranker_looks_a_second_time(make):
    asked = "Consider the Supply Agreement of Birch Ltd; how many days' notice of termination in writing?"
    [plain], [again] = make(rerank=4).search([asked]), make(reranker="words", rerank=4).search([asked])
    assert again.trace["reranked"] == {"by": "words", "passages": min(4, len(again.ranked))}
    assert "ninety days' notice" in again.ranked[0].text
    assert {hit.chunk for hit in plain.ranked} == {hit.chunk for hit in again.ranked}
    with pytest.raises(ToolkitError, match="there are cross-encoder, http, legal, words"):
        make(reranker="oracle").search([asked])


def test_a_reranker_that_is_joined_reads_chunks_with_what_is_asked_alone(make):
    class Joined:
        name, retrieval_weight = "joined", 1.0
        seen: list[tuple[str, int]] = []

        def score(self, question, passages):
            self.seen.append((question, len(passages)))
            return [1.0] * len(passages)

    pipeline = make(reranker="words", rerank=3)
    pipeline.__dict__["reranker"] = Joined()
    [found] = pipeline.search(["Consider the Supply Agreement of Birch Ltd; how many days' notice is needed?"])
    assert Joined.seen == [("how many days' notice is needed?", 3)]
    assert found.trace["passages"]["reranked"]["by"] == "joined" and "reranked" not in found.trace


@pytest.mark.parametrize(("sure", "refused"), [(0.2, True), (0.8, False)])
def test_a_question_below_the_confidence_that_is_asked_for_is_refused(make, sure, refused):
    class Telling:
        name, retrieval_weight = "telling", 1.0

        def score(self, question, passages):
            return [1.0] * len(passages)

        def confidence(self, scores):
            return sure

    asked = "Consider the Supply Agreement of Birch Ltd; how many days' notice of termination in writing?"
    pipeline = make(reranker="words", refuse_below=0.5, answerer="extractive")
    pipeline.__dict__["reranker"] = Telling()
    [answered] = pipeline.answer([asked])
    assert answered.retrieved.confidence == sure and answered.retrieved.ranked
    assert answered.answer.refused is refused
    never = make(reranker="words", refuse_below=None, answerer="extractive")
    never.__dict__["reranker"] = Telling()
    assert not never.answer([asked])[0].answer.refused


class Imagining:
    """A language model that always imagines the same passage."""

    name = "imagining"

    def complete(self, prompts, *, max_tokens, temperature):
        return [Completion("Either party gives ninety days' notice of termination in writing.") for _ in prompts]


def test_an_imagined_passage_moves_the_question(make):
    asked = "Consider the Supply Agreement of Birch Ltd; how does one get out?"
    settings = {"weight_lexical": 0.0, "weight_heading": 0.0, "weight_section": 0.0, "weight_neighbours": 0.0}
    [found] = make(llm=Imagining(), hyde_weight=1.0, **settings).search([asked])
    assert found.trace["imagined"].startswith("Either party") and "ninety days' notice" in found.ranked[0].text
    with pytest.raises(ToolkitError, match="--hyde-weight needs a language model"):
        make(hyde_weight=0.5).search([asked])


def test_the_defaults_are_the_default_preset_and_a_flag_names_a_single_weight():
    assert Config() == Config.preset(DEFAULT)
    config = Config.preset("routed", weight_heading=0.4)
    assert config.weights == Weights(heading=0.4) and config.get_setting("weight_heading") == 0.4
    assert Config.parse(config.model_dump()) == config


def test_an_index_opens_though_a_setting_of_its_time_is_gone(make, tmp_path):
    make()
    path = tmp_path / "index" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["config"]["mass"] = 0.99
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert make().search([QUESTION.format(name="Dune")])[0].ranked


def test_words_are_cited_by_the_section_they_stand_in_not_by_the_one_their_passage_begins_in(tmp_path):
    clauses = {
        "Rent": "The rent is 900 a month.",
        "Deposit": "The deposit is 1,800.",
        "Repairs": "The roof is kept dry.",
    }
    text = "LEASE\n\n" + "\n\n".join(f"{n}. {name}\n{words}" for n, (name, words) in enumerate(clauses.items(), 1))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "lease.txt").write_text(text, encoding="utf-8")
    pipeline = Pipeline(Config.preset("routed", embedder="hashing", answerer="extractive"))
    pipeline.index(tmp_path / "docs", tmp_path / "index")
    [found] = pipeline.search(["Which deposit is due under the lease?"])
    for hit in found.ranked:
        for number, (name, words) in enumerate(clauses.items(), 1):
            if words in hit.text:
                at = hit.chunk.span.start + hit.text.index(words)
                assert hit.chunk.place(at) == (f"{number}. {name}", None)
    [answered] = pipeline.answer(["How much is the deposit?"])
    assert "1,800. [1]" in answered.answer.text and answered.answer.text.endswith("[1] lease.txt, 2. Deposit")


LEASES = {
    "harbour-reseller-agreement.txt": "RESELLER AGREEMENT\n\nHarbour Ltd appoints Quay Inc as its reseller.\n\n"
    "1. Territory. Quay Inc sells in Norway.\n\n2. Payment. Invoices are paid within thirty days.\n",
    "marble-supply.txt": "SUPPLY AGREEMENT\n\nStone Ltd supplies Tile Inc, the Reseller, with slabs.\n\n"
    "1. Slabs. The Reseller stores marble slabs upright, in a heated hall.\n\n2. Payment. Cash on delivery.\n",
    "office-lease.txt": "LEASE\n\nRoof Ltd lets an office to Desk Inc.\n\n1. Rent. Desk Inc pays £900 a month.\n",
}


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("How must the Reseller store marble slabs?", "marble-supply.txt"),  # a title of another document has the word
        ("Under the Reseller Agreement of Harbour Ltd, when are invoices paid?", "harbour-reseller-agreement.txt"),
        (
            "Under the Reseller Agreement of Harbour Ltd, where are marble slabs stored?",
            "harbour-reseller-agreement.txt",
        ),
    ],
)
def test_the_words_of_documents_help_to_choose_them_but_a_name_that_stands_apart_decides(tmp_path, question, document):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in LEASES.items():
        (folder / name).write_text(text, encoding="utf-8")
    pipeline = Pipeline(Config.preset("routed"), cache=tmp_path / "cache", jobs=1, embedder=Hashing(256))
    pipeline.index(folder, tmp_path / "index")
    [found] = pipeline.search([question])
    assert found.ranked[0].chunk.document == document
    shown = found.trace["documents"]["likeliest"]
    assert next(iter(shown)) == document
    assert any("words" in why for why in shown.values())
