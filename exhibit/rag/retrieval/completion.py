"""Completes the sentences in which passages begin and end.

A passage is short, so that it is precise. It often begins or ends inside a sentence, and then it may lack the words
that answer the question: it may end with "Party B agrees:". So the rest of the sentence becomes a source of the answer,
too.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain

from exhibit.evidence import Span
from exhibit.law.sentences import extend_to_sentences
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit
from exhibit.rag.retrieval.passages import DOCUMENT, START, RankedPassage
from exhibit.rag.retrieval.routed import to_hits

WIDEST = 900
"""The most characters of a passage with the rest of its sentences: with a question of usual length, the reader model
would truncate a longer text.
"""


def complete_sentences(selected: Sequence[Hit], ranked: Sequence[Hit], index: Index) -> list[Hit]:
    """Return the text that completes the sentences in which the selected passages begin and end.

    The text is returned as further hits, which do not overlap the selected passages. A hit ends where a ranked
    passage begins or ends, so that it is inside one ranked passage, or in none.
    """
    taken: dict[str, list[Span]] = {}
    edges: dict[str, list[int]] = {}
    for hit in selected:
        taken.setdefault(hit.chunk.document, []).append(hit.chunk.span)
    for hit in ranked:
        edges.setdefault(hit.chunk.document, []).extend(hit.chunk.span)
    added: list[Hit] = []
    for hit in selected:
        name = hit.chunk.document
        text = index.read_document_text(name)
        if text[slice(*hit.chunk.span)] != hit.text:  # an amendment changed the words
            continue
        whole = extend_to_sentences(text, hit.chunk.span, widest=WIDEST)
        missing = chain.from_iterable(_cut(gap, edges.get(name, ())) for gap in subtract(whole, taken[name]))
        spans = [span for span in missing if text[slice(*span)].strip()]
        taken[name] += spans
        added += _make_hits(index, hit, spans, text)
    return added


def subtract(whole: Span, taken: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of a span that no span of `taken` covers, in order."""
    at = whole.start
    for start, end in sorted(taken):
        if at < min(start, whole.end):
            yield Span(at, min(start, whole.end))
        at = max(at, end)
    if at < whole.end:
        yield Span(at, whole.end)


def _cut(span: Span, edges: Sequence[int]) -> Iterator[Span]:
    """Yield the parts of a span between the given offsets."""
    at = span.start
    for edge in sorted({edge for edge in edges if span.start < edge < span.end} | {span.end}):
        yield Span(at, edge)
        at = edge


def _make_hits(index: Index, hit: Hit, spans: Sequence[Span], text: str) -> list[Hit]:
    """Return spans of a hit's document as hits with the same score."""
    number = index.entry(hit.chunk.document).number
    owners = index.table[:, DOCUMENT]
    low, high = owners.searchsorted(number), owners.searchsorted(number, side="right")
    starts = index.table[low:high, START].tolist()
    rows = [int(low) + max(0, bisect_right(starts, span.start) - 1) for span in spans]
    passages = [RankedPassage(number, span, hit.score, row) for span, row in zip(spans, rows, strict=True)]
    return to_hits(index, passages, lambda _: text)
