"""Completes the sentences in which passages begin and end.

A passage is short, so that it is precise. It often begins or ends inside a sentence, and then it may lack the words
that answer: "Party B agrees:" without what it agrees to. An answer is made from whole sentences.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from exhibit.evidence import Span
from exhibit.law.sentences import split_sentences
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit
from exhibit.rag.retrieval.passages import DOCUMENT, START, RankedPassage
from exhibit.rag.retrieval.routed import to_hits

WIDEST = 900
"""The most characters of a passage with the text that completes its sentences: the reader reads no more at once."""
SCRAP = 2
"""The most characters of a missing text that is not worth a source: a mark or a space."""


def complete_sentences(hits: Sequence[Hit], index: Index, *, widest: int = WIDEST) -> list[Hit]:
    """Return the text before and after passages that completes the sentences in which they begin and end.

    Each text is a hit of its own. It has no words of the passages, and none of another such text.
    """
    taken: dict[str, list[Span]] = {}
    for hit in hits:
        taken.setdefault(hit.chunk.document, []).append(hit.chunk.span)
    added: list[Hit] = []
    for hit in hits:
        name = hit.chunk.document
        text = index.read_document_text(name)
        if text[slice(*hit.chunk.span)] != hit.text:  # an amendment changed its words
            continue
        whole = find_whole_sentences(text, hit.chunk.span, widest=widest)
        for gap in subtract(whole, taken[name]):
            if len(text[slice(*gap)].strip()) > SCRAP:
                taken[name].append(gap)
                added += _make_hits(index, hit, gap, text)
    return added


def find_whole_sentences(text: str, span: Span, *, widest: int) -> Span:
    """Return a span extended to the start of its first sentence and to the end of its last one.

    The result has at most `widest` characters. If the sentences are longer, each side gets what it needs as far as
    there is room, and the result begins and ends at a word.
    """
    room = widest - (span.end - span.start)
    if room <= 0:
        return span
    low, high = max(0, span.start - widest), min(len(text), span.end + widest)
    start, end = span
    announced = False
    for one in split_sentences(text[low:high]):
        first, last = low + one.start, low + one.end
        if first < span.end and span.start < last:
            start, end = min(start, first), max(end, last)
            announced = text[last - 1] == ":"
        elif announced and first >= span.end and last - start <= LISTED:
            end = last
    before, after = span.start - start, end - span.end
    if before + after > room:
        after = min(after, max(room - before, room // 2))
        before = min(before, room - after)
    start, end = span.start - before, span.end + after
    while start < span.start and start and not text[start - 1].isspace():
        start += 1
    while end > span.end and end < len(text) and not text[end].isspace():
        end -= 1
    return Span(start, end)


LISTED = 600


def subtract(whole: Span, taken: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of a span that no span of `taken` covers."""
    at = whole.start
    for start, end in sorted(taken):
        if start > at and at < whole.end:
            yield Span(at, min(start, whole.end))
        at = max(at, end)
    if at < whole.end:
        yield Span(at, whole.end)


def _make_hits(index: Index, hit: Hit, span: Span, text: str) -> list[Hit]:
    number = index.entry(hit.chunk.document).number
    owners = index.table[:, DOCUMENT]
    low, high = int(owners.searchsorted(number)), int(owners.searchsorted(number, side="right"))
    row = max(low, low + bisect_right(index.table[low:high, START].tolist(), span.start) - 1)
    return to_hits(index, [RankedPassage(number, span, hit.score, row)], lambda _: text)
