"""Approximate matching compared with the textbook algorithm."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence.fold import align, edit_distance

WORDS = st.text(alphabet="abc", max_size=14)


def textbook(one: str, other: str) -> int:
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b)))
        rows.append(row)
    return rows[-1][-1]


@given(WORDS, WORDS)
def test_edit_distance_equals_textbook_distance(one, other):
    assert edit_distance(one, other) == textbook(one, other)


@given(WORDS.filter(bool), WORDS)
def test_align_finds_the_substring_with_the_smallest_distance(pattern, text):
    places = [(textbook(pattern, text[i:j])) for i in range(len(text)) for j in range(i + 1, len(text) + 1)]
    nearest = min(places, default=len(pattern))
    found = align(pattern, text, most=len(pattern))
    if found is None:
        assert nearest >= len(pattern)
    else:
        assert found.distance == nearest == textbook(pattern, text[found.start : found.end])


def test_align_returns_no_match_above_the_edit_limit():
    assert align("confidential", "xxconfidntialxx", most=1) == (1, 2, 13)
    assert align("confidential", "something else altogether", most=3) is None
    assert align("a" * 200, "b" * 500, most=10) is None
