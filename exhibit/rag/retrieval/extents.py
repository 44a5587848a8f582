"""Chooses where passages begin and end: at search time, at whole sentences, around the chunks that rank best.

The first passage is the sentence that answers, no more; those after it are filled up from around their chunk, as they
are less sure. No two of them share a character, and none is longer than the limit.
"""

import string
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from exhibit.evidence import Span
from exhibit.law.sentences import tile_clauses
from exhibit.rag.protocols import Keys

LEAST = 40
"""Characters of the shortest independent piece: a shorter one is a number, a label, the end of a line."""
SCRAP = 16
"""Characters below which the rest between two passages is dropped: "ARTICLE IV", a page number."""
KEEP = 0.7
"""The first passage keeps the sentences with at least this share of the best one's evidence, and those between them."""

_STRAY = string.whitespace + "\xa0.,;:!?"
"""A chunk may open with the mark that closed the sentence before it."""

_REMEMBERED = 8192
"""Rows whose pieces are cached: 4 MB, the chunks of some fifty contracts."""

Weigh = Callable[[str], float]
"""Returns the evidence of a stretch of text for the question."""


class Seed(NamedTuple):
    """Consecutive pieces of one chunk from which a passage may grow; seeds sort by rank, the best first."""

    cost: float
    turn: int
    row: int
    first: int = 0
    last: int = sys.maxsize


class _Offer(NamedTuple):
    """A piece that a passage may grow by, and the evidence of its chunk."""

    score: float
    row: int
    piece: int
    span: Span


@dataclass
class Extents:
    """Forms passages over the rows of a table of chunks."""

    table: Keys
    text: Callable[[int], str]
    scores: Mapping[int, float]
    """The evidence of each scored row: a passage grows towards the better neighbour."""
    limit: int = 500
    trim_first: bool = True
    """Whether the first passage is cut to the sentences that answer; else it is filled like the others."""
    tiles: dict[int, list[Span]] = field(default_factory=dict)
    """A cache of the pieces of rows, for one limit; questions about one document share it."""

    def __post_init__(self) -> None:
        # cached: each is needed hundreds of times, and single rows of an array are slow to compare
        self._text, self._pieces = cache(self.text), cache(self._untaken)
        self._place: Callable[[int], list[int]] = cache(lambda row: self.table[row].tolist())

    def form(self, ranked: Sequence[tuple[int, float]], *, depth: int, weigh: Weigh) -> list[tuple[int, Span, float]]:
        """Return row, span and score of up to `depth` passages, best first, from rows that are ranked by score."""
        queue = [Seed(-score, turn, row) for turn, (row, score) in enumerate(ranked)]
        heapify(queue)
        extents: list[tuple[int, Span, float]] = []
        seen: set[tuple[int, str]] = set()
        turn = len(queue)
        while queue and len(extents) < depth:
            seed = heappop(queue)
            runs = self._free(seed)
            if len(runs) != 1:
                for run in runs:
                    turn += 1
                    heappush(queue, Seed(seed.cost, turn, seed.row, *run))
                continue
            first, last = runs[0]
            cut = self.trim_first and not extents
            if cut:
                first, last = self._tight(seed.row, first, last, weigh)
                turn += 1
                heappush(queue, Seed(seed.cost, turn, seed.row))
            span = self._span(seed.row, first, last) if cut else self._grown(seed.row, first, last)
            self._take(seed.row, first, last)
            words = self._trimmed(seed.row, span)
            if words and self._worth(seed.row, words, seen):
                extents.append((seed.row, words, -seed.cost))
        return extents

    # ---------------------------------------------------------------- pieces

    def _untaken(self, row: int) -> tuple[list[Span], list[bool]]:
        """Return the pieces of a row, none of which a passage has taken yet.

        Pieces are sentences, short ones with their neighbour; none is above the limit.
        """
        if row not in self.tiles:
            if len(self.tiles) >= _REMEMBERED:
                self.tiles.clear()
            _, number, start, end, *_ = self._place(row)
            if self._follows(row, row - 1):
                start = max(start, self._place(row - 1)[3])  # chunks may overlap; passages do not
            self.tiles[row] = tile_clauses(self._text(number), start, end, least=LEAST, limit=self.limit)
        return self.tiles[row], [False] * len(self.tiles[row])

    def _follows(self, row: int, other: int) -> bool:
        """Return whether two rows are of one document."""
        return 0 <= other < len(self.table) and self._place(other)[1] == self._place(row)[1]

    def _free(self, seed: Seed) -> list[tuple[int, int]]:
        """Return the stretches of a seed that no passage has taken."""
        pieces, taken = self._pieces(seed.row)
        first, end = seed.first, min(len(pieces), seed.last + 1)
        if first < end and pieces[end - 1].end - pieces[first].start <= self.limit and True not in taken[first:end]:
            return [(first, end - 1)]
        runs: list[tuple[int, int]] = []
        for at in range(first, end):
            if taken[at]:
                continue
            if runs and runs[-1][1] == at - 1 and pieces[at].end - pieces[runs[-1][0]].start <= self.limit:
                runs[-1] = (runs[-1][0], at)
            else:
                runs.append((at, at))
        return runs

    def _take(self, row: int, first: int, last: int) -> None:
        taken = self._pieces(row)[1]
        for at in range(first, last + 1):
            taken[at] = True

    def _span(self, row: int, first: int, last: int) -> Span:
        pieces, _ = self._pieces(row)
        return Span(pieces[first].start, pieces[last].end)

    # ---------------------------------------------------------------- how far

    def _tight(self, row: int, first: int, last: int, weigh: Weigh) -> tuple[int, int]:
        """Return the pieces of a stretch that have evidence for the question; all pieces where none has."""
        text, (pieces, _) = self._text(self._place(row)[1]), self._pieces(row)
        weights = [weigh(text[slice(*pieces[at])]) for at in range(first, last + 1)]
        best = max(weights)
        if best <= 0:
            return first, last
        kept = [first + at for at, evidence in enumerate(weights) if evidence >= KEEP * best]
        return kept[0], kept[-1]

    def _grown(self, row: int, first: int, last: int) -> Span:
        """Return the span of a stretch and of the free pieces around it that fit; the better neighbour comes first."""
        start, end = self._span(row, first, last)
        before, after = self._offer(row, first, -1), self._offer(row, last, 1)
        while True:
            # a side that no longer fits never fits again, since the passage only grows
            if before and end - min(start, before.span.start) > self.limit:
                before = None
            if after and max(end, after.span.end) - start > self.limit:
                after = None
            if after and (before is None or after.score >= before.score):
                start, end = min(start, after.span.start), max(end, after.span.end)
                self._pieces(after.row)[1][after.piece] = True
                after = self._offer(after.row, after.piece, 1)
            elif before:
                start, end = min(start, before.span.start), max(end, before.span.end)
                self._pieces(before.row)[1][before.piece] = True
                before = self._offer(before.row, before.piece, -1)
            else:
                return Span(start, end)

    def _offer(self, row: int, piece: int, side: int) -> _Offer | None:
        """Return the free piece that comes next on a side, in this chunk or the document's next, and its evidence."""
        beside = piece + side
        pieces, taken = self._pieces(row)
        if not 0 <= beside < len(pieces):
            if not self._follows(row, row + side):
                return None
            row += side
            pieces, taken = self._pieces(row)
            beside = 0 if side > 0 else len(pieces) - 1
        if not 0 <= beside < len(taken) or taken[beside]:
            return None
        return _Offer(self.scores.get(row, float("-inf")), row, beside, pieces[beside])

    def _worth(self, row: int, span: Span, seen: set[tuple[int, str]]) -> bool:
        """Return whether a passage has new content: no leftover label, no text that its document has repeated.

        The same words in another document are another source.
        """
        number = self._place(row)[1]
        said = (number, " ".join(self._text(number)[slice(*span)].lower().split()))
        if said in seen or (seen and len(said[1]) < SCRAP):
            return False
        seen.add(said)
        return True

    def _trimmed(self, row: int, span: Span) -> Span | None:
        """Return a span without the space around it and a stray mark in front; None where nothing is left."""
        words = self._text(self._place(row)[1])[slice(*span)]
        left = words.lstrip(_STRAY)
        return Span(span.end - len(left), span.start + len(words.rstrip())) if left else None
