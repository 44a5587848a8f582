"""The words of chunks: BM25 by its formula, and no trace of removed chunks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.law.language import list_asked_terms, list_word_parts, search_terms
from exhibit.rag.database import Database
from exhibit.rag.lexicon import postings
from exhibit.rag.lexicon.bm25 import LENGTH, SATURATION, Words, compute_rarity, count_terms
from exhibit.schemas.errors import BundleError

CLAUSES = [
    "This Agreement is governed by the laws of Ruritania, and governing law excludes conflicts rules.",
    "Either party may terminate upon thirty (30) days' notice.",
    "Termination does not release a party from payment within 30 days.",
    "Harrow Mill Ltd. shall keep Confidential Information secret; Confidential Information excludes public facts.",
]
TEXTS = st.lists(st.lists(st.sampled_from(["law", "notice", "term", "30", "mill"]), max_size=8), max_size=8)


def made(texts: list[str], first: int = 0) -> Words:
    words = Words()
    words.add(range(first, first + len(texts)), texts)
    return words


def by_the_book(asked: list[str], texts: list[str]) -> list[float]:
    """Return BM25 by the textbook's formula, one text at a time."""
    bags = [search_terms(text) for text in texts]
    mean = sum(map(len, bags)) / max(1, len(bags)) or 1.0
    scores = []
    for bag in bags:
        score = 0.0
        for term in asked:
            spread = sum(term in other for other in bags)
            idf = math.log(1 + (len(bags) - spread + 0.5) / (spread + 0.5))
            norm = SATURATION * (1 - LENGTH + LENGTH * len(bag) / mean)
            score += idf * bag.count(term) * (SATURATION + 1) / (bag.count(term) + norm)
        scores.append(score)
    return scores


def test_terms_are_stems_and_numbers():
    assert search_terms("Either party may terminate upon 30 days' notice under 4.2.") == [
        *search_terms("party terminated days notices"),
        "30",
        "4.2",
    ]
    assert search_terms("termination") == search_terms("terminates")
    assert search_terms("of the and which") == []


@given(TEXTS, st.lists(st.sampled_from(["law", "notice", "term", "30", "absent"]), max_size=4, unique=True))
def test_scores_are_the_formulas(bags, asked):
    texts = [" ".join(bag) for bag in bags]
    asked = [term for word in asked for term in search_terms(word)]
    words = made(texts)
    keys = np.arange(len(texts))
    assert words.scores(asked, keys) == pytest.approx(by_the_book(asked, texts), abs=1e-4)
    scores, found = words.search(asked, 3)
    best = np.sort(words.scores(asked, keys))[::-1]
    assert scores == pytest.approx(best[best > 0][:3], abs=1e-4)
    assert scores == pytest.approx(words.scores(asked, keys)[found], abs=1e-4)


def test_rare_words_weigh_more_and_repeats_saturate():
    words = made(CLAUSES)
    law, notice = search_terms("law")[0], search_terms("notice")[0]
    rare = words.compute_rarity([law, notice, search_terms("party")[0]])
    assert rare[2] < rare[1]
    assert compute_rarity(np.array([0, 5, 10]), 10).tolist() == sorted(
        compute_rarity(np.array([0, 5, 10]), 10).tolist(), reverse=True
    )
    assert words.count_frequencies(search_terms("laws"), np.array([0, 1]))[:, 0].tolist() == [2.0, 0.0]
    once = made(["law mill", "mill law law"]).scores([law], np.array([0, 1]))
    assert once[0] < once[1] < 2 * once[0]


@given(TEXTS, TEXTS, st.sets(st.integers(0, 15)))
def test_what_was_removed_or_added_late_leaves_no_trace(one, two, gone):
    texts = [" ".join(bag) for bag in one + two]
    words = made(texts[: len(one)])
    words.compute_rarity(["law"])  # looked at in between
    words.add(range(len(one), len(texts)), texts[len(one) :])
    words.remove(sorted(gone))
    left = [key for key in range(len(texts)) if key not in gone]
    fresh = Words()
    fresh.add(left, [texts[key] for key in left])
    asked = [search_terms(word)[0] for word in ("law", "notice", "term", "30")]
    assert len(words) == len(fresh) == len(left)
    keys = np.arange(len(texts) + 2)
    assert words.scores(asked, keys).tolist() == fresh.scores(asked, keys).tolist()
    assert words.compute_rarity(asked).tolist() == fresh.compute_rarity(asked).tolist()


def test_keys_of_chunks_that_are_not_there_score_nothing():
    words = made(CLAUSES, first=10)
    assert words.scores(search_terms("law"), np.array([3, 10, 99])).tolist()[::2] == [0.0, 0.0]
    assert words.find_lengths(np.array([3, 11]))[0] == 0
    assert Words().search(["law"], 3)[1].tolist() == []
    assert Words().scores(["law"], np.array([1])).tolist() == [0.0]


def test_surrogates_and_very_long_repeats_are_words_too():
    words = made(["\ud800law " * 400])
    assert words.count_frequencies(search_terms("law"), np.array([0]))[0, 0] <= 255


@pytest.mark.parametrize("pending", [1, 7, 40])
def test_what_is_put_aside_on_disk_gives_the_same(tmp_path, monkeypatch, pending):
    whole = made(CLAUSES * 10)
    monkeypatch.setattr(postings, "_PENDING", pending)
    monkeypatch.setattr(postings, "_BLOCK", 16)
    database = Database(tmp_path / "index.sqlite")
    apart = Words(database)
    for key, text in enumerate(CLAUSES * 10):
        apart.add([key], [text])
    apart.save()
    database.save()
    asked, keys = search_terms("governing law"), np.arange(41)
    for words in (Words(Database(tmp_path / "index.sqlite")), apart):
        assert words.scores(asked, keys).tolist() == whole.scores(asked, keys).tolist()
    for words in (apart, whole):
        words.remove([3])
        words.add([40], [CLAUSES[0]])
    assert apart.scores(asked, keys).tolist() == whole.scores(asked, keys).tolist()
    assert apart.search(asked, 5)[1].tolist() == whole.search(asked, 5)[1].tolist()


def test_words_of_no_text_are_damage():
    words = made(["oak", "elm"], first=4)
    words._postings.add(*(np.array([value]) for value in (postings.digest("oak"), 9, 1)))
    with pytest.raises(BundleError, match="the table of words names a text that is not in the index"):
        words.search(["oak"], 3)


def test_parts_of_words_meet_where_one_language_writes_several_words_as_one():
    assert list_word_parts("Blutalkohol") == ["#blut", "#luta", "#utal", "#talk", "#alko", "#lkoh", "#koho", "#ohol"]
    assert list_word_parts("Größe der") == ["#gros", "#ross", "#osse"]  # accents and small words do not count
    question = "Ab welcher Konzentration von Alkohol im Blut ist eine Person nicht mehr fähig zum Widerstand?"
    terms = list_asked_terms(question)
    assert {"#alko", "#wide", "blut"} <= set(terms)
    texts = ["Die Blutalkoholkonzentration führt zur Widerstandsunfähigkeit.", "Die Person zahlt die Miete im Voraus."]
    words = Words()
    words.add_counted([0, 1], count_terms(texts, parts=True))
    scores, keys = words.search(terms, 2)
    assert keys[0] == 0 and scores[0] > 2 * scores[1]
    assert not [term for term in list_asked_terms("What is the notice period?") if term.startswith("#")]
