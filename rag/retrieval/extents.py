"""Where passages begin and end: formed when a question is asked, of whole sentences, around the chunks that rank best.

The first passage is the sentence that answers, no more; those after it are filled up from around their chunk, as they
are less sure. No two of them share a character, and none is longer than the limit.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from evidence import Span
from law.sentences import tile_clauses
from rag.seams import Keys

LEAST = 40
"""Characters of the shortest piece that stands for itself: less is a number, a label, the end of a line."""
SCRAP = 16
"""Characters below which what remains between two passages is dropped: "ARTICLE IV", a page number."""
KEEP = 0.7
"""A first passage keeps the sentences with at least this share of the evidence of its best one, and what is between."""

_STRAY = string.whitespace + "\xa0.,;:!?"
"""A chunk may open with the mark that closed the sentence before it."""

Weigh = Callable[[str], float]
"""How much a stretch of text has of what was asked."""


class Seed(NamedTuple):
    """A stretch of pieces of one chunk that a passage may be grown from; the smallest is the best."""

    cost: float
    turn: int
    row: int
    first: int = 0
    last: int = sys.maxsize


@dataclass
class Extents:
    """Forms passages over the rows of a table of chunks."""

    table: Keys
    text: Callable[[int], str]
    scores: Mapping[int, float]
    """Each scored row's own evidence: a passage grows towards the better neighbour."""
    limit: int = 500
    tight: bool = True
    """Whether the first passage is cut to the sentences that answer; else it is filled like the others."""
    _texts: dict[int, str] = field(default_factory=dict)
    _pieces: dict[int, list[Span]] = field(default_factory=dict)
    _taken: dict[int, list[bool]] = field(default_factory=dict)

    def form(self, ranked: Sequence[tuple[int, float]], *, depth: int, weigh: Weigh) -> list[tuple[int, Span, float]]:
        """Return row, span and score of up to `depth` passages, best first, from rows that are ranked by score."""
        queue = [Seed(-score, turn, row) for turn, (row, score) in enumerate(ranked)]
        heapify(queue)
        found: list[tuple[int, Span, float]] = []
        seen: set[tuple[int, str]] = set()
        turn = len(queue)
        while queue and len(found) < depth:
            seed = heappop(queue)
            runs = self._free(seed)
            if len(runs) != 1:
                for run in runs:
                    turn += 1
                    heappush(queue, Seed(seed.cost, turn, seed.row, *run))
                continue
            first, last = runs[0]
            cut = self.tight and not found
            if cut:
                first, last = self._tight(seed.row, first, last, weigh)
                turn += 1
                heappush(queue, Seed(seed.cost, turn, seed.row))
            span = self._span(seed.row, first, last) if cut else self._grown(seed.row, first, last)
            self._take(seed.row, first, last)
            words = self._trimmed(seed.row, span)
            if words and self._worth(seed.row, words, seen):
                found.append((seed.row, words, -seed.cost))
        return found

    # ---------------------------------------------------------------- pieces

    def _of(self, row: int) -> list[Span]:
        """Return the pieces of a chunk: sentences, short ones with their neighbour, and none above the limit."""
        pieces = self._pieces.get(row)
        if pieces is None:
            _, number, start, end, *_ = self.table[row].tolist()
            if self._follows(row, row - 1):
                start = max(start, int(self.table[row - 1, 3]))  # chunks may overlap; passages do not
            pieces = self._pieces[row] = tile_clauses(self._text(number), start, end, least=LEAST, limit=self.limit)
            self._taken[row] = [False] * len(pieces)
        return pieces

    def _text(self, number: int) -> str:
        if number not in self._texts:
            self._texts[number] = self.text(number)
        return self._texts[number]

    def _free(self, seed: Seed) -> list[tuple[int, int]]:
        """Return the stretches of a seed that no passage has taken."""
        pieces = self._of(seed.row)
        taken = self._taken[seed.row]
        runs: list[tuple[int, int]] = []
        for at in range(seed.first, min(len(pieces), seed.last + 1)):
            if taken[at]:
                continue
            if runs and runs[-1][1] == at - 1 and pieces[at].end - pieces[runs[-1][0]].start <= self.limit:
                runs[-1] = (runs[-1][0], at)
            else:
                runs.append((at, at))
        return runs

    def _take(self, row: int, first: int, last: int) -> None:
        for at in range(first, last + 1):
            self._taken[row][at] = True

    def _span(self, row: int, first: int, last: int) -> Span:
        pieces = self._of(row)
        return Span(pieces[first].start, pieces[last].end)

    # ---------------------------------------------------------------- how far

    def _tight(self, row: int, first: int, last: int, weigh: Weigh) -> tuple[int, int]:
        """Return the pieces of a stretch that hold what was asked; all of them where none does."""
        text, pieces = self._text(int(self.table[row, 1])), self._of(row)
        found = [weigh(text[slice(*pieces[at])]) for at in range(first, last + 1)]
        best = max(found)
        if best <= 0:
            return first, last
        kept = [first + at for at, evidence in enumerate(found) if evidence >= KEEP * best]
        return kept[0], kept[-1]

    def _grown(self, row: int, first: int, last: int) -> Span:
        """Return the span of a stretch and of the free pieces around it that fit, the better neighbour's first."""
        span = self._span(row, first, last)
        ends = {-1: (row, first), 1: (row, last)}
        while True:
            offers = []
            for side, (at, piece) in ends.items():
                place = self._beside(at, piece, side)
                if place is None:
                    continue
                new = self._of(place[0])[place[1]]
                wider = Span(min(span.start, new.start), max(span.end, new.end))
                if wider.end - wider.start <= self.limit:
                    offers.append((self.scores.get(place[0], float("-inf")), side, place, wider))
            if not offers:
                return span
            _, side, place, span = max(offers)
            ends[side] = place
            self._take(place[0], place[1], place[1])

    def _beside(self, row: int, piece: int, side: int) -> tuple[int, int] | None:
        """Return the free piece that comes next on a side, in this chunk or the next one of the document."""
        beside = piece + side
        if not 0 <= beside < len(self._of(row)):
            if not self._follows(row, row + side):
                return None
            row += side
            beside = 0 if side > 0 else len(self._of(row)) - 1
        free = 0 <= beside < len(self._of(row)) and not self._taken[row][beside]
        return (row, beside) if free else None

    def _follows(self, row: int, other: int) -> bool:
        return 0 <= other < len(self.table) and bool(self.table[other, 1] == self.table[row, 1])

    def _worth(self, row: int, span: Span, seen: set[tuple[int, str]]) -> bool:
        """Return whether a passage says something: not a label left over, nor what its document said before it.

        The same words in another document are another source.
        """
        number = int(self.table[row, 1])
        said = (number, " ".join(self._text(number)[slice(*span)].lower().split()))
        if said in seen or (seen and len(said[1]) < SCRAP):
            return False
        seen.add(said)
        return True

    def _trimmed(self, row: int, span: Span) -> Span | None:
        """Return a span without the space around it and a stray mark in front; None where nothing is left."""
        words = self._text(int(self.table[row, 1]))[slice(*span)]
        left = words.lstrip(_STRAY)
        return Span(span.end - len(left), span.start + len(words.rstrip())) if left else None
