"""Search for a gold passage in the text that a system extracted from a document."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from exhibit.evaluation.cases import GoldPassage
from exhibit.evidence import Document, Span
from exhibit.evidence.parser_markup import letters_of
from exhibit.evidence.pieces import Place, Placement
from exhibit.evidence.place import place_text, spans_of
from exhibit.evidence.stretches import TELLING

ALTERNATIVES = 8
"""At most this many places of one gold are searched; a source rarely names more than three."""
_AROUND = 80
"""Characters on each side of a short gold that identify its place: about a line."""


@dataclass(frozen=True)
class InText:
    """How much of a gold passage a system's text contains."""

    how: Literal["whole", "part", "absent"]
    share: float
    """The share of the passage's letters and digits that the text contains."""
    missing: tuple[str, ...] = ()
    """The words that the text lacks, in stretches."""
    places: tuple[Place, ...] = ()
    """The places in the system's text, one for each place of the gold."""


def find_in_text(gold: GoldPassage, document: Document, parsed: Document) -> InText | None:
    """Return how much of a gold passage a system's text (`parsed`) contains; None if that is unknown.

    If the passage occurs several times in the document, the occurrence with the best result counts.
    """
    results = [_place_in_text(place, document, parsed) for place in gold.places[:ALTERNATIVES]]
    known = [result for result in results if result is not None]
    if not known:
        return None
    best = max(known, key=lambda result: result.share)
    places = tuple(place for result in known if result.share == best.share for place in result.places)
    return InText(best.how, best.share, best.missing, places)


def _place_in_text(place: Place, document: Document, parsed: Document) -> InText | None:
    words = " ".join(document.text[span.start : span.end] for span in place)
    letters = letters_of(words)
    if not letters.text:
        return None
    where = place[0].start / max(len(document.text), 1) * len(parsed.text)
    if len(letters.text) < TELLING:
        return _place_short(place, letters.text, document, parsed)
    placement = place_text(words, parsed)
    missing = [words[start:end] for start, end in _find_missing_ranges(words, placement, parsed)]
    gone = sum(len(letters_of(stretch).text) for stretch in missing)
    share = max(0.0, 1 - gone / len(letters.text))
    if not placement.pieces:
        return InText("absent", 0.0, (join_lines(words),))
    spans = _find_nearest_spans(placement, parsed, where)
    named = tuple(filter(None, map(join_lines, missing)))
    return InText("part" if gone else "whole", share, named, (spans,))


def _place_short(place: Place, letters: str, document: Document, parsed: Document) -> InText | None:
    """Return whether a system's text contains a short gold passage: `whole`, `absent` or, if uncertain, None.

    `whole` requires that the text around the passage is found as well. If only the words of the passage are
    found, the result is None, because they may be another occurrence of the same words.
    """
    first, last = place[0].start, place[-1].end
    start = max(first - _AROUND, 0)
    wide = document.text[start : last + _AROUND]
    for piece in place_text(wide, parsed).pieces:
        if piece.start <= first - start and last - start <= piece.end:
            for spans in piece.places:
                found = _find_letters(letters, parsed.text, spans)
                if found is not None:
                    return InText("whole", 1.0, (), ((found,),))
    if letters in letters_of(parsed.text).text:
        return None
    return InText("absent", 0.0, (join_lines(document.text[first:last]),))


def _find_letters(letters: str, text: str, spans: Place) -> Span | None:
    start = spans[0].start
    fold = letters_of(text[start : spans[-1].end])
    at = fold.text.find(letters)
    if at < 0:
        return None
    first, last = fold.span(at, at + len(letters))
    return Span(start + first, start + last)


def _find_nearest_spans(placement: Placement, parsed: Document, where: float) -> Place:
    """Return the spans of a text's fragments in a parsed document.

    `placement` has the fragments and their locations. If a fragment has several locations, the location nearest
    to the offset `where` is used.
    """
    chosen = {min(piece.places, key=lambda place: abs(place[0].start - where)) for piece in placement.pieces}
    return tuple(sorted(spans_of(placement, parsed, wanted=chosen.__contains__)))


def _find_missing_ranges(words: str, placement: Placement, parsed: Document) -> list[Span]:
    """Return the spans of a gold passage's text (`words`) that are missing from a system's text of the document.

    `placement` has the located pieces of the gold text. Words that are missing inside a piece are also
    included.
    """
    missing = list(placement.added)
    for piece in placement.pieces:
        own = words[piece.start : piece.end]
        if piece.letters < len(letters_of(own).text):
            there = " ".join(parsed.text[span.start : span.end] for span in piece.places[0])
            missing += [Span(piece.start + start, piece.start + end) for start, end in _find_missing_words(own, there)]
    return sorted(missing)


def _find_missing_words(own: str, other: str) -> Iterable[Span]:
    """Yield the spans of words in `own` that the nearly equal text `other` lacks; hyphens are ignored."""
    mine = [match.span() for match in re.finditer(r"\S+", own)]
    theirs = [letters_of(word).text for word in other.split()]
    matcher = SequenceMatcher(None, [letters_of(own[start:end]).text for start, end in mine], theirs, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag not in ("delete", "replace"):
            continue
        block = "".join(theirs[start:end])
        for word in mine[first:last]:
            letters = letters_of(own[slice(*word)]).text
            if letters and letters not in block:
                yield Span(*word)


def join_lines(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())
