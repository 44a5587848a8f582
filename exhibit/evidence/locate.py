"""Locates quotes exactly, after folding, in several parts, or with small differences (fuzzy)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from exhibit.evidence.document import Document, Span, unite_spans
from exhibit.evidence.fold import Fold, align, fold
from exhibit.evidence.place import (
    COMMON,
    FEW,
    MAX_PLACES,
    MIN_SHARED_LETTERS,
    Place,
    PlacedPiece,
    Placement,
    cells_of,
    choose_nearest_places,
    find_occurrences,
    find_spans,
    letters_of,
    place_pieces,
)
from exhibit.schemas.layout import HOWS, How, quote_parts

MIN_SIMILARITY = 0.95  # the least similarity at which a quote counts as located
MIN_FUZZY = 40  # Fewest characters of a quote for a fuzzy match: a shorter quote is too easily mistaken for other words
_MIN_PARAGRAPH = 20  # fewest characters of a paragraph; paragraphs are searched only if the quote is not in one piece
_MAX_COMPARISONS = 1_000_000_000  # most characters of a quote times those of the windows: ten seconds
_GRAM = 8  # letters: with 6 to 10, few windows pass to the slow aligner; without this test, ten times as many


@dataclass(frozen=True)
class Match:
    spans: tuple[Span, ...]  # several if other words interrupt the quote
    how: How
    score: float = 1.0
    whole: bool = True  # Whether the match has word boundaries at both ends; False for `MA` in `MAY`

    @property
    def span(self) -> Span:
        return Span(self.spans[0].start, self.spans[-1].end)


def prefer_whole_words(matches: Sequence[Match]) -> list[Match]:
    """Return the matches to use as gold: matches of whole words or, if there are none, all matches."""
    return [match for match in matches if match.whole] or list(matches)


def find_tightest(places: Sequence[Sequence[Match]]) -> list[list[Match]]:
    """Return the chains (see `chain_in_order`) that are at most twice as long as the shortest."""
    # for a quote of very many pieces, try only the first locations
    firsts = places[0][: max(1, MAX_PLACES * 100 // len(places))]
    # keep the last: a later first piece with the same later pieces gives a shorter chain
    chains = {
        tuple(match.span for match in chain[1:]) or (chain[0].span,): chain
        for chain in chain_in_order([firsts, *places[1:]])
    }
    if chains:
        shortest = min(map(measure_stretch, chains.values()))
        return [chain for chain in chains.values() if measure_stretch(chain) <= 2 * shortest]
    # the annotator joined the pieces in another order: take each piece's first occurrence
    return [sorted((choices[0] for choices in places), key=lambda match: match.span)]


def chain_in_order(places: Sequence[Sequence[Match]]) -> Iterator[list[Match]]:
    """Yield a chain for each match of the first quote: that match, then the next match of each following quote."""
    for first in places[0] if places else ():
        chain = [first]
        for choices in places[1:]:
            at = bisect_left(choices, chain[-1].span.end, key=lambda match: match.span.start)
            if at == len(choices):
                break
            chain.append(choices[at])
        if len(chain) == len(places):
            yield chain


def measure_stretch(chain: Sequence[Match]) -> int:
    return chain[-1].span.end - chain[0].span.start


def locate(quote: str, document: Document) -> list[Match]:
    """Return every location of the quote, best first and then in reading order; [] if it is absent."""
    if not quote.strip():
        return []
    parts = quote_parts(quote)
    paragraphs = [piece for part in parts for piece in part.split("\n")]
    matches = (
        find_as_written(quote, document)
        or (len(parts) > 1 and _from_pieces(parts, 2, document))  # a full stop has no usable location
        or _locate_alike(quote, document)
        or _from_pieces(paragraphs, _MIN_PARAGRAPH, document)
        or _locate_in_markup(quote, document)
    )
    matches.sort(key=lambda match: (not match.whole, HOWS.index(match.how), -match.score, match.span))
    return matches


def find_as_written(quote: str, document: Document) -> list[Match]:
    """Return a quote's locations, also across pages; only spaces, dashes, case and the like may differ."""
    words = quote.strip()
    lead = quote.find(words)
    matches: dict[int, Match] = {}
    for at in find_occurrences(words, document.text):
        spaced = at >= lead and document.text.startswith(quote, at - lead)
        span = Span(at - lead, at - lead + len(quote)) if spaced else Span(at, at + len(words))
        matches[at] = Match((span,), "exact", whole=_is_whole(span, document.text))
    needle = Fold.of(words)
    for span in find_spans(needle.text, document.folded):
        match = Match((span,), "folded", whole=_is_whole(span, document.text))
        matches.setdefault(span.start - int(needle.offsets[0]), match)
    return list(matches.values()) or _locate_loosely(quote, document)


def _locate_loosely(quote: str, document: Document) -> list[Match]:
    for haystack in (document.loose, document.body):
        matches = []
        for spans in map(document.cut_furniture, find_spans(fold(quote, loose=True), haystack)):
            whole = _is_whole(spans[0], document.text) and _is_whole(spans[-1], document.text)
            matches.append(Match(spans, "parts" if len(spans) > 1 else "folded", whole=whole))
        if matches:
            return matches
    return []


def _is_whole(span: Span, text: str) -> bool:
    around = (text[at - 1 : at + 1] for at in span if 0 < at < len(text))
    return not any(pair.isalpha() or pair.isdigit() for pair in around)


def _from_pieces(pieces: Sequence[str], shortest: int, document: Document) -> list[Match]:
    """Return the joint locations of a quote's pieces; [] if a piece of at least `shortest` characters is not found."""
    lengths = [(piece.strip(), len(fold(piece, loose=True))) for piece in pieces]
    wanted = [piece for piece, length in lengths if length >= shortest]
    places: dict[str, list[Match]] = {}
    for piece in dict.fromkeys(wanted):
        matches = find_as_written(piece, document) or _locate_alike(piece, document)
        places[piece] = sorted(prefer_whole_words(matches), key=lambda match: match.span)
        if not matches:
            return []
    joined = []
    for chain in find_tightest([places[piece] for piece in wanted]) if wanted else ():
        spans = unite_spans(span for match in chain for span in match.spans)
        ranges = (document.loose.find_folded_range(*span) for span in spans)
        # reject the quote if most of it is in pieces that are too short to search or share a location
        if sum(end - start for start, end in ranges) >= MIN_SIMILARITY * sum(length for _, length in lengths):
            how: How = "fuzzy" if any(match.how == "fuzzy" for match in chain) else "parts"
            score, whole = min(match.score for match in chain), all(match.whole for match in chain)
            joined.append(Match(tuple(spans), how, score, whole))
    return joined


def _locate_in_markup(quote: str, document: Document) -> list[Match]:
    """Return the locations of a quote by its letters and digits, ignoring punctuation and a parser's markup."""
    placement = place_pieces(quote, document)
    places = choose_nearest_places(placement.pieces)
    cells = cells_of(quote)
    # words of the document between two pieces, which the quote lacks, count as errors, like misspellings
    gaps = () if cells else pairwise((place[0].start, place[-1].end) for place in places)
    folded = (document.letters.find_folded_range(before, after) for (_, before), (after, _) in gaps)
    skipped = sum(last - first for first, last in folded if 0 < last - first < MIN_FUZZY)
    score = round(placement.share - skipped / max(placement.letters, 1), 4)
    if score < (MIN_SIMILARITY if placement.letters >= MIN_FUZZY else 1.0):
        return []
    added = any(len(letters_of(quote[slice(*span)]).text) >= _MIN_PARAGRAPH for span in placement.added)
    if added or (placement.letters < 12 and not cells):
        return []
    united = tuple(unite_spans(span for place in places for span in place))
    is_abridged = "..." in quote or "…" in quote or len(quote_parts(quote)) > 1
    is_wide = united[-1].end - united[0].start > 3 * len(quote) + 600  # characters: the size of a paragraph
    if len(places) > 1 and is_wide and not is_abridged:
        return []
    matches = []
    for spans in placement.pieces[0].places if len(places) == 1 else [united]:
        is_same = fold(document.text[slice(*spans[0])], loose=True) == fold(quote, loose=True)
        how: How = "parts" if len(spans) > 1 else "folded" if is_same else "fuzzy"
        matches.append(Match(spans, how if score == 1.0 else "fuzzy", score))
    return matches


def _locate_alike(quote: str, document: Document) -> list[Match]:
    """Return the locations of words that differ from the quote in at most one character of twenty."""
    # remove markup, which would count as misspellings
    needle = fold(" ".join(quote_parts(quote)).strip("#>| \n"), loose=True)
    if len(needle) < MIN_FUZZY:
        return []
    allowed = int(len(needle) * (1 - MIN_SIMILARITY) + 1e-9)
    # an error changes at most `_GRAM` of the needle's grams, so a match has at least this many of them
    grams = [needle[at : at + _GRAM] for at in range(len(needle) - _GRAM + 1)]
    fewest = len(grams) - allowed * _GRAM
    most = max(1, _MAX_COMPARISONS // len(needle) ** 2)
    best: dict[Span, float] = {}
    for start, end in _find_windows(needle, document.body.text, allowed)[:most]:
        text = document.body.text[start:end]
        text_grams = {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}
        part = align(needle, text, most=allowed) if sum(map(text_grams.__contains__, grams)) >= fewest else None
        if part is not None:
            best[Span(start + part.start, start + part.end)] = round(1 - part.distance / len(needle), 4)
    matches: dict[Span, Match] = {}
    for place, score in sorted(best.items(), key=lambda item: (-item[1], item[0])):
        if not any(map(place.overlaps, matches)):  # of overlapping locations, keep the best
            matches[place] = Match(document.cut_furniture(Span(*document.body.span(*place))), "fuzzy", score)
    return list(matches.values())


def _find_windows(needle: str, text: str, allowed: int) -> list[Span]:
    """Return the ranges that may contain the needle with at most `allowed` errors, the likeliest first."""
    bounds = [len(needle) * index // (allowed + 1) for index in range(allowed + 2)]
    votes: Counter[int] = Counter()
    for first, last in pairwise(bounds):
        hits = find_occurrences(needle[first:last], text, most=COMMON + 1)
        if len(hits) <= COMMON:
            votes.update(hit - first for hit in hits)
    windows: list[tuple[Span, int]] = []  # ranges, each with the number of the needle's pieces that it contains
    for start in sorted(votes):
        window, pieces = Span(max(start - allowed, 0), min(start + len(needle) + allowed, len(text))), votes[start]
        if windows and window.start <= windows[-1][0].start + 2 * allowed:
            earlier, earlier_pieces = windows.pop()
            window, pieces = Span(earlier.start, window.end), pieces + earlier_pieces
        windows.append((window, pieces))
    return [window for window, _ in sorted(windows, key=lambda window: -window[1])[:MAX_PLACES]]


def place_text(text: str, document: Document) -> Placement:
    """Return where a document contains a text; an empty placement if the text is short and occurs too often."""
    letters = len(letters_of(text).text)
    matches = prefer_whole_words(find_as_written(text, document))[:64] if letters else []
    if not matches:
        return place_pieces(text, document, split_cells=True)
    if letters < MIN_SHARED_LETTERS and len(matches) > FEW:
        return Placement((), (Span(0, len(text)),), letters)
    whole = PlacedPiece(0, len(text), tuple(match.spans for match in matches), letters)
    return Placement((whole,), (), letters)


def spans_of(placement: Placement, document: Document, *, wanted: Callable[[Place], bool]) -> tuple[Span, ...]:
    """Return a located text's spans, the longest first; of several locations, the first `wanted` one or the nearest."""
    nearest = choose_nearest_places(placement.pieces)
    chosen = [next(filter(wanted, piece.places), near) for piece, near in zip(placement.pieces, nearest, strict=True)]
    spans = unite_spans((span for place in chosen for span in place), document.text)
    return tuple(sorted(spans, key=lambda span: (span.start - span.end, span.start)))


def is_ambiguous(text: str, places: int) -> bool:
    """Return whether a quote is too short and has too many locations for its origin to be clear."""
    return places > FEW and 0 < len(letters_of(text).text) < MIN_SHARED_LETTERS
