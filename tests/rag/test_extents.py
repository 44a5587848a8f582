"""Passages computed by hand, from sentences of fifty characters and chunks of a few sentences."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.evidence import Span
from exhibit.models.llms import Completion
from exhibit.rag.config import Config
from exhibit.rag.protocols import Chunk, Hit
from exhibit.rag.retrieval.extents import Extents
from exhibit.rag.retrieval.passages import RankedPassage
from exhibit.rag.retrieval.routed import embed_imagined, to_hits
from exhibit.rag.retrieval.stages import (
    Parts,
    SearchState,
    choose_documents,
    finish,
    keep_near_best,
    keep_within_budget,
    order_by,
    rerank,
)

LETTERS = "abcdefghijkl"
TEXT = "".join(letter * 48 + ". " for letter in LETTERS)  # letter n stands from 50 n to 50 n + 49


def extents(*chunks: tuple[int, int], scores: dict[int, float] | None = None, **options) -> Extents:
    """Return extents over chunks, each given by its first and last letter; a later chunk at 0 is a new document."""
    rows, number = [], 0
    for row, (first, last) in enumerate(chunks):
        number += bool(row and first == 0)
        rows.append((row, number, 50 * first, 50 * last + 50, 1, 0))
    return Extents(np.array(rows, np.int64), lambda _: TEXT, scores or {}, **options)


def formed(made: Extents, *ranked: tuple[int, float], depth: int = 9, likes: str = "") -> list[str]:
    """Return the letters of each passage, preceded by the row around which it was formed."""
    found = made.form(ranked, depth=depth, weigh=lambda text: sum(letter in text for letter in likes))
    return [f"{row}:{''.join(letter for letter in LETTERS if letter in TEXT[slice(*span)])}" for row, span, _ in found]


def test_the_first_is_the_sentence_and_the_rest_of_its_chunk_comes_after_it_on_either_side():
    made = extents((0, 4), limit=500)
    assert formed(made, (0, 1.0), likes="c") == ["0:c", "0:ab", "0:de"]


def test_the_first_keeps_what_stands_between_two_that_answer():
    assert formed(extents((0, 4)), (0, 1.0), likes="bd", depth=1) == ["0:bcd"]
    assert formed(extents((0, 4)), (0, 1.0), likes="", depth=1) == ["0:abcde"], "all where nothing answers"


def test_where_the_first_need_not_be_tight_it_is_filled_to_the_limit():
    made = extents((0, 1), (2, 3), (4, 5), scores={0: 1.0, 1: 0.5, 2: 2.0}, limit=200, trim_first=False)
    assert formed(made, (1, 1.0), likes="c") == ["1:cdef"]
    made = extents((0, 1), (2, 3), (4, 5), scores={0: 3.0, 1: 0.5, 2: 2.0}, limit=200, trim_first=False)
    assert formed(made, (1, 1.0), likes="c") == ["1:abcd"]
    made = extents((0, 1), (2, 3), (4, 5), scores={0: 1.0, 1: 0.5, 2: 2.0}, limit=199, trim_first=False)
    assert formed(made, (1, 1.0)) == ["1:cde"]


def test_nothing_grows_into_another_document_or_past_the_ends():
    made = extents((0, 1), (0, 1), limit=500, trim_first=False)
    assert formed(made, (0, 2.0), (1, 1.0)) == ["0:ab", "1:ab"]
    assert formed(extents((0, 0), trim_first=False), (0, 1.0)) == ["0:a"]


def test_a_chunk_longer_than_the_limit_is_parted_and_its_parts_come_in_order():
    made = extents((0, 4), limit=100, trim_first=False)
    assert formed(made, (0, 1.0)) == ["0:ab", "0:cd", "0:e"]
    assert formed(extents((0, 4), limit=100, trim_first=False), (0, 1.0), depth=2) == ["0:ab", "0:cd"]


def test_chunks_that_overlap_share_nothing():
    made = extents((0, 2), (1, 4), limit=150, trim_first=False)
    assert formed(made, (1, 2.0), (0, 1.0)) == ["1:cde", "0:ab"], "what the first chunk has is not the second's"


def test_scores_are_those_of_the_chunks_and_equals_come_in_their_order():
    made = extents((0, 0), (1, 1), (2, 2), limit=60, trim_first=False)
    found = made.form([(2, 1.0), (0, 1.0), (1, 0.5)], depth=9, weigh=lambda _: 0.0)
    assert [(row, score) for row, _, score in found] == [(2, 1.0), (0, 1.0), (1, 0.5)]


def test_a_stray_mark_in_front_and_space_behind_are_trimmed():
    text = ". ; The rent is due on the first day of each month \n"
    made = Extents(np.array([(0, 0, 0, len(text), 1, 0)], np.int64), lambda _: text, {})
    [(_, span, _)] = made.form([(0, 1.0)], depth=1, weigh=lambda _: 0.0)
    assert text[slice(*span)] == "The rent is due on the first day of each month"
    blank = Extents(np.array([(0, 0, 0, 3, 1, 0)], np.int64), lambda _: " . ", {})
    assert blank.form([(0, 1.0)], depth=1, weigh=lambda _: 0.0) == []


# ---------------------------------------------------------------- stages


def hit(score: float, text: str = "x", document: str = "a.txt") -> Hit:
    return Hit(Chunk(document, Span(0, len(text))), score, text)


def test_a_hit_has_the_page_and_the_headings_of_the_place_where_it_begins():
    table = np.array(
        [(0, 0, 0, 100, 9, 1), (1, 1, 0, 100, 1, 0), (2, 1, 100, 200, 2, 1), (3, 1, 200, 300, 3, -1)], np.int64
    )
    entries = [SimpleNamespace(filename=f"{name}.txt", sections=[("One", 0, 100), ("Two", 100, 300)]) for name in "ab"]
    index = SimpleNamespace(table=table, document=entries.__getitem__, text=lambda chunk: "words")

    def told(start: int, row: int) -> tuple[str, str, int | None]:
        passage = RankedPassage(1, Span(start, start + 9), 0.5, row)
        [hit] = to_hits(index, [passage], lambda number: "words" * 60)  # type: ignore[arg-type]
        chunk = hit.chunk
        return chunk.document, chunk.section, chunk.page

    assert told(100, 2) == ("b.txt", "Two", 2)
    assert told(99, 2) == ("b.txt", "One", 1)
    assert told(50, 3) == ("b.txt", "One", 1)
    assert told(250, 3) == ("b.txt", "Two", 3)
    assert told(-5, 1) == ("b.txt", "One", 1), "never the document before it"


@pytest.mark.parametrize(("threshold", "kept"), [(None, 3), (0.5, 2), (0.4, 1), (0.0, 1), (1.0, 3)])
def test_what_is_far_below_the_best_is_dropped(threshold, kept):
    hits = [hit(1.0), hit(0.5), hit(0.0)]
    assert len(keep_near_best(hits, Config.preset("naive", threshold=threshold))) == kept
    assert keep_near_best([], Config.preset("naive", threshold=threshold)) == []


def test_passages_fit_a_budget_and_the_first_always_does():
    hits = [hit(1.0, "aaaa"), hit(0.9, "bbb"), hit(0.8, "c")]
    for budget, kept in ((8, 3), (7, 2), (4, 1), (1, 1)):
        assert len(keep_within_budget(hits, Config.preset("naive", budget=budget), len)) == kept


class Store:
    """A store that returns the keys of `within`, best last, and one unknown key."""

    def search(self, vectors, k, *, within):
        keys = np.array([[*sorted(within, reverse=True), -1]])
        return np.array([[0.5] * len(within) + [0.0]]), keys


def test_documents_are_judged_by_their_best_and_their_mean_passage():
    index = SimpleNamespace(
        find_document_numbers=lambda keys: [int(key) // 10 for key in keys],
        document=lambda number: SimpleNamespace(filename=f"{number}.txt"),
        store=lambda layer: Store(),
        chunk_keys=lambda numbers: [10 * n + at for n in sorted(numbers) for at in (0, 1)],
    )
    config = Config.preset("naive", document_limit=2, candidates=2, k=3, document_max=0.5, document_mean=0.5)
    keys, scores = np.array([0, 10, 11, 20, 21, 30, 31]), np.array([0.9, 0.8, 0.8, 0.8, 0.2, 0.7, 0.9])
    state = SearchState(question="q", vector=np.zeros(2), keys=keys, scores=scores, trace={})
    choose_documents(state, index, config)  # type: ignore[arg-type]
    # 0: 0.9, 1: 0.8, 2: (0.8 + 0.5) / 2, 3: 0.7, as the seventh candidate is beyond two times three
    assert state.trace["documents"] == {"0.txt": 0.9, "1.txt": 0.8}
    assert state.keys.tolist() == [11, 10, 1, 0] and state.scores.tolist() == [0.5] * 4
    untouched = SearchState(question="q", vector=np.zeros(2), keys=keys, scores=scores, trace={})
    choose_documents(untouched, index, Config.preset("naive"))  # type: ignore[arg-type]
    assert untouched.keys is keys


def test_a_second_look_at_the_first_passages():
    class Words:
        name = "words"

        def score(self, question, passages):
            return [float(len(text)) for text in passages]

    hits = [hit(0.9, "a"), hit(0.8, "bbb"), hit(0.7, "cc"), hit(0.6, "dddd")]
    again = rerank("q", hits, Words(), first=3)
    assert [one.text for one in again] == ["bbb", "cc", "a", "dddd"]
    assert [one.score for one in again] == sorted((one.score for one in again), reverse=True)
    assert order_by([1.0, 1.0, 2.0], [0.0, 1.0, 0.0], weight=1.0) == [1, 2, 0]
    assert order_by([], [], weight=1.0) == []
    assert order_by([0.0, 1.0], [1.0, 0.0], weight=0.0) == [1, 0]


@pytest.mark.parametrize(
    ("settings", "reranker", "sure", "ranked", "selected"),
    [
        ({"depth": 3, "k": 2}, None, None, 3, 2),
        ({"depth": 9, "k": 9}, None, None, 6, 6),
        ({"depth": 9, "k": 2, "candidates": 1, "threshold": 0.25}, None, None, 6, 2),
        ({"depth": 9, "k": 4, "threshold": 0.25}, None, None, 6, 3),
        ({"depth": 9, "k": 4, "budget": 2}, None, None, 6, 2),
        ({"depth": 9, "k": 4, "refuse_below": 0.5, "answerer": "extractive"}, None, 0.4, 6, 0),
        ({"depth": 9, "k": 4, "refuse_below": 0.5}, None, 0.4, 6, 4),
        ({"depth": 9, "k": 4, "refuse_below": 0.5}, None, 0.5, 6, 4),
        ({"depth": 9, "k": 4, "refuse_below": 0.5}, None, None, 6, 4),
    ],
)
def test_the_end_of_the_line(settings, reranker, sure, ranked, selected):
    hits = [hit(1.0 - at / 8, "x") for at in range(6)]
    parts = Parts(None, None, Config.preset("naive", **settings), len, reranker)  # type: ignore[arg-type]
    found = finish("q", hits, parts, {}, confidence=sure)
    assert (len(found.ranked), len(found.selected), found.confidence) == (ranked, selected, sure)
    assert found.trace["selected"]["k"] == selected


def test_a_passage_has_five_hundred_characters_at_most_unless_told_otherwise():
    assert Extents(np.zeros((0, 6), np.int64), lambda _: "", {}).limit == 500
    made = Extents(np.array([(0, 0, 0, 600, 1, 0)], np.int64), lambda _: "x" * 600, {}, trim_first=False)
    assert [span for _, span, _ in made.form([(0, 1.0)], depth=9, weigh=lambda _: 0.0)] == [(0, 500), (500, 600)]


def test_a_question_moves_towards_the_passage_that_is_imagined_by_its_share():
    class Model:
        def complete(self, prompts, *, max_tokens, temperature):
            assert (max_tokens, temperature) == (160, 0.0)
            return [Completion(" passage "), Completion("", error="down"), Completion("opposite")]

    class Embedder:
        def embed(self, texts, *, role):
            assert (texts, role) == (["passage", "opposite"], "passage")
            return np.array([[0.0, 1.0], [-1.0, 0.0]])

    asked = np.array([[1.0, 0.0]] * 3)
    moved, imagined = embed_imagined(["a", "b", "c"], asked, Model(), Embedder(), share=0.25)  # type: ignore[arg-type]
    assert imagined == ["passage", "", "opposite"]
    assert moved[0].tolist() == pytest.approx([0.75 / 0.625**0.5, 0.25 / 0.625**0.5])
    assert moved[1:].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    halves, _ = embed_imagined(["a", "b", "c"], asked, Model(), Embedder(), share=0.5)  # type: ignore[arg-type]
    assert halves[2].tolist() == [1.0, 0.0], "two opposite vectors have no middle"
