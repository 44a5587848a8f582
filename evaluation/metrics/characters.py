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

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from exhibit.evaluation.cases import Case, Values
from exhibit.evaluation.metrics._about import About
from exhibit.evaluation.metrics._layout import (
    Floats,
    Ints,
    Layout,
    Pieces,
    add_up,
    distinct,
    lay_out,
    overlaps,
    spread,
    unite,
)
from exhibit.evaluation.metrics._options import KS, Cutoff, Options

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
