"""Chooses at search time where passages begin and end: at whole sentences, around the chunks with the best scores.

The first passage is the sentence that answers, and no more. Later passages are less certain, so they are extended with
the text around their chunk. No two passages overlap, and none is longer than the limit.
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
"""The least characters of an independent piece: a shorter one is a number, a label, or the end of a line."""
SCRAP = 16
"""The length in characters below which the rest between two passages is dropped: "ARTICLE IV", a page number."""
KEEP = 0.7
"""The least share of the best sentence's evidence that a sentence in the first passage has; sentences between are
kept.
"""

_STRAY = string.whitespace + "\xa0.,;:!?"
"""Characters that are removed from the start of a chunk: the mark that closed the sentence before it."""

_REMEMBERED = 8192
"""The number of rows whose pieces are cached: 4 MB, the chunks of some fifty contracts."""

Weigh = Callable[[str], float]
"""A function that returns the evidence of a text for the question."""


class Seed(NamedTuple):
    """Adjacent pieces (sentences) of one chunk, around which a passage is formed; better seeds sort first."""

    cost: float
    turn: int
    row: int
    first: int = 0
    last: int = sys.maxsize


class _Offer(NamedTuple):
    """A piece next to a passage, which may be added to the passage, with the score of the chunk that it is in."""

    score: float
    row: int
    piece: int
    span: Span


@dataclass
class Extents:
    """Forms passages from the rows of a table of chunks."""

    table: Keys
    text: Callable[[int], str]
    scores: Mapping[int, float]
    """The evidence of each scored row: a passage is extended towards the better neighbour."""
    limit: int = 500
    trim_first: bool = True
    """Whether the first passage is trimmed to the sentences that answer; else it is extended like the others."""
    tiles: dict[int, list[Span]] = field(default_factory=dict)
    """A cache of the pieces of rows, for one limit; questions about one document share it."""

    def __post_init__(self) -> None:
        # cached as Python lists: each is needed hundreds of times, and single rows of an array are slow to compare
        self._text, self._pieces = cache(self.text), cache(self._split_row)
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
            runs = self._find_free(seed)
            if len(runs) != 1:
                for run in runs:
                    turn += 1
                    heappush(queue, Seed(seed.cost, turn, seed.row, *run))
                continue
            first, last = runs[0]
            cut = self.trim_first and not extents
            if cut:
                first, last = self._tighten(seed.row, first, last, weigh)
                turn += 1
                heappush(queue, Seed(seed.cost, turn, seed.row))
            span = self._make_span(seed.row, first, last) if cut else self._grow(seed.row, first, last)
            self._take(seed.row, first, last)
            words = self._trim(seed.row, span)
            if words and self._is_new(seed.row, words, seen):
                extents.append((seed.row, words, -seed.cost))
        return extents

    # ---------------------------------------------------------------- pieces

    def _split_row(self, row: int) -> tuple[list[Span], list[bool]]:
        """Return the pieces of a row, and a flag for each: whether a passage contains it, at first false.

        Pieces are sentences; a short sentence is joined to its neighbour, and a long one is split at the limit.
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
        """Return whether the row `other` exists and belongs to the same document as `row`."""
        return 0 <= other < len(self.table) and self._place(other)[1] == self._place(row)[1]

    def _find_free(self, seed: Seed) -> list[tuple[int, int]]:
        """Return the runs of adjacent pieces of a seed that no passage contains yet, each within the length limit."""
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

    def _make_span(self, row: int, first: int, last: int) -> Span:
        pieces, _ = self._pieces(row)
        return Span(pieces[first].start, pieces[last].end)

    # ---------------------------------------------------------------- the length of a passage

    def _tighten(self, row: int, first: int, last: int, weigh: Weigh) -> tuple[int, int]:
        """Return the first and the last piece that match the question nearly as well as the best piece does.

        `weigh` scores the text of a piece. If no piece has a positive score, return `first` and `last` unchanged.
        """
        text, (pieces, _) = self._text(self._place(row)[1]), self._pieces(row)
        weights = [weigh(text[slice(*pieces[at])]) for at in range(first, last + 1)]
        best = max(weights)
        if best <= 0:
            return first, last
        kept = [first + at for at, evidence in enumerate(weights) if evidence >= KEEP * best]
        return kept[0], kept[-1]

    def _grow(self, row: int, first: int, last: int) -> Span:
        """Return the span of some pieces, extended by free pieces on both sides while the passage stays in the limit.

        At each step the neighbour with the better score is added.
        """
        start, end = self._make_span(row, first, last)
        before, after = self._offer(row, first, -1), self._offer(row, last, 1)
        while True:
            # a piece that does not fit now never fits later, since the passage only grows
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
        """Return the adjacent piece on one side with its chunk's score; None if it is in a passage or does not exist.

        At the end of a chunk, the adjacent piece is in the document's next or previous chunk.
        """
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

    def _is_new(self, row: int, span: Span, seen: set[tuple[int, str]]) -> bool:
        """Return whether a passage adds new text.

        It does not if it repeats an earlier passage of the same document, or if it is only a short remainder
        between two passages, such as a page number.
        """
        number = self._place(row)[1]
        said = (number, " ".join(self._text(number)[slice(*span)].lower().split()))
        if said in seen or (seen and len(said[1]) < SCRAP):
            return False
        seen.add(said)
        return True

    def _trim(self, row: int, span: Span) -> Span | None:
        """Return a span without white space around it and without a stray punctuation mark at its start.

        Return None if nothing remains.
        """
        words = self._text(self._place(row)[1])[slice(*span)]
        left = words.lstrip(_STRAY)
        return Span(span.end - len(left), span.start + len(words.rstrip())) if left else None
