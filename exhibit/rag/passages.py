"""Forms passages of whole sentences around the chunks with the best scores; passages do not overlap.

The first passage is only the sentence that answers. Later passages are less certain, so they are extended with the
text around their chunk.
"""

import string
import sys
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from exhibit.evidence import Span, subtract_spans
from exhibit.law.sentences import extend_to_sentences, tile_clauses
from exhibit.rag.index import DOCUMENT, END, PAGE, Index
from exhibit.rag.protocols import Hit

MIN_PIECE_CHARS = 40  # least characters of an independent piece: a shorter piece is a number, a label or a line's end
MIN_REST_CHARS = 16  # least characters of a text between two passages; a shorter text, such as "ARTICLE IV", is dropped
TRIM_SHARE = 0.7  # least share of the best sentence's evidence for a sentence at an end of the first passage
MAX_COMPLETED_CHARS = 900  # most characters of a passage with complete sentences; the reader truncates a longer one
_STRAY = string.whitespace + "\xa0.,;:!?"  # characters at the start of a chunk that belong to the sentence before it
_MAX_TILES = 8192  # most rows with cached pieces: 4 MB, the chunks of about fifty contracts

Weigh = Callable[[str], float]  # a function that returns the evidence of a text for the question


class RankedPassage(NamedTuple):
    """A span of a document that may answer a question."""

    document: int
    span: Span
    score: float


class _Offer(NamedTuple):
    score: float
    row: int
    piece: int
    span: Span


def form_passages(
    index: Index,
    ranked: Sequence[tuple[int, float]],
    *,
    scores: Mapping[int, float],
    depth: int,
    size: int,
    weigh: Weigh,
    trim_first: bool,
) -> list[RankedPassage]:
    """Form up to `depth` passages of at most `size` characters around the best chunks; return them best first.

    `ranked` has the best chunks, as rows of the index's table, with their scores, best first. `scores` has the score of
    each row that was compared: a passage is extended towards the neighbour with the better score. `weigh` scores how
    well a sentence matches the question.
    """
    former = _Former(index, scores, size)
    passages: list[RankedPassage] = []
    for score, group in groupby(ranked, key=itemgetter(1)):
        # a passage is formed around each run of adjacent pieces (sentences) of a chunk
        seeds = deque((row, 0, sys.maxsize) for row, _ in group)
        while seeds and len(passages) < depth:
            row, first, last = seeds.popleft()
            runs = former.find_free(row, first, last)
            if len(runs) != 1:
                seeds += [(row, *run) for run in runs]
                continue
            trim = trim_first and not passages
            first, last = former.trim_to_best(row, *runs[0], weigh) if trim else runs[0]
            if trim:  # the text that is cut off may become a passage
                seeds.append((row, 0, sys.maxsize))
            if span := former.take(row, first, last, grow=not trim):
                passages.append(RankedPassage(int(index.table[row, DOCUMENT]), span, score))
    return passages


class _Former:
    def __init__(self, index: Index, scores: Mapping[int, float], size: int) -> None:
        self._table, self._scores, self._size = index.table, scores, size
        self._tiles: dict[int, list[Span]] = index.cache.setdefault(("tiles", size), {})
        self._text = cache(index.text_of)
        self._pieces = cache(self._split_row)
        # convert rows to lists: each is needed hundreds of times, and rows of an array are slow to compare
        self._row: Callable[[int], list[int]] = cache(lambda row: self._table[row].tolist())
        self._seen: set[tuple[int, str]] = set()

    def take(self, row: int, first: int, last: int, *, grow: bool) -> Span | None:
        number, (pieces, taken) = self._row(row)[DOCUMENT], self._pieces(row)
        span = self._grow(row, first, last) if grow else Span(pieces[first].start, pieces[last].end)
        taken[first : last + 1] = [True] * (last + 1 - first)
        text = self._text(number)[slice(*span)]
        left = text.lstrip(_STRAY)
        words = (number, " ".join(left.lower().split()))
        # leave out a very short text, except as the first passage
        if not left or words in self._seen or (self._seen and len(words[1]) < MIN_REST_CHARS):
            return None
        self._seen.add(words)
        return Span(span.end - len(left), span.start + len(text.rstrip()))

    def _split_row(self, row: int) -> tuple[list[Span], list[bool]]:
        if row not in self._tiles:
            if len(self._tiles) >= _MAX_TILES:
                self._tiles.clear()
            number, start, end = self._row(row)[DOCUMENT:PAGE]
            if self._is_same_document(row, row - 1):
                start = max(start, self._row(row - 1)[END])  # chunks may overlap; passages do not
            self._tiles[row] = tile_clauses(self._text(number), start, end, least=MIN_PIECE_CHARS, limit=self._size)
        return self._tiles[row], [False] * len(self._tiles[row])

    def _is_same_document(self, row: int, other: int) -> bool:
        return 0 <= other < len(self._table) and self._row(other)[DOCUMENT] == self._row(row)[DOCUMENT]

    def find_free(self, row: int, first: int, last: int) -> list[tuple[int, int]]:
        pieces, taken = self._pieces(row)
        runs: list[tuple[int, int]] = []
        for at in range(first, min(len(pieces), last + 1)):
            if taken[at]:
                continue
            if runs and runs[-1][1] == at - 1 and pieces[at].end - pieces[runs[-1][0]].start <= self._size:
                runs[-1] = (runs[-1][0], at)
            else:
                runs.append((at, at))
        return runs

    def trim_to_best(self, row: int, first: int, last: int, weigh: Weigh) -> tuple[int, int]:
        text, (pieces, _) = self._text(self._row(row)[DOCUMENT]), self._pieces(row)
        weights = [weigh(text[slice(*pieces[at])]) for at in range(first, last + 1)]
        best = max(weights)
        if best <= 0:
            return first, last
        near = [first + at for at, weight in enumerate(weights) if weight >= TRIM_SHARE * best]
        return near[0], near[-1]

    def _grow(self, row: int, first: int, last: int) -> Span:
        pieces, _ = self._pieces(row)
        start, end = pieces[first].start, pieces[last].end
        before, after = self._offer(row, first, -1), self._offer(row, last, 1)
        while True:
            # a piece that does not fit now will not fit later, because the passage only grows
            if before and end - min(start, before.span.start) > self._size:
                before = None
            if after and max(end, after.span.end) - start > self._size:
                after = None
            side = 1 if after and (before is None or after.score >= before.score) else -1
            offer = after if side > 0 else before
            if offer is None:
                return Span(start, end)
            start, end = min(start, offer.span.start), max(end, offer.span.end)
            self._pieces(offer.row)[1][offer.piece] = True
            following = self._offer(offer.row, offer.piece, side)
            before, after = (before, following) if side > 0 else (following, after)

    def _offer(self, row: int, piece: int, side: int) -> _Offer | None:
        beside = piece + side
        pieces, taken = self._pieces(row)
        if not 0 <= beside < len(pieces):
            if not self._is_same_document(row, row + side):
                return None
            row += side
            pieces, taken = self._pieces(row)
            beside = 0 if side > 0 else len(pieces) - 1
        if not 0 <= beside < len(taken) or taken[beside]:
            return None
        return _Offer(self._scores.get(row, float("-inf")), row, beside, pieces[beside])


def make_hits(index: Index, passages: Sequence[RankedPassage]) -> list[Hit]:
    """Return passages as hits; each hit has the headings and page at its start and at each change inside it."""
    hits = []
    for number, span, score in passages:
        words, changes = index.text_of(number)[slice(*span)], index.changes(number)
        # a passage may begin with a line break that still belongs to the previous section
        start = bisect_right(changes, span.end - len(words.lstrip()), key=itemgetter(0))
        inner = tuple(changes[start : bisect_left(changes, span.end, key=itemgetter(0))])
        hits.append(Hit(index.document(number).filename, span, words, score, *changes[start - 1][1:], inner))
    return hits


def complete_sentences(selected: Sequence[Hit], ranked: Sequence[Hit], index: Index) -> list[Hit]:
    """Return the text that completes the sentences in which the selected passages begin and end, as further hits.

    For example, a passage that ends with "Party B agrees:" lacks the answer. No further hit overlaps a selected passage
    or crosses the start or end of a ranked passage.
    """
    taken: dict[str, list[Span]] = {}
    edges: dict[str, set[int]] = {}
    for hit in selected:
        taken.setdefault(hit.document, []).append(hit.span)
    for hit in ranked:
        edges.setdefault(hit.document, set()).update(hit.span)
    added: list[RankedPassage] = []
    for hit in selected:
        name, number = hit.document, index.entry(hit.document).number
        text = index.text_of(number)
        whole = extend_to_sentences(text, hit.span, widest=MAX_COMPLETED_CHARS)
        for gap in subtract_spans([whole], taken[name]):
            inner = sorted(edge for edge in edges.get(name, ()) if gap.start < edge < gap.end)
            for start, end in zip([gap.start, *inner], [*inner, gap.end], strict=True):
                if text[start:end].strip():
                    taken[name].append(Span(start, end))
                    added.append(RankedPassage(number, Span(start, end), hit.score))
    return make_hits(index, added)


def move_to_front(words: Hit, ranked: Sequence[Hit], index: Index) -> list[Hit]:
    at = next((at for at, hit in enumerate(ranked) if hit.contains(words)), None)
    if at is None:
        return list(ranked)
    passage, number = ranked[at], index.entry(words.document).number
    start, whole = passage.span.start, passage.span
    quote = Span(words.span.start - start, words.span.end - start)
    inside = extend_to_sentences(passage.text, quote, widest=len(passage.text))
    first = Span(start + inside.start, start + inside.end)
    rests = [rest for rest in subtract_spans([whole], [first]) if rest.end - rest.start >= MIN_REST_CHARS]
    scored = [(first, ranked[0].score), *((rest, passage.score) for rest in rests)]
    head, *others = make_hits(index, [RankedPassage(number, *each) for each in scored])
    return [head, *ranked[:at], *others, *ranked[at + 1 :]]
