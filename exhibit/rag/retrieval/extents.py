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
    """A sentence next to a passage that may be added to the passage.

    `score` is the score of the chunk that contains the sentence.
    """

    score: float
    row: int
    piece: int
    span: Span


@dataclass
class Extents:
    """A builder of passages from ranked chunks: a passage is a run of sentences of at most `limit` characters."""

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
        """Form up to `depth` passages around the best chunks; return them best first, as row, span and score.

        `ranked` has the rows of the chunks with their scores. `weigh` scores how well a sentence matches the
        question.
        """
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
        """Return the spans of a chunk's pieces, and a flag for each piece: whether a passage already contains it.

        All flags are false at first. Pieces are sentences; a short sentence is joined to its neighbour, and a long
        one is split at the limit.
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
        """Return the ranges of a seed's pieces that are in no passage yet.

        A seed is a run of adjacent pieces (sentences) of one chunk. A range is a pair: the number of its first
        piece and the number of its last piece. No range is longer than the length limit.
        """
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
        """Return the range of a chunk's sentences and clauses (pieces), shortened at both ends.

        `first` and `last` are the range's first and last piece. The new range begins and ends with a piece whose
        score by `weigh` is nearly the best score. If no piece has a positive score, the range is unchanged.
        """
        text, (pieces, _) = self._text(self._place(row)[1]), self._pieces(row)
        weights = [weigh(text[slice(*pieces[at])]) for at in range(first, last + 1)]
        best = max(weights)
        if best <= 0:
            return first, last
        kept = [first + at for at, evidence in enumerate(weights) if evidence >= KEEP * best]
        return kept[0], kept[-1]

    def _grow(self, row: int, first: int, last: int) -> Span:
        """Return the span of the pieces (sentences or clauses) `first` to `last` of a chunk, extended on both sides.

        Each step adds the piece before or after the span, whichever is in the chunk with the higher score. A side
        is finished if its next piece is already in a passage or would make the span longer than `limit`.
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
        """Return the next piece (sentence) before or after a piece, with the score of its chunk.

        `side` is -1 for the piece before, 1 for the piece after. Return None if there is no such piece, or if it is
        already in a passage. At the end of a chunk, the next piece is in the neighbouring chunk of the document.
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
