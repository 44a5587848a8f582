"""Locates a text in a document by its pieces: the ranges of the text that the document contains.

A retrieved passage, or a quote in a parser's markup, may begin with a summary, have tags or JSON around it, join two
passages, or contain a table in Markdown. Texts are therefore compared by letters and digits only, without markup.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from exhibit.evidence.document import Document, Span
from exhibit.evidence.fold import Fold, fold

_COMMON_MARKUP = (
    r"<!--[^<>]{0,400}-->"  # <!-- image -->, <!-- PageBreak -->: Docling and others
    r"|</?[a-zA-Z][^<>]{0,400}>"
    r"|!\[[^\[\]]{0,200}\]\([^()\s]{0,400}\)"  # an image: Marker, MinerU, LlamaParse
    r"|\]\([^()\s]{0,400}\)"  # the target of a link; the link's words stay
    r"|\[\^[^\[\]\s]{1,20}\]"  # a footnote mark
    r"|\\(?:begin|end)\{[a-z*]{1,16}\}(?:\{[lcrpmX|@.\d ]{0,40}\})?"
    r"|\\multi(?:column|row)\{\d{1,2}\}\{[lcr|*]{1,8}\}"
    r"|\\[nrt](?=[A-Z0-9\\(\"'\s])"  # an escaped line end of Python or JSON; no LaTeX command starts like this
    r"|\\[a-zA-Z]{1,24}\*?"  # any LaTeX command; its argument stays
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});"
    r"|~~|\^\{?\d{1,3}\}?(?=\s|$)"  # a superscript number at the end of a word belongs to a footnote
)
_MARKUP = re.compile(_COMMON_MARKUP)  # markup, which is not part of the words
_FRAMED = re.compile(r"\"\s{0,3}:\s{0,3}[\"\[{\d]|\\u00[0-9a-f]{2}|\\\"")  # the signs that a text is inside JSON
_JSON_MARKUP = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf\"/])|" + _COMMON_MARKUP)
"""Markup inside JSON, where an escaped line end may precede any letter."""
_CUT = re.compile(
    r"\\\\|(?<!\\)&(?!#|[a-zA-Z]{2,8};)|(?<!\\)\||\n|\t|</?(?:td|th|tr|br|li|p|table)\b[^<>]{0,400}>", re.I
)  # The end of a table cell
_TABLE = re.compile(r"(?<!\\)[&|]|\\\\|</t[dhr]>", re.I)  # the signs that a text contains a table


def letters_of(text: str) -> Fold:
    """Return the letters and digits of a text without its markup, in lower case, with their offsets."""
    return Fold.of(blank_markup(text), loose=True).letters


def without_markup(text: str) -> str:
    return _make_markup_pattern(text).sub("", text)


def _make_markup_pattern(text: str) -> re.Pattern[str]:
    return _JSON_MARKUP if _FRAMED.search(text) else _MARKUP


def cells_of(text: str) -> list[Span]:
    lines = text.strip().splitlines()
    # lines of an address or a form have at most 60 characters, and may be beside other lines
    if not _TABLE.search(text) and (len(lines) < 2 or max(map(len, lines)) > 60):
        return []
    edges = [(0, 0), *(match.span() for match in _CUT.finditer(text)), (len(text), len(text))]
    return [Span(before[1], after[0]) for before, after in pairwise(edges) if before[1] < after[0]]


def blank_markup(text: str) -> str:
    """Return a text with blanks in place of its markup, so that every word keeps its offset."""
    return _make_markup_pattern(text).sub(lambda match: " " * len(match[0]), text)


MIN_SHARED_LETTERS = 24  # The fewest letters and digits that a range and a document must share: about five words
MAX_PLACES = 5000  # most locations of one quote: a party's name occurs 1,029 times in one contract of CUAD
COMMON = 256  # most occurrences of a seed that are tried; more frequent words give no location
_SLIP = 6  # The most letters that may differ inside a range, in either text: a misread word, an escape, a note's number
_MIN_RESUMED_LETTERS = 12  # letters that must match after such a difference before the range continues
_EDGE = 4  # the same, if fewer letters remain to the end of the text


class Stretch(NamedTuple):
    start: int
    end: int
    hits: tuple[Span, ...]  # the spans of a document that match the range of letters with small differences
    letters: int


def find_stretches(needle: str, haystack: Fold, ranges: Sequence[tuple[int, int]]) -> list[Stretch]:
    """Return the longer parts (stretches) of the needle that also occur in the haystack, without overlaps."""
    stretches = []
    for first, last in ranges:
        at, floor = first, first
        while at + MIN_SHARED_LETTERS <= last:
            hits = find_occurrences(needle[at : at + MIN_SHARED_LETTERS], haystack.text, most=COMMON + 1)
            if not hits or len(hits) > COMMON:
                at += 8  # so that a shared range of 32 letters is never missed
                continue
            stretches.append(_extend_seed(needle, haystack, at, hits, (floor, last)))
            at = floor = stretches[-1].end
    return stretches


def find_occurrences(needle: str, text: str, *, most: int = MAX_PLACES) -> list[int]:
    """Return the offsets of the first occurrences of a needle in a text; occurrences may overlap."""
    starts: list[int] = []
    start = text.find(needle) if needle else -1
    while start >= 0 and len(starts) < most:
        starts.append(start)
        start = text.find(needle, start + 1)
    return starts


def find_spans(needle: str, haystack: Fold) -> list[Span]:
    """Return the spans of a document for the first occurrences of a needle that do not end inside a character."""
    ranges = ((start, start + len(needle)) for start in find_occurrences(needle, haystack.text))
    return [Span(*haystack.span(*place)) for place in ranges if not haystack.cuts(*place)]


def _extend_seed(needle: str, haystack: Fold, at: int, hits: Sequence[int], bounds: tuple[int, int]) -> Stretch:
    after, before = needle[at + MIN_SHARED_LETTERS : bounds[1]], needle[bounds[0] : at][::-1]
    grown: dict[tuple[int, int, int], list[Span]] = {}
    for hit in hits:
        end = hit + MIN_SHARED_LETTERS
        # each slip is followed by a longer match, so no stretch is longer than twice the needle
        ahead, reach, letters_ahead = _grow(after, haystack.text[end : end + 2 * len(after) + _MIN_RESUMED_LETTERS])
        back, earlier, other = _grow(
            before, haystack.text[max(hit - 2 * len(before) - _MIN_RESUMED_LETTERS, 0) : hit][::-1]
        )
        key = (MIN_SHARED_LETTERS + letters_ahead + other, at - back, at + MIN_SHARED_LETTERS + ahead)
        grown.setdefault(key, []).append(Span(*haystack.span(hit - earlier, end + reach)))
    letters, start, end = max(grown, key=lambda key: (key[0], -key[1]))
    return Stretch(start, end, tuple(dict.fromkeys(grown[letters, start, end])), letters)


def _grow(text: str, other: str) -> tuple[int, int, int]:
    """Return how many characters at the start of each text match with small differences, and the match's score."""
    ahead = reach = letters = 0
    while True:
        pairs = enumerate(zip(text[ahead:], other[reach:], strict=False))
        same = next((at for at, (a, b) in pairs if a != b), min(len(text) - ahead, len(other) - reach))
        ahead, reach, letters = ahead + same, reach + same, letters + same
        slip = _find_slip(text, ahead, other, reach)
        if slip is None:
            return ahead, reach, letters
        # letters that only the document has reduce the stretch's score
        ahead, reach, letters = ahead + slip[0], reach + slip[1], letters - max(slip[1] - slip[0], 0)


_SLIPS = sorted(((a, b) for a in range(_SLIP + 1) for b in range(_SLIP + 1) if a or b), key=lambda s: (max(s), sum(s)))


def _find_slip(text: str, at: int, other: str, place: int) -> tuple[int, int] | None:
    for skip, pass_over in _SLIPS:
        # at the edge of the text fewer letters remain to match
        need = min(_MIN_RESUMED_LETTERS, len(text) - at - skip)
        if need >= _EDGE and other.startswith(text[at + skip : at + skip + need], place + pass_over):
            return skip, pass_over
    return None


FEW = 3  # most locations of a short range that still identify the text's origin
_LONG = 60  # letters of a range, about a line, that identify the origin even if they occur more often
_MARGIN = 300  # letters around the located cells in which short cells are searched: a few rows of a table
_CELL_WORD = re.compile(r"[^\s<>&|]+")
Place = tuple[Span, ...]


class PlacedPiece(NamedTuple):
    start: int
    end: int
    places: tuple[Place, ...]  # the locations of the text's range in a document
    letters: int  # The letters and digits that both texts share, minus additional letters of the document


@dataclass(frozen=True)
class Placement:
    pieces: tuple[PlacedPiece, ...]
    added: tuple[Span, ...]  # The ranges of the text whose words the document does not contain, without markup
    letters: int  # The number of letters and digits of the whole text without markup

    @property
    def share(self) -> float:
        return sum(piece.letters for piece in self.pieces) / self.letters if self.letters else 0.0


def place_pieces(text: str, document: Document, *, split_cells: bool = False) -> Placement:
    needle = letters_of(text)
    stretches = find_stretches(needle.text, document.letters, [(0, len(needle.text))])
    if len(needle.text) < MIN_SHARED_LETTERS and (spots := _find_whole_words(needle.text, document)):
        stretches = [Stretch(0, len(needle.text), tuple(spots), len(needle.text))]
    if document.furniture:
        # also search running heads and page numbers, which a parser may keep and `body` lacks
        others = find_stretches(needle.text, document.loose.letters, _find_left(stretches, needle))
        stretches = sorted([*stretches, *others])
    if cells := cells_of(text):
        ranges = [folded for cell in cells if (folded := needle.find_folded_range(*cell))[0] < folded[1]]
        if split_cells:
            ranges = [part for cell in ranges for part in _split_cell(cell, needle, text, document)]
        stretches = _with_cells(ranges, stretches, needle, document)
    stretches = _choose_distinctive(stretches)
    pieces = [_make_piece(stretch, needle, text, document) for stretch in stretches]
    added = (Span(*needle.span(start, end)) for start, end in _find_left(stretches, needle))
    return Placement(tuple(pieces), tuple(added), len(needle.text))


def _find_left(stretches: Sequence[Stretch], needle: Fold) -> list[tuple[int, int]]:
    edges = [(0, 0), *((stretch.start, stretch.end) for stretch in stretches), (len(needle.text), len(needle.text))]
    return [(last, start) for (_, last), (start, _) in pairwise(edges) if last < start]


def _choose_distinctive(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return the long or rare stretches, which show that the document is the source, and other stretches near them."""
    sure = [stretch for stretch in stretches if len(stretch.hits) <= FEW or stretch.letters >= _LONG]
    near = [hit for stretch in sure for hit in stretch.hits[:1]]
    kept = []
    for stretch in stretches:
        is_sure = stretch in sure
        # among several locations, choose those near another piece of the same text
        others = [hit for hit in near if not is_sure or hit not in stretch.hits]
        close = tuple(hit for hit in stretch.hits if any(_are_near(hit, other) for other in others))
        hits = close or (stretch.hits if is_sure else ())
        if hits:
            kept.append(stretch._replace(hits=hits))
    return kept


def _are_near(first: Span, second: Span) -> bool:
    return max(first.start, second.start) - min(first.end, second.end) <= _MARGIN


def _split_cell(cell: tuple[int, int], needle: Fold, text: str, document: Document) -> list[tuple[int, int]]:
    """Return a cell that is long or in the document, else the longest runs of its words that the document contains."""
    start, end = cell
    if end - start > 1000 or _find_whole_words(needle.text[start:end], document):
        return [cell]
    first, last = needle.span(start, end)
    words = [needle.find_folded_range(*match.span()) for match in _CELL_WORD.finditer(text, first, last)]
    words = [word for word in words if word[0] < word[1]]
    runs, at = [], 0
    while at < len(words):
        until = at + 1
        while until < len(words) and _find_whole_words(needle.text[words[at][0] : words[until][1]], document):
            until += 1
        if words[until - 1][1] - words[at][0] >= 5:  # shorter runs are too common
            runs.append((words[at][0], words[until - 1][1]))
        at = until
    return runs or [cell]


def _with_cells(
    cells: Sequence[tuple[int, int]], stretches: list[Stretch], needle: Fold, document: Document
) -> list[Stretch]:
    open_cells = [(s, e) for s, e in cells if not any(a < e and s < b for a, b, *_ in stretches)]
    if not open_cells:
        return stretches
    wanted = Counter(needle.text[start:end] for start, end in open_cells)
    places = {word: _find_whole_words(word, document) for word in wanted}
    if stretches:
        low = min(stretch.hits[0][0] for stretch in stretches) - _MARGIN
        high = max(stretch.hits[0][1] for stretch in stretches) + _MARGIN
    else:
        low, high = _find_densest(wanted, places)
    free = {word: [span for span in spots if low <= span.start < high] for word, spots in places.items()}
    added = []
    at = low
    for start, end in open_cells:
        if spots := free[needle.text[start:end]]:
            # take the next occurrence; after the last, the first, because a text layer may be in column order
            chosen = spots.pop(bisect_left(spots, (at, at)) % len(spots))
            at = chosen.end
            added.append(Stretch(start, end, (chosen,), end - start))
    if not stretches and sum(piece.letters for piece in added) < 12:
        return stretches  # a few short numbers prove nothing
    return sorted([*stretches, *added])


def _find_whole_words(word: str, document: Document) -> list[Span]:
    text, letters = document.text, document.letters
    spots = []
    for at in find_occurrences(word, letters.text, most=16 * COMMON):
        span = Span(*letters.span(at, at + len(word)))
        is_inside = text[max(span.start - 1, 0) : span.start].isalnum() or text[span.end : span.end + 1].isalnum()
        if not is_inside and not letters.cuts(at, at + len(word)):
            spots.append(span)
    return spots


def _find_densest(wanted: Counter[str], places: dict[str, list[Span]]) -> Span:
    """Return the range of a document that contains the most letters of the wanted table cells."""
    # the cells must lie within three times their own letters
    reach = 3 * sum(len(word) * count for word, count in wanted.items()) + _MARGIN // 2
    spots = sorted((span, word) for word, spans in places.items() for span in spans)
    inside: Counter[str] = Counter()
    best, held, first = (0, 0, 0, 0), 0, 0
    for (_, end), word in spots:
        held += len(word) if inside[word] < wanted[word] else 0
        inside[word] += 1
        while spots[first][0].start < end - reach or inside[spots[first][1]] > wanted[spots[first][1]]:
            early = spots[first][1]
            inside[early] -= 1
            held -= len(early) if inside[early] < wanted[early] else 0
            first += 1
        start = spots[first][0].start
        best = max(best, (held, start - end, -start, end))
    return Span(-best[2], best[3])


def _make_piece(stretch: Stretch, needle: Fold, text: str, document: Document) -> PlacedPiece:
    start, end = needle.span(stretch.start, stretch.end)
    before = int(needle.offsets[stretch.start - 1]) + 1 if stretch.start else 0
    after = int(needle.offsets[stretch.end]) if stretch.end < len(needle.offsets) else len(text)
    signs = text[before:start], text[end:after]
    spans = (_with_signs(span, signs, document.text) for span in stretch.hits)
    return PlacedPiece(start, end, tuple(map(document.cut_furniture, spans)), stretch.letters)


def _with_signs(span: Span, signs: tuple[str, str], text: str) -> Span:
    """Extend a span of a document at each end by punctuation that the quoted text also has there."""
    start, end = span
    before, after = (without_markup(side) for side in signs)
    before, after = "".join(before.split()[-1:]) if before[-1:].strip() else "", "".join(after.split()[:1])
    before, after = fold(before), fold(after)
    while start and not text[start - 1].isalnum() and (sign := fold(text[start - 1])) and sign in before:
        start, before = start - 1, before[: before.rfind(sign)]
    while end < len(text) and not text[end].isalnum() and (sign := fold(text[end])) and sign in after:
        end, after = end + 1, after[after.find(sign) + 1 :]
    return Span(start, end)


def choose_nearest_places(pieces: Sequence[PlacedPiece]) -> list[Place]:
    """Return one location for each piece; if a piece has several, choose the location nearest to the previous piece."""
    at = next((piece.places[0][0].start for piece in pieces if len(piece.places) == 1), 0)
    chosen: list[Place] = []
    for piece in pieces:
        chosen.append(min(piece.places, key=lambda place: abs(place[0].start - at)))
        at = chosen[-1][-1].end
    return chosen
