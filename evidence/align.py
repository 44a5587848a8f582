"""Approximate search: where in a text a pattern stands with the fewest edits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exhibit.evidence.fold import code_points

_COST = 1 << 32
"""A cell holds its cost and, below it, where its alignment began: the smaller number is the better cell."""
_LOOK = 32
"""How many rows pass between two looks at whether the pattern can still fit."""


class Alignment(NamedTuple):
    """The best place of a pattern in a text, and how many characters must be edited there."""

    distance: int
    start: int
    end: int


def align(pattern: str, text: str, *, most: int) -> Alignment | None:
    """Return the place in the text that is nearest to the pattern, or None if it takes more than `most` edits.

    Sellers' algorithm, a row of the table at a time: linear in the text for each character of the pattern, and
    given up as soon as no cell is cheap enough.
    """
    letters = code_points(text)
    places = np.arange(len(letters) + 1, dtype=np.int64)
    slope = places * _COST
    row = places.copy()  # the empty pattern stands everywhere for nothing
    limit = (most + 1) * _COST
    for number, letter in enumerate(code_points(pattern), 1):
        below = row + _COST
        below[1:] = np.minimum(below[1:], row[:-1] + np.where(letters == letter, 0, _COST))
        # a cell may also come from its left neighbour at the cost of one: a running minimum along the slope
        row = np.minimum.accumulate(below - slope) + slope
        if number % _LOOK == 0 and row.min() >= limit:
            return None
    distance = int(row.min()) // _COST
    ends = np.flatnonzero(row < (distance + 1) * _COST)
    # of places that are equally near, the one whose length is most like the pattern's
    lengths = ends - row[ends] % _COST
    best = int(np.abs(lengths - len(pattern)).argmin())
    end, length = int(ends[best]), int(lengths[best])
    return Alignment(distance, end - length, end) if distance <= most and length else None


def edit_distance(one: str, other: str) -> int:
    """Return how many characters must be inserted, deleted or replaced to turn one into the other."""
    letters = code_points(other)
    places = np.arange(len(letters) + 1, dtype=np.int64)
    row = places.copy()
    for letter in code_points(one):
        below = row + 1
        below[1:] = np.minimum(below[1:], row[:-1] + (letters != letter))
        row = np.minimum.accumulate(below - places) + places
    return int(row[-1])
