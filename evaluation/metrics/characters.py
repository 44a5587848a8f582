"""Character precision and recall: how much of what was retrieved is gold, and how much of the gold was retrieved.

The first k passages are united, so a character counts once. A gold passage that stands in several places is
credited where the largest share of it was retrieved, the first of equals:

    recall@k    = sum over golds of length x best share / sum of lengths       (length: of the longest place)
    precision@k = retrieved characters inside those best places / retrieved characters

For gold with one place each, recall is overlap / gold characters. Neither can pass 1, and recall never falls as k
grows. Only located gold counts. A retrieved passage whose place is unknown counts with
the length of its text and overlaps nothing; where nothing was retrieved both are 0.

Parity "legalbenchrag" is the published way: nothing is united, each retrieved snippet's overlap with each gold
snippet is added up, and a gold stands in its first place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from exhibit.evaluation.metrics import KS, About, Case, Cutoff, Options, Values
from exhibit.evidence import Span

Bools = npt.NDArray[np.bool_]
Number = TypeVar("Number", np.int64, np.float64)

NAMES = (*(f"char_precision@{k}" for k in KS), *(f"char_recall@{k}" for k in KS))
ABOUT = {
    "char_precision": About(
        "Retrieved text that is gold",
        "share of the first k passages' characters that are gold",
        "Retrieval",
        needs=("gold spans", "passages"),
        depths=(1, 8),
    ),
    "char_recall": About(
        "Gold text retrieved",
        "share of the gold characters among the first k passages",
        "Retrieval",
        needs=("gold spans", "passages"),
        depths=(8, 64),
    ),
}
HEADLINE = "char_recall@8"


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return character precision and recall at each k."""
    published = options.parity == "legalbenchrag"
    depths = (cutoff,) if cutoff else options.ks
    layout = lay_out(cases, max(depths), first_place=published)
    score = _as_published if published else _united
    precision, recall = score(layout, len(cases), depths)
    return {
        f"{name}@{k}": table[:, column].tolist()
        for name, table in (("char_precision", precision), ("char_recall", recall))
        for column, k in enumerate(depths)
    }


def _as_published(layout: Layout, cases: int, ks: Sequence[int]) -> tuple[Floats, Floats]:
    overlap = overlaps(layout.retrieved, layout.start, layout.end, width=layout.width, ks=ks)
    owner = layout.case[layout.gold[layout.place]]
    shared = _per_case(owner, overlap, cases)
    gold = _per_case(owner, layout.end - layout.start, cases)[:, None]
    return _divide(shared, _lengths(layout, layout.retrieved, cases, ks)), _divide(shared, gold)


def _united(layout: Layout, cases: int, ks: Sequence[int]) -> tuple[Floats, Floats]:
    pieces = unite(layout.retrieved)
    # gold is cut at every edge, too: golds that overlap have atoms in common, and precision must count those once
    edges = distinct(layout.start, layout.end)
    first = np.searchsorted(edges, layout.start)
    counts = np.searchsorted(edges, layout.end) - first
    covered = spread(first, counts)
    atoms = distinct(covered)
    atom = np.searchsorted(atoms, covered)
    place = np.repeat(layout.place, counts)
    start, end = edges[atoms], edges[atoms + 1]
    shared = overlaps(pieces, start, end, width=layout.width, ks=ks)
    overlap, length = _sum_by(shared[atom], place), _sum_by((end - start)[atom], place)[:, None]
    chosen = np.zeros(shared.shape, dtype=bool)
    np.logical_or.at(chosen, atom, _best_places(overlap / length, layout.gold)[place])
    inside = _per_case(layout.case_at(start), shared * chosen, cases)
    longest = _max_by(length, layout.gold)
    credit = _max_by(overlap * longest[layout.gold] / length, layout.gold)
    recall = _divide(_per_case(layout.case, credit, cases), _per_case(layout.case, longest, cases))
    return _divide(inside, _lengths(layout, pieces, cases, ks)), recall


def _lengths(layout: Layout, pieces: Pieces, cases: int, ks: Sequence[int]) -> Ints:
    """Return how many characters the first k passages of each case have."""
    placed = add_up(layout.case_at(pieces.start), pieces.rank, pieces.end - pieces.start, shape=cases, ks=ks)
    case, rank, lengths = layout.unplaced
    return placed + add_up(case, rank, lengths, shape=cases, ks=ks)


def _best_places(share: Floats, gold: Ints) -> Bools:
    """Return for each place and k whether it is the first with the largest share of its gold."""
    equal = share == _max_by(share, gold)[gold]
    before = np.cumsum(equal, axis=0) - equal
    best: Bools = equal & (before == before[_starts(gold)][gold])
    return best


def _starts(groups: Ints) -> Ints:
    """Return where each group begins in a column of group numbers that never fall."""
    return np.flatnonzero(np.diff(groups, prepend=-1))


def _sum_by(rows: Ints, groups: Ints) -> Ints:
    sums: Ints = np.add.reduceat(rows, _starts(groups), axis=0) if len(rows) else rows
    return sums


def _max_by(rows: npt.NDArray[Number], groups: Ints) -> npt.NDArray[Number]:
    highest: npt.NDArray[Number] = np.maximum.reduceat(rows, _starts(groups), axis=0) if len(rows) else rows
    return highest


def _per_case(owner: Ints, rows: npt.NDArray[Number], cases: int) -> npt.NDArray[Number]:
    sums = np.zeros((cases, *rows.shape[1:]), dtype=rows.dtype)
    np.add.at(sums, owner, rows)
    return sums


def _divide(part: Ints | Floats, whole: Ints | Floats) -> Floats:
    """Return the shares, 0 of nothing."""
    shares: Floats = np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > 0)
    return shares


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
