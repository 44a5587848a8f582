"""Cuts of a text, computed by hand: the separator, its position in a run, and the start of an overlap."""

from __future__ import annotations

import pytest

from exhibit.evidence import Span
from exhibit.rag.splitters import check, find_cuts, find_separator, naive, rcts, reach_back, sections, tile
from exhibit.schemas.errors import ToolkitError


def cut(text: str, size: int, *separators: str, keep: str = "start") -> str:
    """Return the chunks joined by bars."""
    cuts = find_cuts(text, [Span(0, len(text))], size=size, separators=separators, keep=keep)  # type: ignore[arg-type]
    return "|".join(text[start:end] for start, end in tile(0, cuts))


@pytest.mark.parametrize(
    ("text", "size", "separators", "start", "end"),
    [
        ("aa bb cc", 5, [" "], "aa bb| cc", "aa |bb cc"),
        ("aa bb cc", 6, [" "], "aa bb| cc", "aa bb |cc"),
        ("aa bb cc", 8, [" "], "aa bb cc", "aa bb cc"),
        ("aaaaaaa bb", 3, [" "], "aaa|aaa|a| bb", "aaa|aaa|a |bb"),
        ("aaaaaaa bb", 3, [], "aaa|aaa|a b|b", "aaa|aaa|a b|b"),
        ("a\n\nb c\n\nd", 4, ["\n\n", " "], "a|\n\nb| c|\n\nd", "a\n\n|b |c\n\n|d"),
        ("ab. cd, ef", 4, [". ", ", "], "ab|. cd|, ef", "ab. |cd, |ef"),
        ("a\n\n\n\nb", 3, ["\n\n"], "a\n\n|\n\nb", "a\n\n|\n\nb"),
        ("\n\n\nab", 2, ["\n\n"], "\n\n|\na|b", "\n\n|\na|b"),
        ("abc", 1, ["b"], "a|b|c", "a|b|c"),
        ("", 5, [" "], "", ""),
        ("abcdef", 2, [""], "ab|cd|ef", "ab|cd|ef"),
    ],
)
def test_a_text_is_cut_before_or_after_its_separators(text, size, separators, start, end):
    assert cut(text, size, *separators) == start
    assert cut(text, size, *separators, keep="end") == end


def test_separators_of_two_signs_are_found_however_often_the_first_comes_alone():
    for alone in range(14):
        text = "abcdef" + ".x" * alone + "ghijkl. mnopqr"
        [first, *_] = tile(0, find_cuts(text, [Span(0, len(text))], size=3, separators=[". "], keep="start"))
        at = text.index(". ")
        assert at in find_cuts(text, [Span(0, len(text))], size=3, separators=[". "], keep="start"), alone
        assert first == (0, 3)
        assert [find_separator(text, ". ", start) for start in (0, at, at + 1)] == [at, at, -1]
        assert find_separator(text, "; ", 0) == -1


def test_a_short_range_late_in_the_text_is_not_cut():
    assert find_cuts("aaaa bb cc dd ee", [Span(10, 14)], size=4, separators=["d"], keep="start") == [14]


def test_ranges_are_cut_each_by_itself_and_empty_ones_not():
    text = "aa bb cc dd"
    ranges = [Span(0, 3), Span(3, 3), Span(3, 11)]
    assert find_cuts(text, ranges, size=4, separators=[" "], keep="start") == [3, 5, 8, 11]
    assert find_cuts(text, ranges, size=4, separators=["x"], keep="start") == [3, 7, 11]
    assert find_cuts(text, [Span(0, 4), Span(4, 8)], size=4, separators=["a"], keep="start") == [4, 8]


@pytest.mark.parametrize(
    ("overlap", "floors", "starts"),
    [
        (0, (0,), [0, 6, 12]),
        (2, (0,), [0, 6, 12]),  # 4 is within a word, and the next begins where the span did
        (3, (0,), [0, 3, 9]),
        (6, (0,), [0, 0, 6]),
        (9, (0,), [0, 0, 3]),
        (9, (0, 6), [0, 6, 6]),
        (9, (0, 5), [0, 6, 6]),
    ],
)
def test_an_overlap_reaches_back_to_a_word_and_over_no_floor(overlap, floors, starts):
    text = "aa aa bb bb cc cc"
    tiles = [Span(0, 6), Span(6, 12), Span(12, 17)]
    spans = reach_back(text, tiles, overlap, floors=floors)
    assert [span.end for span in spans] == [6, 12, 17]
    assert [span.start for span in spans] == starts


def test_where_no_word_begins_an_overlap_is_as_long_as_it_may_be():
    assert reach_back("aaaaaaaa", [Span(0, 4), Span(4, 8)], 2) == [(0, 4), (2, 8)]
    assert reach_back("aaaaa aa", [Span(0, 6), Span(6, 8)], 2) == [(0, 6), (6, 8)]


@pytest.mark.parametrize(
    ("size", "overlap", "fine"), [(1, 0, True), (0, 0, False), (4, 3, True), (4, 4, False), (4, -1, False)]
)
def test_sizes_that_no_chunk_can_have_are_refused(size, overlap, fine):
    for split in (rcts.split, naive.split, sections.split):
        if fine:
            assert split("abc", size=size, overlap=overlap)
            continue
        with pytest.raises(ToolkitError, match="choose"):
            split("abc", size=size, overlap=overlap)
    if not fine and size:
        with pytest.raises(ToolkitError, match="choose 0 to 3"):
            check(size=size, overlap=overlap)


def test_five_hundred_characters_and_no_overlap_unless_told_otherwise():
    for split in (rcts.split, naive.split, sections.split):
        assert split("x" * 501) == [(0, 500), (500, 501)] and split("x" * 500) == [(0, 500)] and split("") == []


@pytest.mark.parametrize(
    ("length", "size", "overlap", "spans"),
    [
        (8, 4, 2, [(0, 4), (2, 6), (4, 8)]),
        (9, 4, 2, [(0, 4), (2, 6), (4, 8), (6, 9)]),
        (2, 4, 3, [(0, 2)]),
        (3, 4, 3, [(0, 3)]),
        (5, 4, 3, [(0, 4), (1, 5)]),
        (1, 1, 0, [(0, 1)]),
    ],
)
def test_naive_chunks_by_hand(length, size, overlap, spans):
    assert naive.split("x" * length, size=size, overlap=overlap) == spans


def test_sections_are_cut_at_every_edge_within_the_text():
    text = "aaaa bbbb cccc"
    assert sections.split(text, size=99, sections=[Span(5, 10), Span(-3, 2), Span(10, 99)]) == [
        (0, 2), (2, 5), (5, 10), (10, 14),
    ]  # fmt: skip
    assert sections.split(text, size=9, overlap=4, sections=[Span(5, 10)]) == [(0, 5), (5, 10), (10, 14)]
    assert sections.split("aa bb cc dd", size=6, overlap=3, sections=[Span(0, 11)]) == rcts.split(
        "aa bb cc dd", size=6, overlap=3
    )


@pytest.mark.parametrize("splitter", [rcts, sections])
def test_a_variant_by_its_name(splitter):
    text = "Fees of 3.4. Then, more."
    assert splitter.open(None) is splitter.split
    assert [text[slice(*span)] for span in splitter.open("sentences")(text, size=14)] == [
        "Fees of 3.4. ",
        "Then, more.",
    ]
    with pytest.raises(ToolkitError, match="sentences"):
        splitter.open("words")
    with pytest.raises(ToolkitError, match="takes no argument"):
        naive.open("words")
    assert naive.open(None) is naive.split
