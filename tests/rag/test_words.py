"""The words of chunks: BM25 as its formula has it, the same bytes for the same words, and nothing left of what went."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.law.words import search_terms
from exhibit.rag import columns
from exhibit.rag.columns import Column, write_archive
from exhibit.rag.lexicon import bm25 as words_module
from exhibit.rag.lexicon import runs
from exhibit.rag.lexicon.bm25 import LENGTH, SATURATION, Words, _check, open_words, rarity
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
    """BM25 as in the textbook, one text at a time."""
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
@settings(max_examples=60)
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
    rare = words.rarity([law, notice, search_terms("party")[0]])
    assert rare[2] < rare[1]
    assert rarity(np.array([0, 5, 10]), 10).tolist() == sorted(rarity(np.array([0, 5, 10]), 10).tolist(), reverse=True)
    assert words.frequencies(search_terms("laws"), np.array([0, 1]))[:, 0].tolist() == [2.0, 0.0]
    once = made(["law mill", "mill law law"]).scores([law], np.array([0, 1]))
    assert once[0] < once[1] < 2 * once[0]


@given(TEXTS, TEXTS, st.sets(st.integers(0, 15)))
@settings(max_examples=40)
def test_what_was_removed_or_added_late_leaves_no_trace(one, two, gone):
    texts = [" ".join(bag) for bag in one + two]
    words = made(texts[: len(one)])
    words.rarity(["law"])  # looked at in between
    words.add(range(len(one), len(texts)), texts[len(one) :])
    words.remove(sorted(gone))
    left = [key for key in range(len(texts)) if key not in gone]
    fresh = Words()
    fresh.add(left, [texts[key] for key in left])
    asked = [search_terms(word)[0] for word in ("law", "notice", "term", "30")]
    assert len(words) == len(fresh) == len(left)
    keys = np.arange(len(texts) + 2)
    assert words.scores(asked, keys).tolist() == fresh.scores(asked, keys).tolist()
    assert words.rarity(asked).tolist() == fresh.rarity(asked).tolist()


def test_the_same_words_give_the_same_bytes_in_any_order_of_work(tmp_path):
    one, two = open_words(tmp_path / "one.npz"), open_words(tmp_path / "two.npz")
    one.add([0, 1, 3], [CLAUSES[0], CLAUSES[1], CLAUSES[3]])
    two.add([0], CLAUSES[:1])
    two.save()
    two = open_words(tmp_path / "two.npz")
    two.add([1, 2, 3], CLAUSES[1:])
    two.remove([2])
    one.save()
    two.save()
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    again = open_words(tmp_path / "two.npz")
    asked = search_terms("terminate on notice in thirty days")
    assert again.scores(asked, np.arange(4)).tolist() == one.scores(asked, np.arange(4)).tolist()
    assert again.search(asked, 1)[1].tolist() == [1]


def test_keys_of_chunks_that_are_not_there_score_nothing():
    words = made(CLAUSES, first=10)
    assert words.scores(search_terms("law"), np.array([3, 10, 99])).tolist()[::2] == [0.0, 0.0]
    assert words.lengths(np.array([3, 11]))[0] == 0
    assert Words().search(["law"], 3)[1].tolist() == []
    assert Words().scores(["law"], np.array([1])).tolist() == [0.0]


def test_a_damaged_file_and_keys_out_of_order_are_refused(tmp_path):
    path = tmp_path / "words.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(BundleError, match="build the index again"):
        open_words(path)
    words = made(CLAUSES, first=5)
    words.add([2], ["law"])
    with pytest.raises(BundleError, match="must grow"):
        words.rarity(["law"])
    with pytest.raises(BundleError, match="no file"):
        made(CLAUSES).save()


def test_surrogates_and_very_long_repeats_are_words_too():
    words = made(["\ud800law " * 400])
    assert words.frequencies(search_terms("law"), np.array([0]))[0, 0] <= 255


# ---------------------------------------------------------------- more than memory


@pytest.mark.parametrize("most", [1, 7, 40])
def test_what_is_put_aside_on_disk_gives_the_same_bytes(tmp_path, monkeypatch, most):
    made_at_once = open_words(tmp_path / "whole.npz")
    made_at_once.add(range(40), CLAUSES * 10)
    made_at_once.save()
    monkeypatch.setattr(words_module, "_WAITING", most)
    monkeypatch.setattr(runs, "_BLOCK", 16)
    apart = open_words(tmp_path / "apart.npz")
    for key, text in enumerate(CLAUSES * 10):
        apart.add([key], [text])
    assert apart._runs.on_disk
    apart.save()
    assert apart._merged is not None  # nobody has looked yet, so the postings are still on disk
    assert (tmp_path / "apart.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    asked, keys = search_terms("governing law"), np.arange(40)
    assert apart.scores(asked, keys).tolist() == made_at_once.scores(asked, keys).tolist()
    apart.add([40], [CLAUSES[0]])
    made_at_once.add([40], [CLAUSES[0]])
    for words in (apart, made_at_once):
        words.save()
    assert (tmp_path / "apart.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["apart.npz", "whole.npz"]


def test_a_large_file_is_mapped_not_read_and_can_still_be_changed(tmp_path, monkeypatch):
    made = Words(tmp_path / "words.npz")
    made.add(range(40), [CLAUSES[number % len(CLAUSES)] for number in range(40)])
    made.save()
    held = open_words(tmp_path / "words.npz")
    monkeypatch.setattr(columns, "_LARGE", 1)
    mapped = open_words(tmp_path / "words.npz")
    assert isinstance(mapped._rows, np.memmap) and isinstance(mapped._counts, np.memmap)
    assert not isinstance(held._rows, np.memmap)
    asked = search_terms("governing law")
    assert mapped.search(asked, 5)[1].tolist() == held.search(asked, 5)[1].tolist()
    assert mapped.scores(asked, np.arange(40)).tolist() == held.scores(asked, np.arange(40)).tolist()
    before = (tmp_path / "words.npz").read_bytes()
    mapped.save()  # over the file that it is mapped from
    assert (tmp_path / "words.npz").read_bytes() == before
    for words in (held, mapped):
        words.remove([3])
        words.add([40], [CLAUSES[0]])
    assert mapped.scores(asked, np.arange(41)).tolist() == held.scores(asked, np.arange(41)).tolist()


def test_a_large_file_without_words_is_mapped_too(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "_LARGE", 1)
    made = Words(tmp_path / "words.npz")
    made.add([0], ["— —"])
    made.save()
    assert open_words(tmp_path / "words.npz").search(["law"], 3)[1].tolist() == []


def test_an_archive_is_one_that_numpy_reads_and_can_be_mapped_as_it_is(tmp_path, monkeypatch):
    numbers = np.arange(1000, dtype=np.uint32)
    column = Column(np.uint32, tmp_path)
    for part in np.split(numbers, 4):
        column.append(part)
    write_archive(tmp_path / "ours.npz", {"odd": np.arange(3, dtype=np.uint8), "a": column, "b": numbers[:3]})
    with np.load(tmp_path / "ours.npz") as stored:
        assert stored["a"].tolist() == numbers.tolist() and stored["b"].tolist() == [0, 1, 2]
    monkeypatch.setattr(columns, "_LARGE", 1)
    with columns.opened_archive(tmp_path / "ours.npz", mapped=("a", "b")) as opened:
        mapped = dict(opened)
    assert mapped["a"].tolist() == numbers.tolist() and mapped["b"].tolist() == [0, 1, 2]
    assert mapped["odd"].tolist() == [0, 1, 2] and not isinstance(mapped["odd"], np.memmap)
    for name in ("a", "b"):  # what is not aligned would be copied before each use
        assert isinstance(mapped[name], np.memmap) and mapped[name].ctypes.data % 64 == 0


def test_an_archive_that_numpy_wrote_is_mapped_too(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "_LARGE", 1)
    np.savez(tmp_path / "theirs.npz", odd=np.arange(3, dtype=np.uint8), a=np.arange(1000, dtype=np.uint32))
    with columns.opened_archive(tmp_path / "theirs.npz", mapped=("a",)) as opened:
        assert opened["a"].tolist() == list(range(1000))


def test_what_is_added_to_saved_words_is_saved_with_them(tmp_path):
    path = tmp_path / "words.npz"
    first = open_words(path)
    first.add([0, 1], CLAUSES[:2])
    first.save()
    second = open_words(path)
    second.add([2, 3], CLAUSES[2:])
    second.save()
    asked = search_terms("confidential governing law")
    assert open_words(path).scores(asked, np.arange(4)) == pytest.approx(by_the_book(asked, CLAUSES), abs=1e-4)


@pytest.mark.parametrize(("row", "sound"), [(0, True), (1, True), (2, False), (-1, False)])
def test_a_row_of_no_chunk_is_told_apart(row, sound):
    words = Words()
    words.add([4, 7], ["oak", "elm"])
    words.rarity(["oak"])
    words._rows = np.array([row, 0], np.int64)
    if sound:
        _check(words)
        return
    with pytest.raises(ValueError, match="words of no chunk"):
        _check(words)
