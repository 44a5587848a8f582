"""Search ranks the paragraph of the version in force on the named day first.

For a day before the law existed, nothing is returned.
"""

from pathlib import Path

import pytest

from exhibit.law.citations import claims_of
from exhibit.rag import Config, Pipeline
from exhibit.rag.index import Index, open_index
from exhibit.rag.laws import Route
from exhibit.rag.laws import route_to_law as route
from tests.conftest import Convert


@pytest.fixture(scope="module")
def indexed(converted: Convert, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pipeline, Path]:
    folder = tmp_path_factory.mktemp("laws") / "index"
    pipeline = Pipeline(Config(embedder="hashing"), cache=folder.parent / "cache", engine="serial")
    pipeline.index(converted("statutes") / "corpus", folder)
    return pipeline, folder


@pytest.fixture
def index(indexed: tuple[Pipeline, Path]) -> Index:
    pipeline, folder = indexed
    return open_index(folder, pipeline.config)


OLD, NEW = "pristavni-zakon_2019-07-01.pdf", "pristavni-zakon_2023-01-01.pdf"


@pytest.mark.parametrize(
    ("question", "file", "words"),
    [
        ("Co stanovil § 8 předpisu č. 907/2019 Sb. ve znění účinném k 1. 3. 2021?", OLD, "20 Kč"),
        ("Co stanovil § 8 zákona č. 907/2019 Sb. dne 5. května 2024?", NEW, "35 Kč"),
        ("What did § 8 of 907/2019 Sb. say as in force on 1 March 2021?", OLD, "20 Kč"),
        ("Was bestimmte § 8 907/2019 Sb. am 1.3.2021?", OLD, "20 Kč"),
        ("What did section 8 of 907/2019 Sb. provide on 1 March 2021?", OLD, "20 Kč"),
        ("What does Sec. 8 of 907/2019 Sb. say?", NEW, "35 Kč"),
        ("Co říká § 8 zákona o přístavech a převozech?", NEW, "35 Kč"),
        ("Které ustanovení předpisu č. 907/2019 Sb. upravuje „Opuštěná loď“?", NEW, "§ 4"),
        ("Kam vede odkaz „§ 3 zákona č. 907/2019 Sb.“ v § 1 předpisu č. 12/2020 Sb.?", NEW, "Poplatek za stání"),
    ],
)
def test_search_ranks_paragraph_of_version_in_force_on_named_day_first(indexed, question, file, words):
    [retrieved] = indexed[0].search([question])
    assert retrieved.ranked[0].document == file
    assert words in retrieved.ranked[0].text


def test_answer_citation_covers_every_sentence_of_quoted_paragraph(indexed):
    [answered] = indexed[0].answer(["Co stanoví § 3 předpisu č. 907/2019 Sb.?"])
    claims = claims_of(answered.answer.text)
    assert len(claims) > 1 and all(claim.citations == (1,) for claim in claims)
    assert claims_of("“One. Two.” [2]\n\nThree.")[-1].citations == ()


def test_answer_ends_with_validity_period_of_cited_version(indexed):
    [answered] = indexed[0].answer(["Co stanovil § 8 předpisu č. 907/2019 Sb. k 1. 3. 2021?"])
    assert "20 Kč za osobu" in answered.answer.text and answered.answer.citations == (1,)
    assert answered.answer.text.endswith("(Znění účinné od 1. 7. 2019 do 31. 12. 2022)")


def test_answer_refuses_paragraph_absent_on_named_day(indexed):
    repealed = "Co stanovil § 6 předpisu č. 907/2019 Sb. ve znění účinném k 1. 3. 2024?"
    before_the_law = "Co stanovil § 3 předpisu č. 907/2019 Sb. ve znění účinném k 1. 3. 2015?"
    assert all(answered.answer.refused for answered in indexed[0].answer([repealed, before_the_law]))


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("Co stanoví § 8 předpisu č. 907/2019 Sb.?", [NEW]),
        ("Změnil se § 4 předpisu č. 907/2019 Sb. mezi 1. 1. 2020 a 1. 1. 2024?", [OLD, NEW]),
        ("Who pays the rent of the Boathouse?", []),
    ],
)
def test_route_finds_latest_or_named_versions_of_the_cited_law(index, question, documents):
    found = route(question, index)
    assert [index.document(number).filename for number in found.documents] == documents
    assert [index.document(passage.document).filename for passage in found.passages] == documents
    assert documents or found == Route()
