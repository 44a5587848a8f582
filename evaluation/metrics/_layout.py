"""Characters of rankings and of gold, laid out on one line so that whole runs are compared at once.

Each pair of a question and a file gets a stretch of the line, so that passages meet only where both agree.
A ranking is cut into pieces, each with the rank of the first passage that holds it: the pieces of rank < k
are the first k passages united, for every k in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from exhibit.evaluation.cases import Case
from exhibit.evidence import Span

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class Pieces:
    """Retrieved characters in the order of the line, and the rank (from 0) that brought them."""

    start: Ints
    end: Ints
    rank: Ints


@dataclass(frozen=True)
class Layout:
    """The rankings and the gold of some cases on one line."""

    retrieved: Pieces
    unplaced: tuple[Ints, Ints, Ints]
    """Case, rank and length of passages whose place is unknown: they were retrieved, and overlap nothing."""
    start: Ints
    end: Ints
    """The spans of the gold, in the order of cases, passages and places."""
    place: Ints
    """Which place a gold span belongs to, counted through."""
    gold: Ints
    """Which gold passage a place belongs to, counted through."""
    case: Ints
    """Which case a gold passage belongs to."""
    width: int
    """How long a stretch is."""
    files: int
    """How many stretches a case has."""

    def case_at(self, positions: Ints) -> Ints:
        """Return the cases that positions on the line belong to."""
        return positions // (self.width * self.files)


def lay_out(cases: Sequence[Case], depth: int, *, first_place: bool = False) -> Layout:
    """Return the first `depth` passages of each case and its located gold; of the gold's places all, or the first."""
    rows = [case.reply.passages[:depth] for case in cases]
    flat = [passage for row in rows for passage in row]
    counts = _integers(map(len, rows))
    case = np.repeat(np.arange(len(rows)), counts)
    rank = spread(np.zeros_like(counts), counts)
    spans = _pairs([passage.span or _NOWHERE for passage in flat])
    gold = _GoldRows.of(cases, first_place=first_place)
    names = [passage.source if passage.span else None for passage in flat]
    codes = {name: code for code, name in enumerate(dict.fromkeys([*names, *gold.files]))}
    file = _integers(map(codes.__getitem__, names))
    unknown = file == codes.get(None, -1)
    known = ~unknown & (spans[:, 0] < spans[:, 1])
    # one character more than the longest file, so that no span reaches into the next stretch
    width = 1 + int(max(spans.max(initial=0), gold.spans.max(initial=0)))
    line = spans + ((case * len(codes) + file) * width)[:, None]
    stretch = gold.case[gold.gold[gold.place]] * len(codes) + _integers(map(codes.__getitem__, gold.files))
    at = gold.spans + (stretch * width)[:, None]
    lengths = _integers(len(flat[number].text) for number in np.flatnonzero(unknown))
    return Layout(
        retrieved=_in_order(line[known, 0], line[known, 1], rank[known]),
        unplaced=(case[unknown], rank[unknown], lengths),
        start=at[:, 0],
        end=at[:, 1],
        place=gold.place,
        gold=gold.gold,
        case=gold.case,
        width=width,
        files=len(codes),
    )


@dataclass(frozen=True)
class _GoldRows:
    spans: Ints
    files: list[str]
    """The file of each span."""
    place: Ints
    gold: Ints
    case: Ints

    @classmethod
    def of(cls, cases: Sequence[Case], *, first_place: bool) -> _GoldRows:
        spans: list[Span] = []
        files: list[str] = []
        place: list[int] = []
        gold: list[int] = []
        owner: list[int] = []
        for number, case in enumerate(cases):
            for passage in case.gold:
                places = [held for where in passage.places if (held := [s for s in where if s.start < s.end])]
                if not places or passage.filename is None:
                    continue
                for where in places[:1] if first_place else places:
                    spans += where
                    files += [passage.filename] * len(where)
                    place += [len(gold)] * len(where)
                    gold.append(len(owner))
                owner.append(number)
        return cls(_pairs(spans), files, _integers(place), _integers(gold), _integers(owner))


def _integers(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)


def _pairs(spans: Iterable[tuple[int, int]]) -> Ints:
    return _integers(chain.from_iterable(spans)).reshape(-1, 2)


def _in_order(start: Ints, end: Ints, rank: Ints) -> Pieces:
    order = np.argsort(start, kind="stable")
    return Pieces(start[order], end[order], rank[order])


# ---------------------------------------------------------------- uniting, overlapping, adding up


def spread(first: Ints, counts: Ints) -> Ints:
    """Return first, first + 1 … for each count: the indices of many ranges, one after another."""
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) - np.repeat(ends - counts - first, counts)


def distinct(*columns: Ints) -> Ints:
    """Return the different numbers of some columns in order; by sorting, which for millions beats hashing."""
    numbers = np.sort(np.concatenate(columns))
    return numbers[np.diff(numbers, prepend=-1) > 0]


def unite(pieces: Pieces) -> Pieces:
    """Return pieces that do not overlap, each with the best rank that holds it."""
    edges = distinct(pieces.start, pieces.end)
    first = np.searchsorted(edges, pieces.start)
    counts = np.searchsorted(edges, pieces.end) - first
    nobody = np.iinfo(np.int64).max
    best = np.full(max(len(edges) - 1, 0), nobody)
    np.minimum.at(best, spread(first, counts), np.repeat(pieces.rank, counts))
    held = best < nobody
    return Pieces(edges[:-1][held], edges[1:][held], best[held])


def add_up(rows: Ints, ranks: Ints, amounts: Ints, *, shape: int, ks: Sequence[int]) -> Ints:
    """Return a table of `shape` rows: what the ranks below each k add up to."""
    columns = np.searchsorted(np.array(ks), ranks, side="right")
    kept = columns < len(ks)  # deeper than the deepest k
    sums = np.bincount(rows[kept] * len(ks) + columns[kept], amounts[kept], minlength=shape * len(ks))
    table: Ints = np.cumsum(sums.reshape(shape, len(ks)), axis=1).astype(np.int64)
    return table


def overlaps(pieces: Pieces, start: Ints, end: Ints, *, width: int, ks: Sequence[int]) -> Ints:
    """Return a row for each target: the characters that it shares with the pieces of the first k ranks."""
    stretches = pieces.start // width
    first = np.searchsorted(stretches, start // width)
    # pieces are in the order of their starts: those from a target's end on cannot touch it
    counts = np.searchsorted(pieces.start, end) - first
    target = np.repeat(np.arange(len(start)), counts)
    piece = spread(first, counts)
    shared = np.minimum(end[target], pieces.end[piece]) - np.maximum(start[target], pieces.start[piece])
    touching = shared > 0
    return add_up(target[touching], pieces.rank[piece[touching]], shared[touching], shape=len(start), ks=ks)
