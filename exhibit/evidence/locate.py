"""Locates quotes in documents, always as offsets into the original text.

A quote is found exactly, after folding, in several parts, or with small differences (fuzzy). Folding
removes differences such as line breaks and quotation marks. A document is folded once (see `Document`).
Each quote is first searched by one `str.find` over the folded text; slower searches follow if needed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from exhibit.evidence.document import Document, Span
from exhibit.evidence.fold import Fold, align, fold
from exhibit.evidence.matches import MOST_PLACES, Match, find_tightest, join_matches, prefer_whole_words
from exhibit.evidence.parser_markup import cells_of, has_omissions, letters_of
from exhibit.evidence.pieces import choose_nearest_places, place_pieces, without_furniture
from exhibit.evidence.stretches import find_occurrences
from exhibit.schemas.layout import HOWS, How, quote_parts

MIN_SIMILARITY = 0.95  # the least similarity at which a quote counts as located
MIN_FUZZY = 40
"""Fewest characters of a quote for a fuzzy match: a shorter quote is too easily mistaken for other words."""

_MIN_PART = 2
"""Fewest characters of a part between two omissions: a shorter part, such as a full stop, has no usable location."""

_MIN_PARAGRAPH = 20
"""Fewest characters of a paragraph: paragraphs are searched only if the whole quote is not found in one piece."""

_MOST_CELLS = 1_000_000_000
"""Most comparisons for one quote, in characters of the quote times characters of the document: about ten seconds."""

_MIN_LETTERS = 12
"""Fewest letters and digits of a quote that is searched without its punctuation, unless it is a row of a table."""
_SPREAD = 3
"""The pieces of one quote must lie within this many times the quote's length, ..."""
_APART = 600
"""... plus this many characters, the size of a paragraph."""

_COMMON = 256
"""A piece of a quote with more occurrences than this, such as a run of blanks in a form, gives no location."""


def locate(quote: str, document: Document, *, page: int | None = None) -> list[Match]:
    """Return every location of the quote, best first and then in reading order; [] if it is absent.

    Args:
        page: the page number from the source; it only decides between equally good locations.
    """
    if not quote.strip():
        return []
    effort = _Effort(_MOST_CELLS)
    for attempt in (find_as_it_stands, _locate_parts, _locate_alike, _locate_paragraphs, _locate_in_markup):
        matches = attempt(quote, document, effort)
        if matches:
            break
    matches.sort(key=lambda match: (not match.whole, HOWS.index(match.how), -match.score, match.span))
    if page is not None:
        matches.sort(key=lambda match: (not match.whole, -match.score, page not in document.pages_of(match.span)))
    return matches


@dataclass
class _Effort:
    """The remaining budget for the slow comparisons of one quote; the first comparison is always allowed."""

    left: int

    def allows(self, cells: int) -> bool:
        allowed = self.left == _MOST_CELLS or cells <= self.left
        self.left -= cells if allowed else 0
        return allowed


# ---------------------------------------------------------------- exact


def find_as_it_stands(quote: str, document: Document, _: _Effort | None = None) -> list[Match]:
    """Return a quote's locations, on one page or across pages; only spaces, dashes, case etc. may differ."""
    words = quote.strip()
    matches = {at: _match_verbatim(at, quote, words, document) for at in _find(words, document.text)}
    needle = Fold.of(words)
    for start in _find(needle.text, document.folded.text):
        end = start + len(needle.text)
        span = Span(*document.folded.span(start, end))
        at = span.start - int(needle.offsets[0])
        if at not in matches:
            matches.update((at, match) for match in _match_folded(start, end, span, document))
    return list(matches.values()) or _locate_loosely(quote, document)


def _match_verbatim(at: int, quote: str, words: str, document: Document) -> Match:
    """Return the match of a quote whose text without outer spaces (`words`) is in the document at offset `at`.

    The match includes the quote's outer spaces if the document has the same spaces there.
    """
    lead = quote.find(words)
    spaced = at >= lead and document.text.startswith(quote, at - lead)
    span = Span(at - lead, at - lead + len(quote)) if spaced else Span(at, at + len(words))
    return Match((span,), "exact", whole=_is_whole(span, document.text))


def _match_folded(start: int, end: int, span: Span, document: Document) -> Iterator[Match]:
    if not document.folded.cuts(start, end):
        yield Match((span,), "folded", whole=_is_whole(span, document.text))
        return
    # the quote ends inside one character, such as half a ligature: the match is longer than the quote
    score = round((end - start) / len(fold(document.text[slice(*span)])), 4)
    if score >= MIN_SIMILARITY:
        yield Match((span,), "fuzzy", score, whole=False)


def _find(needle: str, text: str) -> Iterator[int]:
    return islice(find_occurrences(needle, text), MOST_PLACES)


def _locate_loosely(quote: str, document: Document) -> list[Match]:
    needle = fold(quote, loose=True)
    for haystack in (document.loose, document.body):
        matches = []
        for start in _find(needle, haystack.text):
            if haystack.cuts(start, start + len(needle)):
                continue
            spans = without_furniture(Span(*haystack.span(start, start + len(needle))), document)
            whole = _is_whole(spans[0], document.text) and _is_whole(spans[-1], document.text)
            matches.append(Match(spans, "parts" if len(spans) > 1 else "folded", whole=whole))
        if matches:
            return matches
    return []


def _is_whole(span: Span, text: str) -> bool:
    """Return whether a span neither begins nor ends inside a word or a number."""
    return not (_is_inside(text, span.start) or _is_inside(text, span.end))


def _is_inside(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return (before.isalpha() and after.isalpha()) or (before.isdigit() and after.isdigit())


# ---------------------------------------------------------------- in parts


def _locate_parts(quote: str, document: Document, effort: _Effort) -> list[Match]:
    """Return the locations at which the parts of a quote with omissions follow one another."""
    parts = quote_parts(quote)
    return _from_pieces(parts, _MIN_PART, document, effort) if len(parts) > 1 else []


def _locate_paragraphs(quote: str, document: Document, effort: _Effort) -> list[Match]:
    """Return the locations at which the quote's paragraphs follow one another, perhaps with a table between them."""
    pieces = [piece for part in quote_parts(quote) for piece in part.split("\n")]
    return _from_pieces(pieces, _MIN_PARAGRAPH, document, effort)


def _from_pieces(pieces: Sequence[str], shortest: int, document: Document, effort: _Effort) -> list[Match]:
    pieces = [piece.strip() for piece in pieces]
    lengths = [len(fold(piece, loose=True)) for piece in pieces]
    least = MIN_SIMILARITY * sum(lengths)
    pieces = [piece for piece, length in zip(pieces, lengths, strict=True) if length >= shortest]
    choices: list[list[Match]] = []
    places: dict[str, list[Match]] = {}
    for piece in pieces:
        if piece not in places:
            matches = find_as_it_stands(piece, document) or _locate_alike(piece, document, effort)
            places[piece] = sorted(prefer_whole_words(matches), key=lambda match: match.span)
        if not places[piece]:
            return []
        choices.append(places[piece])
    whole = [join_matches(chain) for chain in find_tightest(choices)] if choices else []
    # if most of the quote consists of pieces that are too short to search, or that share one location, it is not here
    return [match for match in whole if _measure_folded(match, document) >= least]


def _measure_folded(match: Match, document: Document) -> int:
    ranges = (document.loose.find_folded_range(*span) for span in match.spans)
    return sum(end - start for start, end in ranges)


# ---------------------------------------------------------------- ignoring markup


def _locate_in_markup(quote: str, document: Document, _: _Effort) -> list[Match]:
    """Return the locations of a quote by its letters and digits, ignoring punctuation and a parser's markup.

    If the quote matches only in several pieces, the pieces must be close together. The pieces may be far apart
    if the quote has a mark of omitted words, such as `…`.
    """
    placement = place_pieces(quote, document)
    places = choose_nearest_places(placement.pieces)
    cells = cells_of(quote)
    # a word between two pieces that is not in the quote counts as an error, like a misspelling
    skipped = 0 if cells else sum(_count_gap_letters(Span(*gap), document) for gap in _find_gaps(places))
    score = round(placement.share - skipped / max(placement.letters, 1), 4)
    if score < (MIN_SIMILARITY if placement.letters >= MIN_FUZZY else 1.0):
        return []
    added = any(len(letters_of(quote[slice(*span)]).text) >= _MIN_PARAGRAPH for span in placement.added)
    if added or (placement.letters < _MIN_LETTERS and not cells):
        return []
    if len(places) == 1:
        return [_match(place, score, quote, document) for place in placement.pieces[0].places]
    spans = join_matches([Match(place, "parts") for place in places]).spans
    if not has_omissions(quote) and spans[-1].end - spans[0].start > _SPREAD * len(quote) + _APART:
        return []
    return [_match(spans, score, quote, document)]


def _match(spans: tuple[Span, ...], score: float, quote: str, document: Document) -> Match:
    """Return the match for spans whose letters agree with the quote's letters.

    If the score is below 1, the kind of the match is "fuzzy". Otherwise, a match with several spans is
    "parts". A match with one span is "folded" if its punctuation agrees with the quote's too, and "fuzzy" if
    it does not.
    """
    same = fold(document.text[slice(*spans[0])], loose=True) == fold(quote, loose=True)
    how: How = "parts" if len(spans) > 1 else "folded" if same else "fuzzy"
    return Match(spans, how if score == 1.0 else "fuzzy", score)


def _find_gaps(places: Sequence[tuple[Span, ...]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the document between the locations of consecutive pieces of a quote."""
    return ((one[-1].end, two[0].start) for one, two in pairwise(places) if one[-1].end < two[0].start)


def _count_gap_letters(gap: Span, document: Document) -> int:
    """Return the number of letters between two pieces of a quote; 0 if the gap is so long that it is an omission."""
    start, end = document.letters.find_folded_range(*gap)
    return end - start if end - start < MIN_FUZZY else 0


# ---------------------------------------------------------------- fuzzy


class Window(NamedTuple):
    """A range of text in which a quote may occur."""

    start: int
    end: int
    pieces: int
    """The number of the quote's pieces that were found here."""


def _locate_alike(quote: str, document: Document, effort: _Effort) -> list[Match]:
    """Return the locations of words that differ from the quote in at most one of twenty characters."""
    # remove markup: the marks of a heading, a quotation or a table would count as misspellings
    needle = fold(" ".join(quote_parts(quote)).strip("#>| \n"), loose=True)
    if len(needle) < MIN_FUZZY:
        return []
    matches = _match_aligned(needle, document.body, document, effort)
    if not matches and document.body is not document.loose:
        matches = _match_aligned(needle, document.loose, document, effort)
    return matches


def _match_aligned(needle: str, haystack: Fold, document: Document, effort: _Effort) -> list[Match]:
    allowed = int(len(needle) * (1 - MIN_SIMILARITY) + 1e-9)
    best: dict[tuple[int, int], float] = {}
    for window in find_windows(needle, haystack.text, allowed):
        if not effort.allows(len(needle) * (window.end - window.start)):
            break
        text = haystack.text[window.start : window.end]
        part = align(needle, text, most=allowed)
        if part is not None:
            score = round(1 - part.distance / len(needle), 4)
            best[window.start + part.start, window.start + part.end] = score
    matches = []
    for (start, end), score in _keep_apart(best):
        spans = without_furniture(Span(*haystack.span(start, end)), document)
        matches.append(Match(without_crumbs(spans, document), "fuzzy", score))
    return matches


def without_crumbs(spans: tuple[Span, ...], document: Document) -> tuple[Span, ...]:
    """Return the spans of a fuzzy match without a few stray characters of another page at the start or the end.

    The alignment includes such characters if the quote's first or last characters are missing from the page.
    """
    starts = [page.span.start for page in document.pages]
    first, last = spans[0], spans[-1]
    cut = next((at for at in starts if first.start < at), None)
    if cut is not None and cut < last.end and _is_crumbs(Span(first.start, min(cut, first.end)), document):
        rest = Span(max(cut, first.start), first.end)
        spans = (*((_strip_span(rest, document.text),) if cut < first.end else ()), *spans[1:])
    first, last = spans[0], spans[-1]
    cut = next((at for at in reversed(starts) if at < last.end), None)
    if cut is not None and cut > first.start and _is_crumbs(Span(max(cut, last.start), last.end), document):
        rest = Span(last.start, min(cut, last.end))
        spans = (*spans[:-1], *((_strip_span(rest, document.text),) if cut > last.start else ()))
    return spans


def _is_crumbs(edge: Span, document: Document) -> bool:
    start, end = document.letters.find_folded_range(*edge)
    return end - start < _MIN_LETTERS


def _strip_span(span: Span, text: str) -> Span:
    """Return a span without the white space at its edges."""
    words = text[slice(*span)]
    return Span(span.start + len(words) - len(words.lstrip()), span.start + len(words.rstrip()))


def find_windows(needle: str, text: str, allowed: int) -> list[Window]:
    """Return the ranges that can contain the needle with at most `allowed` errors, the most likely first.

    The needle is cut into `allowed + 1` pieces, so that in every match at least one piece has no error. Only
    the text around exact occurrences of a piece needs the slow alignment. A piece that occurs too often, such
    as a run of blanks in a form, is ignored.
    """
    count = allowed + 1
    bounds = [len(needle) * index // count for index in range(count + 1)]
    merged: list[Window] = []
    votes: Counter[int] = Counter()
    for index in range(count):
        hits = list(islice(find_occurrences(needle[bounds[index] : bounds[index + 1]], text), _COMMON + 1))
        if len(hits) <= _COMMON:
            votes.update(hit - bounds[index] for hit in hits)
    for start in sorted(votes):
        first, last = max(start - allowed, 0), min(start + len(needle) + allowed, len(text))
        if merged and first <= merged[-1].start + 2 * allowed:
            merged[-1] = Window(merged[-1].start, last, merged[-1].pieces + votes[start])
        else:
            merged.append(Window(first, last, votes[start]))
    return sorted(merged, key=lambda window: -window.pieces)[:MOST_PLACES]


def _keep_apart(best: dict[tuple[int, int], float]) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the locations with their scores, the best first, without locations that overlap a better one."""
    taken: list[tuple[int, int]] = []
    for place, score in sorted(best.items(), key=lambda item: (-item[1], item[0])):
        if all(place[1] <= start or place[0] >= end for start, end in taken):
            taken.append(place)
            yield place, score
