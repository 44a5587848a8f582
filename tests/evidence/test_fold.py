"""Folding ignores differences between renderings and maps offsets back; edit distances match the textbook algorithm."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exhibit.evidence.fold import Fold, align, fold, with_latin_letters

# unusual characters mixed with ordinary text
ODD = "ﬁﬂ\u00ad\u00a0\u037e“”‘’–—‐é\u0301e\u0301\u0316\u200f\u200b\ufeff𝒳😀ßİǅ½℀\u2028\ufffe\t\r\n"
TEXT = st.text(alphabet=st.one_of(st.sampled_from(ODD), st.characters(codec="utf-8")), max_size=80)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("the ﬁrst ﬂoor", "the first floor"),
        ("agree\u00adment", "agreement"),
        ("this\u00a0Agreement", "this Agreement"),
        ("terms\u037e and", "terms; and"),
        ("the “Company”", 'the "Company"'),
        ("Licensor’s ‘Marks’", "Licensor's 'Marks'"),
        ("2010–2012 — end", "2010-2012 - end"),
        ("cafe\u0301", "café"),
        ("\u200fright\u200e to\u200b left\ufeff", "right to left"),
        ("𝒳", "X"),
        ("line one\r\n   line two", "line one line two"),
        ("① and ½", "1 and 1⁄2"),
    ],
)
def test_fold_is_equal_for_two_renderings_of_the_same_words(first, second):
    assert fold(first) == fold(second)


@pytest.mark.parametrize(("first", "second"), [("Company", "company"), ("non-exclusive", "nonexclusive")])
def test_fold_ignores_case_and_hyphens_only_when_loose(first, second):
    assert fold(first) != fold(second)
    assert fold(first, loose=True) == fold(second, loose=True)


def test_fold_is_different_for_different_words():
    assert len({fold(word) for word in ("10,000", "10.000", "1O,000", "(a)", "[a]", "résumé", "resume")}) == 7


@given(TEXT, st.booleans())
def test_fold_is_idempotent(text, loose):
    once = fold(text, loose=loose)
    assert fold(once, loose=loose) == once


@given(TEXT)
def test_fold_is_equal_for_all_unicode_normal_forms(text):
    # folding keeps the order of several marks on one letter
    marks = [unicodedata.combining(character) > 0 for character in unicodedata.normalize("NFKD", text)]
    assume(not any(mark and following for mark, following in pairwise(marks)))
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


@given(TEXT, st.booleans())
def test_fold_offsets_point_to_the_original_characters(text, loose):
    folded = Fold.of(text, loose=loose)
    assert len(folded.offsets) == len(folded.text)
    assert all(a <= b for a, b in zip(folded.offsets, folded.offsets[1:], strict=False))
    for position in set(map(int, folded.offsets)):
        assert fold(text[position], loose=loose)


@given(TEXT, st.data())
def test_fold_range_round_trip_covers_the_same_characters(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    folded = Fold.of(text)
    first, last = folded.find_folded_range(start, end)
    if first < last:
        back = folded.span(first, last)
        assert start <= back[0] < back[1] <= end
        assert fold(text[slice(*back)]) == fold(text[start:end])


def test_fold_excludes_given_ranges():
    text = "the parties\n3\nSource: X\nagree"
    folded = Fold.of(text, without=[(12, 24)])
    assert folded.text == "thepartiesagree"
    assert folded.span(10, 15) == (24, 29)


def test_fold_cuts_is_true_for_a_range_that_splits_a_ligature():
    folded = Fold.of("oﬃce")
    assert folded.text == "office"
    assert folded.cuts(0, 2) and folded.cuts(2, 6) and not folded.cuts(0, 6) and not folded.cuts(1, 4)


def test_with_latin_letters_changes_only_words_that_mix_scripts():
    assert with_latin_letters("The rеnt of а Ρrague flat") == "The rent of a Prague flat", "words with mixed scripts"
    assert (
        with_latin_letters("The rеnt under Закон о корпорациях, Άρθρο 5")
        == "The rent under Закон о корпорациях, Άρθρο 5"
    )
    assert with_latin_letters("Закон о аренде") == "Закон о аренде"


WORDS = st.text(alphabet="abc", max_size=14)


def compute_textbook_distance(first: str, second: str) -> int:
    rows = [list(range(len(second) + 1))]
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b)))
        rows.append(row)
    return rows[-1][-1]


@given(WORDS.filter(bool), WORDS)
def test_align_finds_the_substring_with_the_smallest_distance(pattern, text):
    places = [
        (compute_textbook_distance(pattern, text[i:j])) for i in range(len(text)) for j in range(i + 1, len(text) + 1)
    ]
    nearest = min(places, default=len(pattern))
    found = align(pattern, text, most=len(pattern))
    if found is None:
        assert nearest >= len(pattern)
    else:
        assert found.distance == nearest == compute_textbook_distance(pattern, text[found.start : found.end])


def test_align_returns_no_match_above_the_edit_limit():
    assert align("confidential", "xxconfidntialxx", most=1) == (1, 2, 13)
    assert align("confidential", "something else altogether", most=3) is None
    assert align("a" * 200, "b" * 500, most=10) is None
