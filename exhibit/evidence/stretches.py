"""Finds the stretches of letters that a text and a document share, except for small differences."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from exhibit.evidence.document import Span
from exhibit.evidence.fold import Fold

TELLING = 24
"""Fewest letters and digits that a range must share with a document: about five words, which rarely match by chance."""
_STEP = 8
"""Letters between two seeds of the search: a shared range of 32 letters is never missed."""
COMMON = 256
"""Most occurrences of a seed that are tried; more frequent words give no location."""
_SLIP = 6
"""Most letters that may differ inside a range, in either text: a misread word, an escaped character, a note's
number.
"""
_ANEW = 12
"""Letters that must match after such a difference before the range continues."""
_EDGE = 4
"""Letters that must match instead if the text ends earlier."""


class Stretch(NamedTuple):
    """A range of letters in a text, and the spans of a document that match it except for small differences."""

    start: int
    end: int
    hits: tuple[Span, ...]
    letters: int


def find_stretches(needle: str, haystack: Fold, ranges: Sequence[tuple[int, int]]) -> list[Stretch]:
    """Return the longer parts (stretches) of the needle that also occur in the haystack, without overlaps.

    A stretch has at least 24 letters and digits, and may differ slightly from the haystack.

    Args:
        ranges: the ranges of the needle to search; the rest of the needle is ignored.
    """
    found = []
    for first, last in ranges:
        at, floor = first, first
        while at + TELLING <= last:
            hits = list(islice(find_occurrences(needle[at : at + TELLING], haystack.text), COMMON + 1))
            if not hits or len(hits) > COMMON:
                at += _STEP
                continue
            found.append(_extend_seed(needle, haystack, at, hits, (floor, last)))
            at = floor = found[-1].end
    return found


def find_occurrences(needle: str, text: str) -> Iterator[int]:
    """Yield the offset of every occurrence of a needle in a text; occurrences may overlap."""
    start = text.find(needle) if needle else -1
    while start >= 0:
        yield start
        start = text.find(needle, start + 1)


def _extend_seed(needle: str, haystack: Fold, at: int, hits: Sequence[int], bounds: tuple[int, int]) -> Stretch:
    """Extend an exact match of a few letters in both directions; return the longest stretch found.

    The stretch has all locations at which it was found.

    Args:
        at: where the exact match begins in the needle.
        hits: where it begins in the haystack, for each of its occurrences.
        bounds: the range of the needle that the stretch must not leave.
    """
    grown: dict[tuple[int, int, int], list[Span]] = {}
    for hit in hits:
        ahead = _grow(needle, at + TELLING, bounds[1], haystack.text, hit + TELLING, 1)
        back = _grow(needle, at, bounds[0], haystack.text, hit, -1)
        key = (TELLING + ahead.letters + back.letters, at - back.own, at + TELLING + ahead.own)
        span = Span(*haystack.span(hit - back.other, hit + TELLING + ahead.other))
        grown.setdefault(key, []).append(span)
    letters, start, end = max(grown, key=lambda key: (key[0], -key[1]))
    return Stretch(start, end, tuple(dict.fromkeys(grown[letters, start, end])), letters)


class _Growth(NamedTuple):
    own: int = 0
    other: int = 0
    letters: int = 0


def _grow(own: str, at: int, limit: int, other: str, place: int, step: int) -> _Growth:
    """Return how far two texts match, from position `at` in `own` and position `place` in `other`.

    Differences of a few letters are allowed.

    Args:
        step: 1 to compare forward, -1 to compare backward.
    """
    taken = _Growth()
    while True:
        room = (limit - at) * step - taken.own
        beyond = (len(other) - place if step > 0 else place) - taken.other
        here, there = at + step * taken.own, place + step * taken.other
        same = _count_common(own, here, other, there, min(room, beyond), step)
        taken = _Growth(taken.own + same, taken.other + same, taken.letters + same)
        slip = _skip_slip(own, here + step * same, other, there + step * same, (room - same, beyond - same), step)
        if slip is None:
            return taken
        more = max(slip[1] - slip[0], 0)  # letters that only the document has reduce the score of the stretch
        taken = _Growth(taken.own + slip[0], taken.other + slip[1], taken.letters - more)


def _count_common(one: str, at: int, other: str, place: int, most: int, step: int) -> int:
    """Return the number of equal characters from a position in each text, forward or backward, at most `most`."""
    low, size = 0, 16
    while low < most:
        size = min(size, most - low)
        if _slice(one, at + step * low, size, step) == _slice(other, place + step * low, size, step):
            low, size = low + size, size * 2
        elif size == 1:
            return low
        else:
            most, size = low + size - 1, size // 2
    return low


def _slice(text: str, at: int, size: int, step: int) -> str:
    return text[at : at + size] if step > 0 else text[at - size : at]


_SLIPS = sorted(((a, b) for a in range(_SLIP + 1) for b in range(_SLIP + 1) if a or b), key=lambda s: (max(s), sum(s)))


def _skip_slip(own: str, at: int, other: str, place: int, room: tuple[int, int], step: int) -> tuple[int, int] | None:
    """Return how many letters to skip in `own` and in `other` so that the two texts match again.

    Return None if no short skip makes them match. The texts differ at `at` in `own` and at `place` in `other`.
    `room` has the number of letters left in each text; `step` is 1 to compare forward, -1 backward.
    """
    for skip, pass_over in _SLIPS:
        # at the edge of the text fewer letters remain to match
        need = min(_ANEW, room[0] - skip)
        if need < _EDGE or room[1] < pass_over + need:
            continue
        mine = _slice(own, at + step * skip, need, step)
        if mine == _slice(other, place + step * pass_over, need, step):
            return skip, pass_over
    return None
