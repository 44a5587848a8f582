"""Locates a text in a document by its pieces: the ranges of the text that the document contains.

A passage that a system retrieved, or a quote in a parser's markup, is rarely an exact part of its
document. It may begin with a summary, have tags or JSON around it, join two passages, or contain a table
in Markdown. Texts are therefore compared by their letters and digits only, without markup. Words of the
text that are in no piece count as added. Ranges that are apart in the document stay apart: no location
ever covers words that the text does not have.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from exhibit.evidence.document import Document, Span
from exhibit.evidence.fold import Fold, fold
from exhibit.evidence.parser_markup import TextCell, cells_of, letters_of, without_markup
from exhibit.evidence.stretches import COMMON, TELLING, Stretch, find_occurrences, find_stretches

FEW = 3
"""Most locations of a short range that still identify the text's origin."""
_LONG = 60
"""Letters of a range, about a line, that identify the origin even if they occur more often."""
_SPREAD = 3
"""A table's cells must lie within this many times their own letters."""
_FORM = 12
"""Letters that the cells of a table must have together if no longer range gives the table's location."""
_MARGIN = 300
"""Letters around the located cells in which short cells are searched: a few rows of a table."""

Place = tuple[Span, ...]


class PlacedPiece(NamedTuple):
    """A range of a text, and its locations in a document."""

    start: int
    end: int
    places: tuple[Place, ...]
    letters: int
    """The letters and digits that both texts share, minus additional letters of the document."""


@dataclass(frozen=True)
class Placement:
    """The result of searching a text in a document, fragment by fragment.

    `pieces` has the fragments that the document contains, and `added` the ranges of the text that it does not
    contain.
    """

    pieces: tuple[PlacedPiece, ...]
    added: tuple[Span, ...]
    """The ranges of the text whose words the document does not contain, without markup."""
    letters: int
    """The number of letters and digits of the whole text without markup."""

    @property
    def share(self) -> float:
        """The share of the searched text's letters and digits that were found in the document."""
        return sum(piece.letters for piece in self.pieces) / self.letters if self.letters else 0.0


def place_pieces(text: str, document: Document) -> Placement:
    """Return the pieces of a text that a document contains, each with its locations.

    The result also has the ranges of the text that the document does not contain (`added`).
    """
    needle = letters_of(text)
    if not needle.text:
        return Placement((), (), 0)
    stretches = find_stretches(needle.text, document.letters, [(0, len(needle.text))])
    if len(needle.text) < TELLING and (spots := _find_standing_alone(needle.text, document)):
        stretches = [Stretch(0, len(needle.text), tuple(spots), len(needle.text))]
    if document.furniture:
        # search the furniture too: a parser may keep running heads and page numbers, which `body` lacks
        stretches = sorted(
            [*stretches, *find_stretches(needle.text, document.loose.letters, _find_left(stretches, needle))]
        )
    cells = cells_of(text)
    if cells:
        stretches = _with_cells(_find_cell_ranges(cells, needle), stretches, needle, document)
    stretches = _choose_telling(stretches)
    pieces = [_make_piece(stretch, needle, text, document) for stretch in stretches]
    added = (Span(*needle.span(start, end)) for start, end in _find_left(stretches, needle))
    return Placement(tuple(pieces), tuple(added), len(needle.text))


def _find_left(stretches: Sequence[Stretch], needle: Fold) -> list[tuple[int, int]]:
    """Return the ranges of a text's letters that were not found in the document.

    `needle` has the letters of the text. Each stretch is a range of these letters that was found; the
    stretches are in order.
    """
    edges = [(0, 0), *((one.start, one.end) for one in stretches), (len(needle.text), len(needle.text))]
    return [(last, start) for (_, last), (start, _) in pairwise(edges) if last < start]


# ---------------------------------------------------------------- stretches


def _choose_telling(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Return the stretches that show where a searched text comes from.

    A stretch is a range of the text, with the locations of its words in a document. It is returned if it is
    long, if it has few locations, or if it is close to another stretch that is long or has few locations. Of
    several locations of a stretch, those close to another stretch are preferred.
    """
    sure = [stretch for stretch in stretches if len(stretch.hits) <= FEW or stretch.letters >= _LONG]
    near = [hit for stretch in sure for hit in stretch.hits[:1]]
    kept = []
    for stretch in stretches:
        if stretch not in sure:
            hits = tuple(hit for hit in stretch.hits if any(_measure_gap(hit, one) <= _MARGIN for one in near))
            stretch = stretch._replace(hits=hits)
        elif len(stretch.hits) > 1 and len(near) > 1:
            # among several locations, choose those next to another piece of the same text
            others = [one for one in near if one not in stretch.hits]
            hits = tuple(hit for hit in stretch.hits if any(_measure_gap(hit, one) <= _MARGIN for one in others))
            stretch = stretch._replace(hits=hits or stretch.hits)
        if stretch.hits:
            kept.append(stretch)
    return kept


def _measure_gap(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(one[0], other[0]) - min(one[1], other[1])


# ---------------------------------------------------------------- tables


def _find_cell_ranges(cells: Sequence[TextCell], needle: Fold) -> list[tuple[int, int]]:
    """Return the range of each table cell in the needle, which is the text reduced to its letters and digits.

    Cells without letters or digits are left out.
    """
    ranges = (needle.find_folded_range(cell.start, cell.end) for cell in cells)
    return [(start, end) for start, end in ranges if start < end]


def _with_cells(
    cells: Sequence[tuple[int, int]], stretches: list[Stretch], needle: Fold, document: Document
) -> list[Stretch]:
    """Return the matches (`stretches`), and new matches for table cells that had no match.

    A match is a range of the text with its spans in the document. A cell is searched near the existing matches.
    If `stretches` is empty, the cell is searched in the part of the document with the most letters of cells.
    """
    open_cells = [(s, e) for s, e in cells if not any(a < e and s < b for a, b, *_ in stretches)]
    if not open_cells:
        return stretches
    wanted = Counter(needle.text[start:end] for start, end in open_cells)
    places = {word: _find_standing_alone(word, document) for word in wanted}
    if stretches:
        low = min(stretch.hits[0][0] for stretch in stretches) - _MARGIN
        high = max(stretch.hits[0][1] for stretch in stretches) + _MARGIN
    else:
        low, high = _find_densest(wanted, places)
    free = {word: [span for span in spots if low <= span.start < high] for word, spots in places.items()}
    added = []
    at = low
    for start, end in open_cells:
        word = needle.text[start:end]
        spots = free[word]
        if spots:
            # take the next occurrence in reading order, else the first: a text layer may go down the columns
            chosen = spots.pop(bisect_left(spots, (at, at)) % len(spots))
            at = chosen.end
            added.append(Stretch(start, end, (chosen,), end - start))
    if not stretches and sum(one.letters for one in added) < _FORM:
        return stretches  # the cells are only a few numbers, which occur anywhere
    return sorted([*stretches, *added])


def _find_standing_alone(word: str, document: Document) -> list[Span]:
    """Return the locations of a table cell's text in a document, but not those inside longer words."""
    text, letters = document.text, document.letters
    spots = []
    for at in islice(find_occurrences(word, letters.text), 16 * COMMON):
        span = Span(*letters.span(at, at + len(word)))
        if (
            not letters.cuts(at, at + len(word))
            and not text[max(span.start - 1, 0) : span.start].isalnum()
            and not (text[span.end : span.end + 1].isalnum())
        ):
            spots.append(span)
    return spots


def _find_densest(wanted: Counter[str], places: dict[str, list[Span]]) -> Span:
    """Return the range of a document that contains the most letters of the wanted table cells.

    If several ranges contain equally many letters, return the shortest of them; if several are equally short, the
    first.

    Args:
        wanted: the number of cells with each text.
        places: the locations of each cell's text in the document.
    """
    reach = _SPREAD * sum(len(word) * count for word, count in wanted.items()) + _MARGIN // 2
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


# ---------------------------------------------------------------- spans of the original texts


def _make_piece(stretch: Stretch, needle: Fold, text: str, document: Document) -> PlacedPiece:
    start, end = needle.span(stretch.start, stretch.end)
    before = int(needle.offsets[stretch.start - 1]) + 1 if stretch.start else 0
    after = int(needle.offsets[stretch.end]) if stretch.end < len(needle.offsets) else len(text)
    signs = text[before:start], text[end:after]
    places = (without_furniture(_with_signs(span, signs, document.text), document) for span in stretch.hits)
    return PlacedPiece(start, end, tuple(places), stretch.letters)


def _with_signs(span: Span, signs: tuple[str, str], text: str) -> Span:
    """Return a span of a document, extended at each end by punctuation that the quoted text has at the same end.

    Args:
        span: the range of the document in which the words of the quoted text were found.
        signs: the characters before and after these words in the quoted text.
        text: the document's text.
    """
    start, end = span
    before, after = (without_markup(side) for side in signs)
    before, after = "".join(before.split()[-1:]) if before[-1:].strip() else "", "".join(after.split()[:1])
    before, after = fold(before), fold(after)
    while start and not text[start - 1].isalnum() and (sign := fold(text[start - 1])) and sign in before:
        start, before = start - 1, before[: before.rfind(sign)]
    while end < len(text) and not text[end].isalnum() and (sign := fold(text[end])) and sign in after:
        end, after = end + 1, after[after.find(sign) + 1 :]
    return Span(start, end)


def without_furniture(span: Span, document: Document) -> Place:
    """Return the parts of a span that are left between running heads, feet and page numbers.

    White space around a part is removed. If nothing is left, return the span itself.
    """
    pieces = []
    start = span.start
    for line in document.furniture:
        if line.end <= start or line.start >= span.end:
            continue
        pieces.append(Span(start, max(line.start, start)))
        start = line.end
    pieces.append(Span(start, span.end))
    trimmed = (_trim(piece, document.text) for piece in pieces)
    return tuple(piece for piece in trimmed if piece.start < piece.end) or (span,)


def _trim(span: Span, text: str) -> Span:
    words = text[slice(*span)]
    inner = words.strip()
    start = span.start + words.find(inner)
    return Span(start, start + len(inner))


def choose_nearest_places(pieces: Sequence[PlacedPiece]) -> list[Place]:
    """Return one location of each piece; among several, the location nearest to the previous piece."""
    at = next((piece.places[0][0].start for piece in pieces if len(piece.places) == 1), 0)
    chosen: list[Place] = []
    for piece in pieces:
        chosen.append(min(piece.places, key=lambda place: abs(place[0].start - at)))
        at = chosen[-1][-1].end
    return chosen
