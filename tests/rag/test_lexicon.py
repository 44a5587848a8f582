"""Words and names: BM25 by hand, parts of German words, and the documents that a question names."""

import math

import numpy as np
import pytest

from exhibit.law.profile import Profile
from exhibit.rag.documents import DocumentNames, read_names
from exhibit.rag.lexicon import LENGTH, SATURATION, Database, Words, compute_rarity, count_terms
from exhibit.rag.questions import Query, understand

TEXTS = ("rent rent deposit", "deposit", "insurance of the roof", "")


@pytest.fixture
def database(tmp_path) -> Database:
    return Database(tmp_path / "words.sqlite")


def make_words(database: Database, texts=TEXTS, *, parts: bool = False) -> Words:
    words = Words(database)
    words.add(range(len(texts)), count_terms(texts, parts=parts))
    words.save()
    return Words(database)


def test_bm25_scores_equal_the_formula(database):
    words = make_words(database)
    scores, keys = words.search(["rent", "deposit"], 10)
    mean = 6 / 4
    norm = [SATURATION * (1 - LENGTH + LENGTH * length / mean) for length in (3, 1)]
    rarity = [math.log1p((4 - df + 0.5) / (df + 0.5)) for df in (1, 2)]
    first = rarity[0] * 2 * 2.2 / (2 + norm[0]) + rarity[1] * 2.2 / (1 + norm[0])
    assert keys.tolist() == [0, 1]
    assert scores == pytest.approx([first, rarity[1] * 2.2 / (1 + norm[1])], rel=1e-5)
    assert words.scores(["rent", "deposit"], np.array([0, 1])) == pytest.approx(scores, rel=1e-5)


def test_tfidf_scores_equal_cosine_formula(database):
    scores, keys = make_words(database).search(["rent", "deposit"], 10, method="tfidf")
    rent, deposit = compute_rarity(np.array([1, 2]), 4).tolist()
    norm = math.hypot(2 * rent, deposit)
    assert keys.tolist() == [0, 1] and scores == pytest.approx([(2 * rent**2 + deposit**2) / norm, deposit], rel=1e-4)


def test_compound_parts_have_a_third_of_the_weight_of_words(database):
    """A compound's parts are counted in addition to the compound; as whole words they would lengthen the text."""
    texts = ("Miete Haus", "Miete Haus Mietvertragsrecht")
    counted, plain = count_terms(texts, parts=True), count_terms(texts)
    parts = [int((count & 0x7F) * bool(count & 0x80)) for count in counted.counts]
    assert sum(parts) > 0 and counted.lengths.sum() == pytest.approx(plain.lengths.sum() + sum(parts) / 3)
    words = make_words(database, texts, parts=True)
    weights = compute_rarity(np.array([1, 2]), 2)  # the rarity of a word in one text, and of a word in both texts
    sizes = [int(size) for size in counted.sizes]
    squares = np.zeros(2)
    for row, (start, end) in enumerate(((0, sizes[0]), (sizes[0], sum(sizes)))):
        for term, count in zip(counted.terms[start:end], counted.counts[start:end].tolist(), strict=True):
            weight = weights[1 if (counted.terms == term).sum() == 2 else 0] * (count & 0x7F)
            squares[row] += float(weight / 3 if count & 0x80 else weight) ** 2
    assert words._norms == pytest.approx(np.sqrt(squares + 1e-9), rel=1e-4)


def test_word_index_reloads_without_removed_texts(tmp_path):
    database = Database(tmp_path / "w.sqlite")
    words = Words(database)
    words.add([3, 4, 9], count_terms(["rent", "rent deposit", "rent"]))
    words.save()
    Words(database).remove(np.array([4, 77]))
    database.save()
    database = Database(tmp_path / "w.sqlite")
    again = Words(database)
    assert again.search(["rent"], 5)[1].tolist() == [3, 9] and not len(again.search(["deposit"], 5)[1])
    again.add([12], count_terms(["deposit"]))
    again.save()
    more = Words(database)
    assert more.search(["deposit"], 5)[1].tolist() == [12] and len(more) == 3


def test_word_search_finds_the_text_with_the_searched_term(database):
    terms = [f"k{chr(97 + n // 26)}{chr(97 + n % 26)}k" for n in range(60)]
    words = make_words(database, [f"{term} roof" for term in terms])
    assert all(words.search([term], 1)[1].tolist() == [n] for n, term in enumerate(terms))
    assert len(words.search(["roof"], 100)[1]) == 60


CONTRACTS = {
    "alder.txt": Profile("Supply Agreement", "contract", ("Alder Ltd", "Dune plc")),
    "birch.txt": Profile("Supply Agreement", "contract", ("Birch Inc.", "Dune plc")),
    "cedar.txt": Profile("Cedar Privacy Policy", "privacy policy", ()),
    "lease.txt": Profile("Commercial Lease", "contract", ("Elm Estates", "Fox Bakery")),
}


@pytest.fixture
def names(database) -> DocumentNames:
    names = DocumentNames(database)
    for number, (filename, profile) in enumerate(CONTRACTS.items()):
        text = f"{profile.title}\nbetween {' and '.join(profile.parties)}.\nThe parties agree."
        names.add(number, read_names(filename, profile, text))
    names.save()
    return DocumentNames(database)


def choose(names: DocumentNames, question: str) -> str:
    choice = names.score(understand(question, names.has_rare_name))
    best = next(iter(choice.choose_best(1)))
    return list(CONTRACTS)[best]


@pytest.mark.parametrize(
    ("question", "filename"),
    [
        ("Consider the Supply Agreement between Birch Inc. and Dune plc; who pays?", "birch.txt"),
        ("Under the Alder contract, when does it end?", "alder.txt"),
        ("What does Cedar do with my data?", "cedar.txt"),
        ("Who pays for repairs under the Commercial Lease of Fox Bakery?", "lease.txt"),
        ("consider the supply agreement of alder; who pays?", "alder.txt"),
    ],
)
def test_document_names_choose_document_named_in_question(names, question, filename):
    assert choose(names, question) == filename


def test_document_names_weigh_all_documents_equally_when_question_names_no_document(names):
    choice = names.score(Query("Who pays?", asks="Who pays?"))
    assert np.ptp(choice.log_weights) == 0 and np.exp(choice.log_weights).sum() == pytest.approx(1)


def test_document_names_lower_weight_of_document_whose_kind_differs_from_the_question(names):
    weights = dict(names.score(Query("?", kind="privacy policy")).choose_best(4))
    assert weights[2] == max(weights.values()) and weights[0] == pytest.approx(weights[2] - 2.3)


def test_document_names_do_not_choose_removed_document(names, database):
    names.remove(1)
    rest = DocumentNames(database)
    assert 1 not in rest.score(understand("the Birch agreement; who pays?", rest.has_rare_name)).numbers
