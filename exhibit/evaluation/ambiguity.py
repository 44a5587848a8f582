"""Decide which occurrence of a short gold passage is meant when its words occur many times in a document."""

import re
from collections.abc import Sequence
from dataclasses import replace

from exhibit.evaluation.cases import GoldPassage, Place
from exhibit.evaluation.documents import Documents
from exhibit.evidence import Span
from exhibit.evidence.place import is_ambiguous

_NEAR = 600
"""Two gold passages of one question count as one paragraph when at most this many characters lie between them."""
_REACH = 1000
"""The ends of a sentence are searched within this many characters."""
_END = re.compile(r"[.;!?][\"'”’)]?\s|\n\s{0,20}\n")


def settle_ambiguous(golds: Sequence[GoldPassage], documents: Documents) -> list[GoldPassage]:
    """Return a question's gold passages, with the ambiguous ones resolved to one position or marked as ambiguous.

    A passage is resolved if another gold passage of the same question, with one known position, is near one of
    its occurrences in the same file. The resolved gold is the sentence around that occurrence.
    """
    sure = [gold for gold in golds if not _is_ambiguous(gold)]
    return [_settle(gold, sure, documents) if _is_ambiguous(gold) else gold for gold in golds]


def _is_ambiguous(gold: GoldPassage) -> bool:
    return is_ambiguous(gold.text or "", len(gold.places))


def _settle(gold: GoldPassage, sure: Sequence[GoldPassage], documents: Documents) -> GoldPassage:
    beside = [one.places[0] for one in sure if one.filename == gold.filename and len(one.places) == 1]
    gaps = sorted((min(_measure_gap(place, one) for one in beside), place) for place in gold.places) if beside else []
    document = documents.get(gold.filename)
    if not gaps or gaps[0][0] > _NEAR or document is None or (len(gaps) > 1 and gaps[0][0] == gaps[1][0]):
        return replace(gold, ambiguous=True)
    span = _find_sentence(gaps[0][1], document.text)
    return replace(gold, places=((span,),), pages=tuple(document.pages_of(span)))


def _measure_gap(one: Place, other: Place) -> int:
    return max(one[0].start, other[0].start) - min(one[-1].end, other[-1].end)


def _find_sentence(place: Place, text: str) -> Span:
    """Return the span of the sentence that contains a place (one or more spans) in a text."""
    start, end = place[0].start, place[-1].end
    low = max(0, start - _REACH)
    before = [match.end() for match in _END.finditer(text, low, start)]
    after = _END.search(text, max(end - 1, 0), end + _REACH)
    words = text[before[-1] if before else low : after.end() if after else end]
    first = (before[-1] if before else low) + len(words) - len(words.lstrip())
    return Span(min(first, start), max(first + len(words.strip()), end))
