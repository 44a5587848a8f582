"""Locates a retrieved passage, or a quote in an answer, in a document: as a whole if possible, else by its pieces."""

from collections.abc import Callable

from exhibit.evidence.document import Document, Span
from exhibit.evidence.locate import find_as_it_stands
from exhibit.evidence.matches import prefer_whole_words
from exhibit.evidence.parser_markup import letters_of
from exhibit.evidence.pieces import FEW, Place, PlacedPiece, Placement, choose_nearest_places, place_pieces
from exhibit.evidence.stretches import TELLING

_PLACES = 64
"""Most locations of one text in one document that are compared."""


def place_text(text: str, document: Document) -> Placement:
    """Return where a document contains a text; an empty placement for a short text that occurs too often."""
    letters = len(letters_of(text).text)
    matches = prefer_whole_words(find_as_it_stands(text, document))[:_PLACES] if letters else []
    if not matches:
        return place_pieces(text, document)
    if letters < TELLING and len(matches) > FEW:
        return Placement((), (Span(0, len(text)),), letters)
    whole = PlacedPiece(0, len(text), tuple(match.spans for match in matches), letters)
    return Placement((whole,), (), letters)


def spans_of(placement: Placement, document: Document, *, wanted: Callable[[Place], bool]) -> tuple[Span, ...]:
    """Return the spans of the document that contain a located text, the longest first.

    The text may be located in several pieces. Two spans are merged if there is no word between them.

    Args:
        placement: the pieces of the text, each with all its locations in the document.
        wanted: a test for a location. Each piece gets its first location that passes the test. If none passes,
            the piece gets the location nearest to the previous piece.
    """
    nearest = choose_nearest_places(placement.pieces)
    chosen = [next(filter(wanted, piece.places), near) for piece, near in zip(placement.pieces, nearest, strict=True)]
    spans: list[Span] = []
    for span in sorted(span for place in chosen for span in place):
        before = spans[-1] if spans else None
        if before and not any(map(str.isalnum, document.text[before.end : span.start])):
            spans[-1] = Span(before.start, max(before.end, span.end))
        else:
            spans.append(span)
    return tuple(sorted(spans, key=lambda span: (span.start - span.end, span.start)))


def is_ambiguous(text: str, places: int) -> bool:
    """Return whether a quote has so few words and so many locations that its origin is unclear."""
    return places > FEW and 0 < len(letters_of(text).text) < TELLING
