"""Passages: the best answer is first, spans keep the limit without overlap, and each kind of evidence can decide."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Span
from exhibit.law.sentences import tile_clauses
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag.config import Config, Weights
from exhibit.rag.lexicon.bm25 import Words
from exhibit.rag.protocols import make_section_key
from exhibit.rag.retrieval.extents import LEAST, Extents
from exhibit.rag.retrieval.passages import (
    Library,
    SecondLook,
    make_weigher,
    rank_passages,
    score_rows,
    standardise,
    with_context,
)
from exhibit.rag.splitters import rcts
from exhibit.rag.stores.faiss import FaissStore

LEASE = (
    "LEASE between Harrow Mill Ltd. and Alder Lane LLP\n\n"
    "1. Rent. The Tenant shall pay rent of ten thousand crowns each quarter. Rent is due in advance; late rent "
    "bears interest at four per cent.\n\n"
    "2. Repair. The Tenant shall keep the roof and the windows in good repair. The Landlord shall insure the "
    "building against fire and flood, and show the policy to the Tenant on request.\n\n"
    "3. Governing law. This Lease is governed by the laws of Ruritania. The courts of Strelsau have jurisdiction over "
    "any dispute that arises from it."
)
POLICY = (
    "Privacy policy of Kestrel Maps\n\n"
    "We collect the places that you search for. We keep them for ninety days and delete them after that.\n\n"
    "We share no location with advertisers. Partners who draw the maps see an anonymous number only."
)
EMBEDDER = Hashing(64)
NOWHERE = Path("nowhere")
LAWS = "Which law governs?"


def library(*texts: str, size: int = 200, overlap: int = 0) -> Library:
    """Return a library of texts that are split like those of an index, with vectors of the hashing EMBEDDER."""
    store, words, paths = FaissStore(NOWHERE, EMBEDDER.dimensions), Words(), Words()
    rows = []
    for number, text in enumerate(texts):
        for start, end in rcts.split(text, size=size, overlap=overlap):
            rows.append((len(rows), number, start, end, 1, 0))
        paths.add([make_section_key(number, 0)], [""])
    table = np.array(rows, np.int64).reshape(-1, 6)
    chunks = [texts[n][s:e] for _, n, s, e, _, _ in rows]
    store.add(table[:, 0], EMBEDDER.embed(chunks, role="passage"))
    words.add(table[:, 0], chunks)
    return Library(table, store, words, lambda number: texts[number], paths)


def ask(question: str, shelf: Library, documents=None, **options):
    vector = EMBEDDER.embed([question], role="query")[0]
    return rank_passages(question, vector, shelf, documents=documents, **options)


def read(shelf: Library, found) -> list[str]:
    return [shelf.text(p.document)[slice(*p.span)] for p in found.passages]


class Likes:
    """A reranker that scores by one word."""

    name = "likes"

    def __init__(self, word: str) -> None:
        self.word, self.asked = word, []

    def score(self, question: str, passages) -> list[float]:
        self.asked.append((question, list(passages)))
        return [float(self.word in passage) for passage in passages]


# ---------------------------------------------------------------- what is found


def test_the_first_passage_is_the_sentence_that_answers_and_the_rest_follows():
    shelf = library(LEASE, POLICY)
    words = read(shelf, found := ask(LAWS, shelf, {0: 0.0}))
    assert words[0].endswith("This Lease is governed by the laws of Ruritania.")
    assert "courts" not in words[0] and "flood" not in words[0]
    assert any("courts of Strelsau" in passage for passage in words[1:3])
    assert {passage.document for passage in found.passages} == {0}
    scores = [passage.score for passage in found.passages]
    assert scores == sorted(scores, reverse=True)


def test_a_second_look_reads_whole_chunks_and_the_first_passage_is_cut_from_its_choice():
    shelf, fire = library(LEASE, POLICY), Likes("flood")
    plain = ask("Which law governs, on request?", shelf, {0: 0.0})
    found = ask("Which law governs, on request?", shelf, {0: 0.0}, second=SecondLook(fire, first=9, weight=0.1))
    [(asked, chunks)] = fire.asked
    assert asked == "Which law governs, on request?"
    assert set(chunks) == {LEASE[start:end] for _, number, start, end, *_ in shelf.table.tolist() if number == 0}
    first = read(shelf, found)[0]
    assert "show the policy" in first and "roof" not in first  # the sentence, not the chunk
    assert read(shelf, plain)[0] != first
    assert found.trace["reranked"] == {"by": "likes", "chunks": len(chunks), "best": 1.0}
    # the chunks as they were before it, which is the order in which they are given to it
    assert [LEASE[slice(*chunk.span)] for chunk in found.before] == chunks and plain.before is None
    scores = [passage.score for passage in found.passages]
    assert scores == sorted(scores, reverse=True)


def test_a_second_look_moves_only_the_first_and_only_as_far_as_retrieval_lets_it():
    shelf = library(LEASE, POLICY)
    one = ask(LAWS, shelf, {0: 0.0}, second=SecondLook(Likes("roof"), first=1, weight=0.0))
    sure = ask(LAWS, shelf, {0: 0.0}, second=SecondLook(Likes("roof"), first=9, weight=9.0))
    assert read(shelf, one)[0] == read(shelf, sure)[0] == read(shelf, ask(LAWS, shelf, {0: 0.0}))[0]


def test_likelier_documents_come_first_and_less_likely_ones_stay():
    shelf = library(LEASE, POLICY)
    sure = ask("Is data shared?", shelf, {0: -9.0, 1: -0.1})
    assert sure.passages[0].document == 1
    assert {passage.document for passage in sure.passages} == {0, 1}
    other = ask("Is data shared?", shelf, {0: -0.1, 1: -9.0})
    assert other.passages[0].document == 0


def test_with_no_document_known_all_are_searched():
    shelf = library(LEASE, POLICY)
    assert "laws of Ruritania" in read(shelf, ask(LAWS, shelf))[0]
    assert "advertisers" in read(shelf, ask("Do advertisers see my location?", shelf))[0]
    few = ask(LAWS, shelf, candidate_chunks=1)
    assert "laws of Ruritania" in read(shelf, few)[0]
    assert few.trace["compared"] < len(shelf.table)


def test_nothing_to_search_finds_nothing():
    shelf = library("")
    assert ask(LAWS, shelf).passages == ask(LAWS, shelf, {0: 0.0}).passages == ()
    assert ask("of the", library(LEASE), {0: 0.0}).passages  # no word that counts: the vectors decide
    assert ask(LAWS, library(LEASE), {7: 0.0}).passages == ()


def test_the_trace_says_what_each_kind_of_evidence_gave():
    trace = ask(LAWS, library(LEASE), {0: 0.0}).trace
    assert trace["compared"] == 3
    assert set(trace["best"][0]) == {"row", "score", "dense", "lexical", "heading"}
    assert "govern" in trace["words"]


@given(
    st.lists(st.text(alphabet="ab. \n;", max_size=300), min_size=1, max_size=3),
    st.integers(5, 80),
    st.integers(0, 4),
    st.integers(1, 20),
)
def test_passages_keep_to_the_limit_apart_and_within_their_document(texts, limit, overlap, depth):
    shelf = library(*texts, size=limit, overlap=overlap)
    for documents in (None, dict.fromkeys(range(len(texts)), 0.0)):
        found = ask("a ab b", shelf, documents, limit=limit, depth=depth).passages
        assert len(found) <= depth
        seen: set[tuple[int, int]] = set()
        for passage in found:
            start, end = passage.span
            assert 0 <= start < end <= len(texts[passage.document])
            assert end - start <= limit
            characters = {(passage.document, at) for at in range(start, end)}
            assert not seen & characters
            seen |= characters


@given(st.text(alphabet="ab.;: \n", max_size=200), st.integers(1, 60))
def test_sentences_tile_what_is_split(text, limit):
    pieces = tile_clauses(text, 0, len(text), least=LEAST, limit=limit)
    assert "".join(text[slice(*piece)] for piece in pieces) == text
    assert all(0 < end - start <= limit for start, end in pieces)


def test_all_of_a_document_is_found_when_the_depth_allows():
    shelf = library(LEASE)
    covered = {at for p in ask(LAWS, shelf, {0: 0.0}).passages for at in range(*p.span)}
    lost = "".join(LEASE[at] for at in range(len(LEASE)) if at not in covered)
    assert not lost.strip(" \n.,;:")


def test_passages_after_the_first_are_filled_towards_the_better_neighbour():
    text = "".join(f"Sentence {name} of forty characters, no less. " for name in ("one", "two", "six", "ten"))
    size = len(text) // 4
    table = np.array([[i, 0, i * size, (i + 1) * size, 1, 0] for i in range(4)], np.int64)
    extents = Extents(table, lambda _: text, {0: 0.5, 1: 0.0, 2: 3.0, 3: 1.0}, limit=2 * size)
    found = extents.form([(0, 9.0), (2, 3.0)], depth=5, weigh=lambda _: 0.0)
    assert [span for _, span, _ in found] == [Span(0, size - 1), Span(2 * size, 4 * size - 1)]


def test_the_first_passage_is_filled_when_it_need_not_be_tight():
    shelf = library(LEASE)
    whole = read(shelf, ask(LAWS, shelf, {0: 0.0}, trim_first=False))[0]
    assert "laws of Ruritania" in whole and "courts of Strelsau" in whole


def test_what_a_document_says_twice_is_found_once_and_in_another_document_again():
    notice = "Notices go to the registered office of the party by post or by hand."
    text = f"{notice}\n\n{'Nothing of this is on any address. ' * 4}\n\n{notice}"
    shelf = library(text, text, size=len(notice) + 4)
    found = ask("Where do notices go?", shelf, {0: 0.0, 1: 0.0}, limit=len(notice) + 4)
    assert sorted(
        p.document for p, words in zip(found.passages, read(shelf, found), strict=True) if words == notice
    ) == [
        0,
        1,
    ]


# ---------------------------------------------------------------- what counts


def test_each_kind_of_evidence_can_be_switched_off_and_can_decide():
    shelf = library(LEASE)
    rows = {}
    for name in ("lexical", "heading", "neighbours", "section"):
        off = Weights(**{name: 0.0})
        rows[name] = [p.score for p in ask(LAWS, shelf, {0: 0.0}, weights=off).passages]
    full = [p.score for p in ask(LAWS, shelf, {0: 0.0}).passages]
    assert all(scores != full for name, scores in rows.items() if name != "heading")  # this lease has no headings


def test_headings_lift_their_sections():
    text = "Apples are red and sweet to eat here.\n\nPears are green and soft when they are ripe."
    cut = text.index("Pears")
    table = np.array([[0, 0, 0, cut, 1, 0], [1, 0, cut, len(text), 1, 1]], np.int64)
    store, words, headings = FaissStore(NOWHERE, EMBEDDER.dimensions), Words(), Words()
    store.add([0, 1], EMBEDDER.embed(["same", "same"], role="passage"))
    words.add([0, 1], [text[:cut], text[cut:]])
    headings.add([make_section_key(0, 0), make_section_key(0, 1)], ["Term", "Governing law"])
    shelf = Library(table, store, words, lambda _: text, headings)
    assert ask("governing law", shelf, {0: 0.0}).passages[0].row == 1
    assert ask("term", shelf, {0: 0.0}).passages[0].row == 0


def test_neighbours_count_within_a_document_only_and_a_section_rises_with_its_best():
    table = np.array([[0, 0, 0, 1, 1, 0], [1, 0, 1, 2, 1, 0], [2, 1, 0, 1, 1, 0], [3, 1, 1, 2, 1, 1]], np.int64)
    own = np.array([4.0, 0.0, 0.0, 1.0], np.float32)
    beside = with_context(own, table, Weights(neighbours=1.0, section=0.0))
    assert beside.tolist() == pytest.approx([(4 + 2) / 2, (0 + 2) / 2, (0 + 0.5) / 2, (1 + 0.5) / 2])
    lifted = with_context(own, table, Weights(neighbours=0.0, section=0.5))
    assert lifted.tolist() == pytest.approx([6.0, 2.0, 0.0, 1.5])
    assert int(lifted.argmax()) == int(own.argmax())


def test_standard_scores_are_by_group_and_flat_groups_are_nothing():
    values = np.array([1.0, 3.0, 5.0, 5.0], np.float32)
    assert standardise(values, np.array([0, 2])).tolist() == [-1.0, 1.0, 0.0, 0.0]


def hall_of_mirrors(count: int = 40) -> Library:
    """Return a document whose chunks are farther and farther from the question; the last is like the first."""
    text = "".join(f"The clause of number {number:3} is a sentence of its own. " for number in range(count))
    size = len(text) // count
    table = np.array([[n, 0, n * size, (n + 1) * size, 1, n] for n in range(count)], np.int64)
    near = np.linspace(0.9, 0.1, count)
    vectors = np.stack([near, np.zeros(count), np.sqrt(1 - near**2)], axis=1).astype(np.float32)
    vectors[[0, 1, 2, count - 1]] = [(x, np.sqrt(1 - x * x), 0) for x in [*near[:3], near[-1]]]
    store = FaissStore(NOWHERE, 3)
    store.add(table[:, 0], vectors)
    return Library(table, store, Words(), lambda _: text)


ALONE = {"lexical": 0.0, "heading": 0.0, "neighbours": 0.0, "section": 0.0}


@pytest.mark.parametrize(("likeness", "place"), [(0.0, 39), (4.0, 24)])
def test_behind_the_settled_places_chunks_follow_those_that_are_like_the_first(likeness, place):
    shelf, asked = hall_of_mirrors(), np.array([1, 0, 0], np.float32)
    weights = Weights(**ALONE, likeness=likeness)
    found = rank_passages("?", asked, shelf, documents={0: 0.0}, weights=weights, limit=60, trim_first=False)
    rows = [passage.row for passage in found.passages]
    assert rows[:24] == list(range(24)) and rows.index(39) == place and sorted(rows) == list(range(40))


def test_as_many_chunks_as_places_are_settled_stay_as_they_are():
    shelf, asked = hall_of_mirrors(24), np.array([1, 0, 0], np.float32)
    found = rank_passages("?", asked, shelf, documents={0: 0.0}, weights=Weights(**ALONE, likeness=9.0), limit=60)
    assert [passage.row for passage in found.passages] == list(range(24))


def test_without_its_vectors_the_order_stays():
    shelf, asked = hall_of_mirrors(), np.array([1, 0, 0], np.float32)
    shelf.store.vectors = lambda keys: np.zeros((0, 3), np.float32)  # type: ignore[method-assign]
    found = rank_passages("?", asked, shelf, documents={0: 0.0}, weights=Weights(**ALONE, likeness=4.0), limit=60)
    assert found.passages[-1].row == 39


def test_a_store_that_finds_less_than_all_still_ranks():
    shelf = library(LEASE, POLICY)

    class Forgetful:
        def search(self, queries, k, *, within=None):
            scores, keys = shelf.store.search(queries, k, within=within)
            return np.where(np.arange(k) < 2, scores, -np.inf), np.where(np.arange(k) < 2, keys, -1)

        def vectors(self, keys):
            return shelf.store.vectors(keys)

    found = ask(LAWS, replace(shelf, store=Forgetful()), {0: 0.0})  # type: ignore[arg-type]
    assert "laws of Ruritania" in " ".join(read(shelf, found))
    assert all(np.isfinite(passage.score) for passage in found.passages)


def formed(*pieces: str, weights: dict[str, float]) -> list[str]:
    """Return the passages of one chunk, given the weights of its sentences."""
    text = " ".join(pieces)
    extents = Extents(np.array([[0, 0, 0, len(text), 1, 0]]), lambda _: text, {0: 1.0})
    weigh = lambda said: max(value for word, value in weights.items() if word in said)  # noqa: E731
    return [text[slice(*span)] for _, span, _ in extents.form([(0, 1.0)], depth=9, weigh=weigh)]


@pytest.mark.parametrize(("evidence", "kept"), [(0.71, True), (0.7, True), (0.69, False)])
def test_the_first_passage_keeps_sentences_with_seven_tenths_of_the_best_evidence(evidence, kept):
    first, second = (
        "The Tenant pays ten thousand crowns each quarter.",
        "The Landlord pays nothing at all to anybody here.",
    )
    passages = formed(first, second, weights={"Tenant": 1.0, "Landlord": evidence})
    assert passages[0] == (f"{first} {second}" if kept else first)


@pytest.mark.parametrize(("left", "worth"), [("ARTICLE FOURTEE", False), ("ARTICLE FOURTEEN", True)])
def test_fewer_than_sixteen_characters_that_are_left_over_are_no_passage(left, worth):
    first = "The Tenant pays ten thousand crowns each quarter."
    rest = f"{left}{' ' * (40 - len(left))}"
    passages = formed(first, rest, weights={"Tenant": 1.0, "ARTICLE": 0.1})
    assert passages == [first, left] if worth else passages == [first]


def test_words_count_the_more_the_fewer_chunks_of_the_document_have_them():
    shelf = library(LEASE, size=120)
    asked, rows, vector = ["rent", "tenant"], np.arange(len(shelf.table)), np.ones(EMBEDDER.dimensions, np.float32)
    found = score_rows(asked, vector, rows, np.zeros(1, np.int64), shelf, Weights())
    chunks = [LEASE[start:end].lower() for _, _, start, end, _, _ in shelf.table.tolist()]
    spread = [sum(word in chunk for chunk in chunks) for word in asked]
    rare = [math.log(1 + (len(chunks) - n + 0.5) / (n + 0.5)) for n in spread]
    assert 0 < spread[0] < spread[1] < len(chunks) and found["rarity"][0].tolist() == pytest.approx(rare)
    assert found["lexical"].tolist() == pytest.approx((shelf.words.score_terms(asked, rows) @ np.array(rare)).tolist())


def test_what_is_not_told_is_as_the_default_recipe_has_it():
    told, config = rank_passages.__kwdefaults__, Config()
    assert {name: told[name] for name in ("depth", "limit", "candidate_chunks", "trim_first")} == {
        "depth": config.depth, "limit": config.passage_size, "candidate_chunks": config.candidate_chunks,
        "trim_first": config.trim_first,
    }  # fmt: skip


def test_the_weights_of_words_are_added_in_the_order_of_the_question():
    rare = {"rent": 1e17, "due": 1.0, "roof": -1e17, "fire": 0.1}
    for order in permutations(rare):
        weigh = make_weigher(order, np.array([rare[word] for word in order], np.float32))
        weights = dict(zip(order, np.array([rare[word] for word in order], np.float32).tolist(), strict=True))
        held = [word for word in order if word != "fire"]
        assert weigh("Due: the rent, the roof, the rent.") == sum(weights[word] for word in held)
