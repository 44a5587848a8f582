"""The pipeline answers from the clause in force on the day; it names amendments and contradicting values."""

from __future__ import annotations

from datetime import date

import pytest

from exhibit.law.editions import without_changes
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from exhibit.rag import Config, Pipeline
from exhibit.rag.retrieval.amendments import find_asked_day, strip_asked_day
from exhibit.rag.retrieval.stages import Retrieved
from tests.law.contracts import CONTRACT, FIRST, OTHER, SECOND

ABOUT = "Consider the Hosting Agreement between Quillfeather Systems, Inc. and Marrowdale Clinics LLC"
FEE = f"{ABOUT}; what is the monthly fee for the hosting services?"
LAW = f"{ABOUT}; which state's laws govern this Agreement?"


@pytest.fixture
def ask(tmp_path):
    def ask(question: str, files: dict[str, str], **settings):
        folder = tmp_path / "corpus"
        if not folder.exists():
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        settings = {"answerer": "extractive", "reranker": "none", "refuse_below": None, **settings}
        config = Config.preset("routed", **settings)
        pipeline = Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=Hashing(256))
        pipeline.index(folder, tmp_path / "index", force=True)
        [answered] = pipeline.answer([question])
        return answered

    return ask


FAMILY = {"hosting.txt": CONTRACT, "first.txt": FIRST, "second.txt": SECOND, "osprey.txt": OTHER}
FEES = {"$4,000", "$5,500", "$7,250"}


@pytest.mark.parametrize(
    ("question", "fee", "source"),
    [
        (f"As of February 1, 2019: {FEE}", "$4,000", ""),
        (f"As of September 1, 2019: {FEE}", "$5,500", "first.txt, in force from 1 June 2019"),
        (f"As of May 3, 2022: {FEE}", "$7,250", "second.txt, in force from 15 January 2021"),
        (FEE, "$7,250", "second.txt, in force from 15 January 2021"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"routing": False, "method": "bm25"}], ids=["routed", "words"])
def test_the_answer_is_the_clause_in_force_and_names_the_amendment(ask, question, fee, source, settings):
    answered = ask(question, FAMILY, **settings)
    text = answered.answer.text
    assert fee in text
    assert not any(other in text for other in FEES - {fee})
    assert (f"Section 2.1 as changed by {source}" in text) == bool(source)
    assert "in force from" not in without_changes(text), "the note is no claim of the answer"
    assert not any(other in hit.text for hit in answered.retrieved.ranked for other in FEES - {fee})


def test_the_rest_of_a_cut_sentence_is_in_force_too(ask):
    scheduled = CONTRACT.replace("Fee. Customer", "Fee - Customer").replace("services.", "services;")
    scheduled = scheduled.replace("Late Payment. An", "Late payment: an")
    assert "$4,000 for the hosting services;\n2.2 Late payment: an amount" in scheduled
    answered = ask(f"As of September 1, 2019: {FEE}", FAMILY | {"hosting.txt": scheduled}, answerer="reader")
    used = [hit.text for hit in (*answered.retrieved.selected, *answered.retrieved.beside)]
    assert any("Late payment" in text for text in used), "the section after it is read"
    assert not any("$4,000" in text for text in [*used, answered.answer.text]) and "$5,500" in answered.answer.text


@pytest.mark.parametrize(("day", "state"), [("May 1, 2018", "Ohio"), ("July 4, 2020", "Vermont")])
def test_words_that_an_amendment_replaces_are_read_in_the_clause(ask, day, state):
    answered = ask(f"As of {day}: {LAW}", FAMILY)
    text = answered.answer.text
    assert f"governed by the laws of the State of {state}" in text
    assert ({"Ohio", "Vermont"} - {state}).pop() not in text
    first = answered.retrieved.selected[0].chunk
    assert first.document == ("hosting.txt" if state == "Ohio" else "first.txt")


def test_the_answerer_is_asked_without_the_day_that_chose_the_passages(ask):
    question = f"As of July 4, 2020: {LAW}"
    assert strip_asked_day(ask(question, FAMILY).retrieved) == LAW
    assert strip_asked_day(Retrieved(question, (), ())) == question
    assert strip_asked_day(Retrieved(LAW, (), (), {"amendments": {}})) == LAW


def test_a_question_for_the_contract_searches_it_also_where_only_its_amendment_has_the_names(ask):
    bare = CONTRACT.replace("Quillfeather Systems, Inc., a Delaware corporation", "the Provider").replace(
        "Marrowdale Clinics LLC", "the Customer"
    )
    files = {"host.txt": bare, "host - Amendment No. 1.txt": FIRST, "osprey.txt": OTHER}
    question = f"As of February 1, 2019: {ABOUT}; what interest does an overdue amount bear?"
    answered = ask(question, files)
    assert "five percent" in answered.answer.text
    assert answered.retrieved.selected[0].chunk.document == "host.txt"
    itself = ask(f"Consider Amendment No. 1 to {ABOUT[13:]}; what interest does an overdue amount bear?", files)
    assert {hit.chunk.document for hit in itself.retrieved.selected} == {"host - Amendment No. 1.txt"}


def test_a_contract_without_amendments_is_left_as_it_is(ask):
    answered = ask(f"As of May 3, 2022: {FEE}", {"hosting.txt": CONTRACT, "osprey.txt": OTHER})
    assert "$4,000" in answered.answer.text and "changed by" not in answered.answer.text
    assert answered.retrieved.changes == {}


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("As of 1 March 2021: who pays?", date(2021, 3, 1)),
        ("Who pays on 2021-03-01?", date(2021, 3, 1)),
        ("Consider the lease dated March 1, 2021; who pays?", None),
        ("Consider the lease entered into on March 1, 2021; who pays as of May 2, 2022?", date(2022, 5, 2)),
        ("Who pays?", None),
    ],
)
def test_the_day_that_a_question_asks_for(question, day):
    assert find_asked_day(question) == day


# ---------------------------------------------------------------- values that disagree

SECOND_VERSION = CONTRACT.replace("$4,000", "$4,800")


def test_two_versions_of_a_contract_that_disagree_are_both_named(ask):
    answered = ask(FEE, {"hosting.txt": CONTRACT, "hosting (copy).txt": SECOND_VERSION, "osprey.txt": OTHER})
    text = answered.answer.text
    assert "The documents disagree: " in text
    assert all(words in text for words in ("$4,000 according to hosting.txt", "$4,800 according to hosting (copy).txt"))


def test_versions_of_a_contract_whose_parties_are_not_read_are_known_by_their_opening(ask):
    policy = (
        "HOSTING TERMS\n\nThese terms hold for all clients of Fernhollow and replace what was agreed before by "
        "letter, by mail or in person.\n\n1. Fee. Each client pays a fee of {} a month.\n\n2. Care. Fernhollow keeps "
        "the servers cool, dry and locked, and tells its clients at once when a disk, a lock or a fan has failed."
    )
    files = {"terms.txt": policy.format("$700"), "terms of May.txt": policy.format("$900")}
    text = ask("Under the hosting terms of Fernhollow, what fee does each client pay?", files).answer.text
    assert "The documents disagree: " in text and "$700" in text and "$900" in text


def test_versions_that_agree_and_contracts_of_other_parties_do_not_disagree(ask):
    other = OTHER.replace("$3,333", "$9,999")
    answered = ask(FEE, {"hosting.txt": CONTRACT, "hosting (copy).txt": CONTRACT, "osprey.txt": other})
    assert "$4,000" in answered.answer.text
    assert "disagree" not in answered.answer.text


def test_an_amendment_does_not_disagree_with_its_contract(ask):
    assert "disagree" not in ask(FEE, FAMILY).answer.text


def test_two_clauses_of_one_contract_that_disagree_are_both_named(ask):
    doubt = "4.2 Clarification. For the avoidance of doubt, the amount stated in Section 2.1 is $6,600.\n"
    text = ask(FEE, {"hosting.txt": CONTRACT + doubt}).answer.text
    assert "The document disagrees with itself: $4,000 in Section 2.1, $6,600 in" in text


def test_an_article_that_another_clause_contradicts_is_named_as_an_article(ask):
    contract = (
        "CONSULTING AGREEMENT\n\nARTICLE 1 -- PREAMBLE\nThis Agreement is made this 1st day of September 2016 between "
        "Brackenhall Pottery Ltd and Ottilie Marsh Ltd.\n\nARTICLE 2 -- WORK\n2.1 Brackenhall bears all costs. For the "
        "avoidance of doubt, the date stated in Article 1 is the 1st day of June 2014.\n"
    )
    question = "On what day was the Consulting Agreement of Brackenhall Pottery and Ottilie Marsh made?"
    text = ask(question, {"consulting.txt": contract}).answer.text
    assert "disagrees with itself: 1st day of September 2016 in Article 1, 1st day of June 2014 in" in text


class Says:
    """A stub language model that always gives the same reply."""

    name = "says"

    def __init__(self, text: str) -> None:
        self._text = text

    def complete(self, prompts, *, max_tokens, temperature):
        return [Completion(self._text) for _ in prompts]


LEASE = (
    "LEASE OF A KILN\n\nThis Lease is made between Brackenhall Pottery Ltd and Ottilie Marsh Ltd.\n\n"
    "1. Kiln. The Lessor lets the kiln at Wharf Lane to the Lessee.\n\n"
    "2. Term. This Lease begins when the kiln is first fired by the Lessee in the presence of the Lessor, and it "
    "continues without any interruption until the end of the day of September 30, 2031, unless it ends before.\n\n"
    "3. Notices. Notices are sent by post. For the avoidance of doubt, the date stated in Section 2 is May 31, 2034.\n"
)


def test_an_answer_is_compared_with_the_other_clauses_also_where_no_rule_could_check_its_citation(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "lease.txt").write_text(LEASE, encoding="utf-8")
    config = Config.preset("routed", answerer="llm", reranker="none", refuse_below=None)
    llm = Says("It goes on until September 30, 2031, for 4,017 days [1][2][3].")
    pipeline = Pipeline(config, cache=tmp_path / "cache", engine="serial", embedder=Hashing(256), llm=llm)
    pipeline.index(tmp_path / "corpus", tmp_path / "index", force=True)
    [answered] = pipeline.answer(["Under the Lease of a Kiln, until the end of what day does the Lease continue?"])
    assert answered.answer.citations == (), "the number of days stands nowhere"
    assert "disagrees with itself: September 30, 2031 in Section 2, May 31, 2034 in" in answered.answer.text


def test_a_sentence_on_another_section_with_the_same_value_is_no_disagreement(ask):
    doubt = "4.2 Clarification. For the avoidance of doubt, the amount stated in Section 2.1 is $4,000.\n"
    assert "disagrees" not in ask(FEE, {"hosting.txt": CONTRACT + doubt}).answer.text
    other = "4.2 Clarification. For the avoidance of doubt, the amount stated in Section 3.1 is $6,600.\n"
    assert "disagrees" not in ask(FEE, {"hosting.txt": CONTRACT + other}).answer.text
