"""From scores to passages, each step by hand: order, ties, candidates, groups, rerankers, and depth."""

from __future__ import annotations

from math import log
from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.evidence import Span
from exhibit.rag.config import Config, Weights
from exhibit.rag.lexicon.bm25 import Words
from exhibit.rag.lexicon.documents import Choice
from exhibit.rag.protocols import Chunk, Hit, make_section_key
from exhibit.rag.retrieval import routed as retrieve_module
from exhibit.rag.retrieval.extents import Extents
from exhibit.rag.retrieval.passages import (
    Library,
    SecondLook,
    rank_passages,
    score_rows,
    standardise,
)
from exhibit.rag.retrieval.routed import (
    choose_likely_documents,
    choose_second_look,
    explain_choice,
    library_of,
    retrieve,
    retrieve_dense,
)
from exhibit.rag.retrieval.stages import Parts, SearchState, choose_documents, finish, order_by, rerank
from exhibit.rag.stores import check_rows, make_empty_hits, rank_keys

PLAIN = Weights(lexical=0.0, heading=0.0, neighbours=0.0, section=0.0)
"""Similarity alone."""


def row(*numbers: float) -> np.ndarray:
    return np.array([numbers], np.float32)


def keyed(*numbers: int) -> np.ndarray:
    return np.array([numbers], np.int64)


# ---------------------------------------------------------------- scores in order


def test_the_best_come_first_and_equals_by_their_keys():
    scores, keys = rank_keys(row(1, 3, 3, 2), keyed(4, 9, 2, 1), 3)
    assert scores.tolist() == [[3, 3, 2]] and keys.tolist() == [[2, 9, 1]]
    scores, keys = rank_keys(row(1, 5), keyed(4, -1), 3)
    assert scores.tolist() == [[1, -np.inf, -np.inf]] and keys.tolist()[0][0] == 4
    scores, keys = rank_keys(row(1, 2), keyed(7, 0), 3)
    assert scores.tolist() == [[2, 1, -np.inf]] and keys.tolist() == [[0, 7, -1]]


@pytest.mark.parametrize("width", [15, 16, 17, 18, 40])
def test_of_very_many_the_same_are_best(width):
    scores, keys = np.ones((2, width), np.float32), np.tile(np.arange(width)[::-1], (2, 1))
    scores[0, 3], scores[1, :5] = 2.0, 0.5
    best, best_keys = rank_keys(scores, keys, 2)
    assert best.tolist() == [[2.0, 1.0], [1.0, 1.0]]
    assert best_keys.tolist() == [[width - 4, 0], [0, 1]]


def test_nothing_and_rows_that_do_not_fit():
    scores, keys = make_empty_hits(2, 3)
    assert scores.tolist() == [[-np.inf] * 3] * 2 and keys.tolist() == [[-1] * 3] * 2
    vectors = np.ones((2, 3), np.float32)
    assert check_rows("here", np.array([1, 2]), vectors, 3) == ""
    assert check_rows("here", np.array([1]), vectors, 3) == "here: vectors of shape (2, 3), expected (1, 3)"
    assert check_rows("here", np.array([1, 2]), vectors, 4).endswith("expected (2, 4)")
    vectors[1, 1] = np.nan
    assert "a vector contains NaN or infinity" in check_rows("here", np.array([1, 2]), vectors, 3)


# ---------------------------------------------------------------- a second look


def test_scores_are_joined_in_standard_deviations():
    assert order_by([3.0, 1.0], [0.0, 3e-9], weight=1.1) == [1, 0] == order_by([0.0, 3e-9], [3.0, 1.0], weight=0.9)
    assert order_by([3.0, 1.0], [0.0, 1.5e-9], weight=1.1) == [0, 1], "rounding is no difference"
    assert order_by([4.0, 4.0], [0.0, 1.0], weight=0.1) == [1, 0] and order_by([4.0, 4.0], [1.0, 1.0], weight=1.0) == [
        0,
        1,
    ]
    assert order_by([0.0, 10.0], [1.0, 0.0], weight=1.0) == [0, 1], "equals stay as they are, whatever the scale"
    assert order_by([0.0, 10.0], [1.0, 0.0], weight=1.1) == [0, 1]
    assert order_by([0.0, 10.0], [1.0, 0.0], weight=0.9) == [1, 0]
    assert order_by([0.0, 10.0], [1.0, 0.0], weight=None) == [1, 0]


class Longest:
    """A reranker that prefers long texts."""

    name = "longest"

    def score(self, question, passages):
        return [float(len(text)) for text in passages]


class Joined(Longest):
    retrieval_weight = 0.5


def hit(score: float, text: str = "x") -> Hit:
    return Hit(Chunk("a.txt", Span(0, len(text))), score, text)


def test_thirty_two_are_looked_at_unless_told_otherwise():
    hits = [hit(1.0 - at / 100, "x" * (at + 1)) for at in range(33)]
    again = rerank("?", hits, Longest())
    assert [len(one.text) for one in again] == [*range(32, 0, -1), 33]
    assert [one.score for one in again] == [one.score for one in hits]


def test_the_second_look_is_taken_once_and_told():
    hits = [hit(0.9, "x"), hit(0.8, "xxx"), hit(0.7, "xx")]
    parts = Parts(None, None, Config.preset("naive", rerank=2, k=2), len, Longest())  # type: ignore[arg-type]
    found = finish("?", hits, parts, {"before": 1})
    assert [one.text for one in found.ranked] == ["xxx", "x", "xx"]
    assert found.trace["reranked"] == {"by": "longest", "passages": 2} and found.trace["before"] == 1
    assert found.trace["selected"] == {"near": 3, "within budget": 3, "k": 2} and found.question == "?"
    few = finish("?", hits[:1], parts, {})
    assert few.trace["reranked"] == {"by": "longest", "passages": 1}
    before = finish("?", hits, parts, {}, reranked=True)
    assert [one.text for one in before.ranked] == ["x", "xxx", "xx"] and "reranked" not in before.trace


def test_what_is_near_and_fits_the_budget_is_counted():
    hits = [hit(1.0 - at / 10) for at in range(8)]
    parts = Parts(None, None, Config.preset("naive", k=2, candidates=3, threshold=0.45, budget=4), len)  # type: ignore[arg-type]
    found = finish("?", hits, parts, {})
    assert found.trace["selected"] == {"near": 5, "within budget": 4, "k": 2}
    assert [one.score for one in found.selected] == [1.0, 0.9]


def test_a_reranker_with_a_weight_reads_chunks_and_others_read_passages():
    def look(reranker):
        return choose_second_look(Parts(None, None, Config.preset("routed", rerank=7), len, reranker))  # type: ignore[arg-type]

    assert look(None) is None and look(Longest()) is None
    second = look(Joined())
    assert (second.first, second.weight, second.reranker.name) == (7, 0.5, "longest")


# ---------------------------------------------------------------- documents first


def test_equal_documents_are_taken_by_number_and_no_more_of_them_than_asked():
    asked = []

    class Store:
        def search(self, vectors, k, *, within):
            asked.append((vectors.shape, k, sorted(within)))
            return np.array([[0.5, 0.4]]), np.array([[11, 0]])

    index = SimpleNamespace(
        find_document_numbers=lambda keys: [int(key) // 10 for key in keys],
        document=lambda number: SimpleNamespace(filename=f"{number}.txt"),
        store=lambda layer: Store(),
        chunk_keys=lambda numbers: [10 * n for n in numbers],
    )
    config = Config.preset("naive", document_limit=2, candidates=4, k=2, document_max=0.25, document_mean=0.75)
    scores = np.array([0.61234567, 0.9, 0.7, 0.9, 0.7])
    state = SearchState("?", np.zeros(3), np.array([30, 20, 21, 10, 11]), scores, {})
    choose_documents(state, index, config)  # type: ignore[arg-type]
    # 1 and 2: 0.9 / 4 + 0.8 * 3 / 4
    assert list(state.trace["documents"].items()) == [("1.txt", 0.825), ("2.txt", 0.825)]
    assert asked == [((1, 3), 5, [10, 20])]
    assert state.keys.tolist() == [11, 0] and state.scores.tolist() == [0.5, 0.4]
    three = SearchState("?", np.zeros(3), np.array([30, 20, 21, 10, 11]), scores, {})
    choose_documents(three, index, config.model_copy(update={"document_limit": 3}))  # type: ignore[arg-type]
    assert three.trace["documents"]["3.txt"] == 0.6123, "four places of it are told"
    empty = SearchState("?", np.zeros(3), np.array([], np.int64), np.array([]), {})
    choose_documents(empty, index, config)  # type: ignore[arg-type]
    assert empty.trace == {} and len(asked) == 2


def test_a_dense_search_is_as_deep_as_metrics_or_candidates_need():
    asked = []

    class Store:
        def search(self, vectors, k, *, within=None):
            asked.append(k)
            return np.array([[0.9, 0.5, 0.0]] * 2), np.array([[0, 1, -1], [1, -1, -1]])

    class Embedder:
        def embed(self, texts, *, role):
            assert role == "query"
            return np.zeros((len(texts), 2))

    chunks = [Chunk("a.txt", Span(0, 5)), Chunk("b.txt", Span(5, 9))]
    index = SimpleNamespace(store=lambda layer: Store(), chunk=lambda key: chunks[key], text=lambda c: c.document)
    for settings, depth in (({"depth": 3, "candidates": 2, "k": 1}, 3), ({"depth": 3, "candidates": 2, "k": 4}, 8)):
        parts = Parts(index, Embedder(), Config.preset("naive", **settings), len)  # type: ignore[arg-type]
        one, two = retrieve_dense(["first?", "second?"], parts)
        assert asked.pop() == depth
        assert one.trace["search"] == {"layer": "chunk", "depth": depth, "found": 2}
        assert two.trace["search"]["found"] == 1 and (one.question, two.question) == ("first?", "second?")
        assert [(h.chunk.document, h.score, h.text) for h in one.ranked] == [
            ("a.txt", 0.9, "a.txt"), ("b.txt", 0.5, "b.txt"),
        ]  # fmt: skip
        assert [h.score for h in two.ranked] == [0.9]


def test_questions_are_searched_in_batches_and_blank_ones_not_at_all(monkeypatch):
    batches = []

    def way(questions, parts):
        batches.append(list(questions))
        return [f"found {question}" for question in questions]

    monkeypatch.setattr(retrieve_module, "retrieve_dense", way)
    monkeypatch.setattr(retrieve_module, "retrieve_routed", lambda questions, parts: ["routed"] * len(questions))
    parts = Parts([1], None, Config.preset("naive"), len)  # type: ignore[arg-type]
    questions = [f"q{number}" for number in range(257)]
    questions[3:3] = [" \n"]
    found = retrieve(questions, parts)
    assert [len(batch) for batch in batches] == [256, 1]
    assert found[2] == "found q2" and found[4] == "found q3" and found[-1] == "found q256"
    assert (found[3].question, found[3].ranked, found[3].trace) == (" \n", (), {"search": "blank question"})
    routed = Parts([1], None, Config.preset("routed"), len)  # type: ignore[arg-type]
    assert retrieve(["q"], routed) == ["routed"]
    batches.clear()
    [empty] = retrieve(["q"], Parts([], None, Config.preset("naive"), len))  # type: ignore[arg-type]
    assert empty.trace == {"search": "blank question"} and not batches


# ---------------------------------------------------------------- likely documents


@pytest.mark.parametrize(
    ("weights", "kept"),
    [
        ([0.6, 0.395, 0.005], [0, 1]),  # two hold 0.99
        ([0.99, 0.01], [0]),
        ([0.989, 0.006, 0.005], [0, 1]),
        ([0.3, *[0.7 / 99] * 99], None),  # eight hold 0.35
        ([0.5, *[0.5 / 99] * 99], list(range(8))),
        ([0.5, 0.5], None),  # nothing tells them apart
        ([0.2, 0.3, 0.5], [2, 1, 0]),
    ],
)
def test_as_many_documents_as_hold_nearly_all_of_the_likelihood_if_they_hold_half(weights, kept):
    choice = Choice(np.arange(len(weights)), np.log(weights))
    likely = choose_likely_documents(choice, Config.preset("routed", most_documents=8))
    assert (None if likely is None else list(likely)) == kept
    if likely:
        assert likely[kept[0]] == pytest.approx(log(weights[kept[0]]))
    assert choose_likely_documents(Choice(np.zeros(0, np.int64), np.zeros(0)), Config.preset("routed")) is None


def test_the_likeliest_are_told_by_the_names_of_their_files():
    choice = Choice(np.array([1, 0]), np.log([0.75, 0.25]), {"names": np.array([2.0, 0.0])})
    index = SimpleNamespace(document=lambda number: SimpleNamespace(filename=("a.txt", "b.txt")[number]))
    assert explain_choice(choice, index) == {  # type: ignore[arg-type]
        "sure": 0.75,
        "likeliest": {"b.txt": {"weight": 0.75, "names": 2.0}, "a.txt": {"weight": 0.25}},
    }


def test_pieces_are_remembered_for_one_table_and_limit():
    class Index:
        lexicon = SimpleNamespace(chunks="words", headings="headings")
        layers = ("chunk",)
        missing = 0

        def __init__(self) -> None:
            self.table = np.zeros((1, 6))

        def store(self, layer):
            return f"store of {layer}"

        def text_of(self, number):
            return f"text {number}"

    index = Index()
    first, same, other = library_of(index, 500), library_of(index, 500), library_of(index, 400)  # type: ignore[arg-type]
    assert first.tiles is same.tiles and first.tiles is not other.tiles
    assert (first.store, first.words, first.headings) == ("store of chunk", "words", "headings")
    assert first.table is index.table and first.text(1) == "text 1" and first.summaries is None and first.gists is None
    index.table = np.zeros((2, 6))
    assert library_of(index, 400).tiles is not other.tiles  # type: ignore[arg-type]
    assert library_of(Index(), 400).tiles is not library_of(index, 400).tiles  # type: ignore[arg-type]


# ---------------------------------------------------------------- evidence


class Scores:
    """A store with a given similarity for each key; it returns the best first."""

    def __init__(self, **scores: float) -> None:
        self.scores = {int(key[1:]): score for key, score in scores.items()}

    def search(self, vectors, k, *, within=None):
        assert vectors.shape == (1, 2)
        keys = [key for key in self.scores if within is None or key in within]
        keys.sort(key=lambda key: -self.scores[key])
        found = [*keys, *[-1] * k][:k]
        return np.array([[self.scores.get(key, -9.0) for key in found]], np.float32), np.array([found])


VECTOR = np.zeros(2, np.float32)


def test_what_a_store_does_not_find_is_as_far_as_the_farthest():
    def near(chunks: int, store: Scores, *, first: int = 10) -> list[float]:
        made = shelf(["oak"] * chunks, store, first=first)
        return score_rows([], VECTOR, np.arange(chunks), np.zeros(1, np.int64), made, PLAIN)["dense"].tolist()

    assert near(3, Scores(k10=0.5, k12=0.25)) == [0.5, 0.25, 0.25]
    assert near(3, Scores(k10=0.1, k11=0.2, k12=0.3)) == pytest.approx([0.1, 0.2, 0.3])
    assert near(2, Scores(k17=1.0)) == [0.0, 0.0]
    assert near(2, Scores(k0=0.5, k1=-0.5), first=0) == [0.5, -0.5]


def shelf(
    texts: list[str], store, *, sections: list[int] | None = None, owners: list[int] | None = None, first: int = 10
) -> Library:
    """Return a library with one chunk per text, with keys from ten, in one document unless told otherwise."""
    rows, words, start = [], Words(), 0
    owners = owners or [0] * len(texts)
    for at, text in enumerate(texts):
        start = 0 if at and owners[at] != owners[at - 1] else start
        rows.append((first + at, owners[at], start, start + len(text), 1, (sections or [0] * len(texts))[at]))
        start += len(text)
    words.add(range(first, first + len(texts)), texts)
    joined = {n: "".join(t for t, owner in zip(texts, owners, strict=True) if owner == n) for n in set(owners)}
    return Library(np.array(rows, np.int64), store, words, joined.__getitem__)


def test_a_pool_is_the_nearest_those_with_the_words_and_their_neighbours():
    texts = ["rent"] + ["plain"] * 4 + ["oak"] + ["plain"] * 5 + ["elm"]
    made = shelf(texts, Scores(k13=0.9, k21=0.8, k15=0.1))

    def compared(asked: str, library: Library, size: int) -> tuple[int, list[int]]:
        trace = rank_passages(asked, VECTOR, library, candidate_chunks=size, weights=PLAIN).trace
        return trace.get("compared", 0), sorted(one["row"] for one in trace.get("best", ()))

    assert compared("oak", made, 1) == (5, [2, 3, 4, 5, 6])
    made = shelf(texts, Scores(k13=0.9, k21=0.8, k20=0.7, k10=0.1, k11=0.1, k12=0.1, k14=0.1))
    assert compared("rent", made, 2) == (7, [0, 1, 3, 10, 11]), "0 to 4, 10 and 11, of which the best are told"
    assert compared("of", shelf(texts, Scores()), 2) == (0, [])
    assert compared("of", shelf(texts, Scores(k10=1.0)), 3) == (2, [0, 1]), "key 10 is the first row"


def test_rows_of_documents_come_in_order_whatever_order_they_are_asked_in():
    made = shelf(["a"] * 5, Scores(), owners=[0, 0, 2, 2, 5])
    assert made.rows([2, 0]).tolist() == [0, 1, 2, 3] and made.rows([5]).tolist() == [4]
    assert made.rows([1, 7]).tolist() == [] and made.rows([]).tolist() == []


def test_a_row_has_the_weight_of_its_document_below_the_likeliest():
    made = shelf([long(word) for word in ("a1", "b1", "c1")], Scores(), owners=[2, 2, 7])
    weights = PLAIN.model_copy(update={"document": 2.0})
    found = rank_passages("of", VECTOR, made, documents={7: -0.5, 2: -2.0}, limit=60, weights=weights)
    assert [(one.document, one.score) for one in found.passages] == [(7, 0.0), (2, -3.0), (2, -3.0)]


def test_differences_of_rounding_are_none():
    values = np.array([0, 3e-6, 0, 1.5e-6], np.float32)
    assert standardise(values, np.array([0, 2])).tolist() == pytest.approx([-1.0, 1.0, 0.0, 0.0])
    assert standardise(np.array([1, 2, 6], np.float32), np.array([0])).tolist() == pytest.approx(
        [-2 / (14 / 3) ** 0.5, -1 / (14 / 3) ** 0.5, 3 / (14 / 3) ** 0.5]
    )


def test_evidence_is_added_up_as_it_is_weighed():
    headings = Words()
    headings.add([make_section_key(0, 0), make_section_key(0, 1), make_section_key(1, 0)], ["rent", "plain", "plain"])
    store = Scores(k10=0.4, k11=0.2, k12=0.7, k13=0.5)
    made = shelf(["oak rent", "elm oak", "oak", "rent fir"], store, sections=[0, 1, -1, 0], owners=[0, 0, 1, 1])
    made = Library(made.table, store, made.words, made.text, headings)
    rows, groups = np.arange(4), np.array([0, 2])
    asked = ["oak", "rent"]
    found = score_rows(asked, VECTOR, rows, groups, made, Weights(lexical=0.5, heading=0.25))
    assert found["dense"].tolist() == pytest.approx([0.4, 0.2, 0.7, 0.5])
    rare = {1: log(1 + 1.5 / 1.5), 2: log(1 + 0.5 / 2.5)}
    assert found["rarity"].tolist() == [pytest.approx([rare[2], rare[1]]), pytest.approx([rare[1], rare[1]])]
    assert found["heading"][0] > 0 and found["heading"].tolist()[1:] == [0.0, 0.0, 0.0]
    # within its document each is one deviation above or below the other; in the second a chunk has half of the words
    half = _side(found) / 2
    assert found["own"].tolist() == pytest.approx([1 + 0.5 + 0.25, -1 - 0.5 - 0.25, 1 + half, -1 - half])
    without = score_rows(asked, VECTOR, rows, groups, made, Weights(lexical=0.5, heading=0.0))
    assert "heading" not in without and without["own"][0] == pytest.approx(1.5)


def test_words_count_by_the_share_of_them_that_one_chunk_holds():
    store = Scores(k10=0.4, k11=0.4, k12=0.4)
    made = shelf(["oak rent", "oak", "fir"], store, sections=[0, 0, 0], owners=[0, 0, 0])
    rows, groups = np.arange(3), np.zeros(1, np.int64)
    weights = Weights(lexical=1.0, heading=0.0)
    whole = score_rows(["oak", "rent"], VECTOR, rows, groups, made, weights)
    assert whole["own"].tolist() == pytest.approx(standardise(whole["lexical"], groups).tolist())
    strange = score_rows(["oak", "rent", "zebra"], VECTOR, rows, groups, made, weights)
    rare = strange["rarity"][0]
    share = float(rare[:2].sum() / rare.sum())
    assert 0.2 < share < 0.7
    assert strange["own"].tolist() == pytest.approx(
        (share * standardise(strange["lexical"], groups)).tolist(), abs=1e-6
    )
    # a whole collection holds nearly every word somewhere: nothing is taken off there
    anywhere = score_rows(["oak", "rent", "zebra"], VECTOR, rows, groups, made, weights, within=False)
    assert anywhere["own"].tolist() == pytest.approx(standardise(strange["lexical"], groups).tolist(), abs=1e-6)
    nothing = score_rows([], VECTOR, rows, groups, made, weights)
    assert nothing["own"].tolist() == [0.0, 0.0, 0.0]


def _side(found) -> float:
    first, second = found["lexical"].tolist()[2:]
    return 0.5 if first > second else -0.5 if first < second else 0.0


def test_a_text_weighs_the_words_that_were_asked_each_once(monkeypatch):
    weighed = []
    monkeypatch.setattr(Extents, "form", lambda self, ranked, *, depth, weigh: weighed.append(weigh) or [])
    made = shelf(["oak rent", "oak", "fir"], Scores(k10=0.4, k11=0.3, k12=0.2))
    rank_passages("oak rent", VECTOR, made, documents={0: 0.0}, weights=PLAIN)
    [weigh] = weighed
    rare = score_rows(["oak", "rent"], VECTOR, np.arange(3), np.zeros(1, np.int64), made, PLAIN)["rarity"][0].tolist()
    assert weigh("The rent, the RENT and an oak") == sum(rare) and weigh("elm") == 0
    assert [weigh("oak"), weigh("Rent")] == rare and rare[0] < rare[1]


# ---------------------------------------------------------------- passages


def long(word: str) -> str:
    """Return a sentence of sixty characters that begins with a word."""
    return f"{word} {'x' * (57 - len(word))}. "


def test_four_chunks_are_looked_at_for_each_passage_that_is_asked_for():
    for unique, found in ((7, 2), (8, 1)):
        texts = [long("same") for _ in range(12)]
        texts[unique] = long("other")
        store = Scores(**{f"k{10 + at}": 1.0 - at / 20 for at in range(12)})
        ranked_passages = rank_passages(
            "of the", VECTOR, shelf(texts, store), documents={0: 0.0}, depth=2, limit=60, weights=PLAIN
        )
        assert len(ranked_passages.passages) == found, unique


def test_the_trace_has_the_first_five_in_figures():
    similar = [0.123456, 0.2, 0.3, 0.4, 0.5, 0.6, 0.923456]
    store = Scores(**{f"k{10 + at}": value for at, value in enumerate(similar)})
    texts = [long(f"oak{at}") for at in range(7)]
    found = rank_passages("elm of", VECTOR, shelf(texts, store), documents={0: 0.0}, weights=PLAIN)
    best = (similar[6] - np.mean(similar)) / np.std(similar)  # 1.9432638
    assert found.trace["words"] == ["elm"] and found.trace["compared"] == 7
    assert found.trace["best"][0] == {"row": 6, "score": round(best, 3), "dense": 0.923, "lexical": 0.0}
    assert [one["row"] for one in found.trace["best"]] == [6, 5, 4, 3, 2] and found.confidence is None
    assert found.passages[0].score == pytest.approx(best, abs=1e-5) and found.passages[0].row == 6


def test_where_any_document_may_answer_all_rows_are_compared_as_one():
    store = Scores(k10=0.9, k11=0.1, k12=0.8, k13=0.0)
    made = shelf([long(word) for word in ("a1", "b1", "c1", "d1")], store, owners=[0, 0, 1, 1])
    anywhere = rank_passages("of", VECTOR, made, candidate_chunks=4, limit=60, weights=PLAIN)
    assert [passage.row for passage in anywhere.passages] == [0, 2, 1, 3]
    within = rank_passages("of", VECTOR, made, documents={0: 0.0, 1: 0.0}, limit=60, weights=PLAIN)
    assert [passage.score for passage in within.passages[:2]] == pytest.approx([1.0, 1.0])
    likelier = rank_passages("of", VECTOR, made, documents={0: -3.0, 1: 0.0}, limit=60, weights=PLAIN)
    assert [passage.document for passage in likelier.passages][:2] == [1, 1]


def test_a_second_look_keeps_the_scores_of_places_and_says_how_sure_it_is():
    class Sure:
        name = "sure"

        def score(self, question, passages):
            self.read = list(passages)
            return [0.12345, 0.98765]

        def confidence(self, scores):
            return max(scores) / 2

    reranker = Sure()
    store = Scores(k10=0.9, k11=0.5, k12=0.1)
    texts = [long(word) for word in ("a1", "b1", "c1")]
    made = shelf(texts, store)
    found = rank_passages(
        "of", VECTOR, made, documents={0: 0.0}, limit=60, weights=PLAIN, second=SecondLook(reranker, 2, 0.0)
    )
    assert reranker.read == texts[:2] and [passage.row for passage in found.passages] == [1, 0, 2]
    scores = [passage.score for passage in found.passages]
    assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(1.2247, abs=1e-3)
    assert found.trace["reranked"] == {"by": "sure", "chunks": 2, "best": 0.988}
    assert found.confidence == pytest.approx(0.98765 / 2)


# ---------------------------------------------------------------- extents


LETTERS = "abcdefghijkl"
TEXT = "".join(letter * 48 + ". " for letter in LETTERS)


def extents(*chunks: tuple[int, int], scores: dict[int, float] | None = None, **options) -> Extents:
    rows = [(at, 0, 50 * first, 50 * last + 50, 1, 0) for at, (first, last) in enumerate(chunks)]
    return Extents(np.array(rows, np.int64), lambda _: TEXT, scores or {}, **options)


def formed(made: Extents, *order: tuple[int, float], depth: int = 9, likes: str = "") -> list[str]:
    found = made.form(order, depth=depth, weigh=lambda text: sum(letter in text for letter in likes))
    return [f"{at}:{''.join(letter for letter in LETTERS if letter in TEXT[slice(*span)])}" for at, span, _ in found]


def test_what_is_left_of_a_chunk_comes_in_stretches_as_long_as_they_fit():
    assert formed(extents((0, 4)), (0, 1.0), likes="b") == ["0:b", "0:a", "0:cde"]
    assert formed(extents((0, 4), limit=100), (0, 1.0), likes="b") == ["0:b", "0:cd", "0:e", "0:a"]
    assert formed(extents((0, 4), limit=99), (0, 1.0), likes="b") == ["0:a", "0:b", "0:c", "0:d", "0:e"]


def test_equal_chunks_that_are_parted_take_turns_in_their_order():
    made = extents((0, 3), (4, 7), limit=100, trim_first=False)
    assert formed(made, (1, 1.0), (0, 1.0)) == ["1:ef", "1:gh", "0:ab", "0:cd"]


def test_what_is_left_of_the_first_comes_after_its_equals():
    made = extents((0, 1), (2, 2), limit=100, trim_first=True)
    assert formed(made, (0, 1.0), (1, 1.0), likes="a") == ["0:a", "1:bc"]
    made = extents((0, 1), (3, 3), limit=100, trim_first=True)
    assert formed(made, (0, 1.0), (1, 1.0), likes="a") == ["0:a", "1:d", "0:b"]


def test_a_passage_grows_through_several_chunks_and_stops_at_what_is_taken():
    made = extents((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), limit=150, trim_first=False)
    assert formed(made, (2, 1.0)) == ["2:cde"], "forward first where no neighbour has a score"
    made = extents((0, 0), (1, 1), (2, 2), (3, 3), scores={0: 1.0, 1: 2.0, 3: 0.5}, limit=150, trim_first=False)
    assert formed(made, (2, 1.0), (3, 0.5)) == ["2:abc", "3:d"]
    made = extents((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), limit=500, trim_first=False)
    assert formed(made, (4, 2.0), (0, 1.0), depth=1) == ["4:abcde"]


@pytest.mark.parametrize(("length", "alone"), [(39, False), (40, True)])
def test_forty_characters_stand_for_themselves(length, alone):
    text = "q" * (length - 2) + ". " + "r" * 60 + ". "
    made = Extents(np.array([(0, 0, 0, len(text), 1, 0)], np.int64), lambda _: text, {})
    [(_, span, _)] = made.form([(0, 1.0)], depth=1, weigh=lambda said: float("q" in said))
    assert (len(text[slice(*span)]) < 40) is alone
