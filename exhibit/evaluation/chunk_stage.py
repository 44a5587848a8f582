"""Check whether the chunks of a system contain a gold passage whole, cut or not at all."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exhibit.evaluation.text_stage import ALTERNATIVES, join_lines
from exhibit.evidence import Span, subtract_spans
from exhibit.evidence.pieces import Place

PROVISO = re.compile(
    r"\b(?:provided,? (?:however,? )?that|provided,? however|except(?:ing)?|unless|subject to|save (?:that|for|as)"
    r"|notwithstanding|other than)\b",
    re.I,
)
"""Words that begin an exception or a condition."""
_SHOWN = 300
"""Characters of the passage, and of the chunk around it, that are kept on each side of a cut: about two sentences."""


class CutPoint(NamedTuple):
    """A chunk boundary inside a gold passage."""

    at: int
    """The offset in the text from which the chunks were cut."""
    before: str
    after: str
    """The words of the passage before and after the cut."""
    lead: str = ""
    rest: str = ""
    """The words of the first chunk before the passage, and those of the second chunk after it."""


@dataclass(frozen=True)
class InChunks:
    """How much of a gold passage the chunks of a system contain."""

    how: Literal["whole", "cut", "none"]
    share: float
    """The share of the passage's letters and digits that the best chunk contains."""
    chunk: int | None = None
    """The number of the best chunk, from 0."""
    cut: CutPoint | None = None
    before_proviso: bool = False
    """Whether the best chunk lacks an exception or a condition of the gold."""


def find_in_chunks(places: Sequence[Place], chunks: Sequence[Place], text: str) -> InChunks | None:
    """Return how much of a gold passage the chunks contain.

    `places` are the occurrences of the passage, and `chunks` are the chunks, both as spans of `text`. The
    occurrence with the best result counts. Return None if there is no occurrence. White space and punctuation
    at the edge of a chunk do not count.
    """
    results = [_hold(place, chunks, text) for place in places[:ALTERNATIVES]]
    known = [result for result in results if result is not None]
    return max(known, key=lambda result: result.share, default=None)


def _hold(place: Place, chunks: Sequence[Place], text: str) -> InChunks | None:
    whole = _count_letters(place, text)
    if not whole:
        return None
    best: tuple[int, int] | None = None
    low, high = place[0].start, max(span.end for span in place)
    for number, spans in enumerate(chunks):
        if not any(span.start < high and low < span.end for span in spans):
            continue
        held = whole - _count_letters(subtract_spans(place, spans), text)
        if held and (best is None or held > best[0]):
            best = held, number
    if best is None:
        return InChunks("none", 0.0)
    if best[0] == whole:
        return InChunks("whole", 1.0, best[1])
    left = [gap for gap in subtract_spans(place, chunks[best[1]]) if _count_letters([gap], text)]
    cut = _cut_point(place, left, chunks, text)
    return InChunks("cut", best[0] / whole, best[1], cut, _lacks_proviso(place, left, text))


def _count_letters(spans: Iterable[Span], text: str) -> int:
    return sum(sum(map(str.isalnum, text[span.start : span.end])) for span in spans)


def _cut_point(place: Place, left: Sequence[Span], chunks: Sequence[Place], text: str) -> CutPoint:
    """Return the point at which a chunk cuts a gold passage, with the text around this point.

    The chunk is the one that contains most of the passage; `left` has the spans of the passage that it
    lacks. If it lacks the beginning of the passage, the point is where the chunk starts; otherwise it is
    where the chunk ends.
    """
    (start, end), gap = (place[0].start, place[-1].end), left[0]
    at = gap.end if gap.start <= start else gap.start
    spans = [span for chunk in chunks for span in chunk]
    first = min((span.start for span in spans if span.start < at <= span.end), default=start)
    last = max((span.end for span in spans if span.start <= at < span.end), default=end)
    return CutPoint(
        at,
        join_lines(text[max(start, at - _SHOWN) : at]),
        join_lines(text[at : min(end, at + _SHOWN)]),
        join_lines(text[max(first, start - _SHOWN) : start]),
        join_lines(text[end : min(last, end + _SHOWN)]),
    )


def _lacks_proviso(place: Place, left: Sequence[Span], text: str) -> bool:
    """Return whether the best chunk lacks words that introduce an exception or a condition of the passage.

    An example is "provided that". `left` has the spans of the passage that the best chunk does not contain.
    """
    start, end = place[0].start, place[-1].end
    words = (match.span() for match in PROVISO.finditer(text, start, end))
    # the cut may lie inside these words: "provided | that"
    return any(gap.start < last and first < gap.end for first, last in words for gap in left)
