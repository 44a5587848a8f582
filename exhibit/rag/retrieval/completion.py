"""Completes the sentences in which passages begin and end.

A passage is short, so that it is precise. It often begins or ends inside a sentence, and then it may lack the words
that answer the question: it may end with "Party B agrees:". So the rest of the sentence becomes a source of the answer,
too.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from exhibit.evidence import Span, subtract_spans
from exhibit.law.sentences import extend_to_sentences
from exhibit.rag.index import Index
from exhibit.rag.protocols import Hit
from exhibit.rag.retrieval.passages import RankedPassage, find_row
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
        missing = chain.from_iterable(_cut(gap, edges.get(name, ())) for gap in subtract_spans([whole], taken[name]))
        spans = [span for span in missing if text[slice(*span)].strip()]
        taken[name] += spans
        added += _make_hits(index, hit, spans, text)
    return added


def _cut(span: Span, edges: Sequence[int]) -> Iterator[Span]:
    """Yield the parts of a span between the given offsets."""
    at = span.start
    for edge in sorted({edge for edge in edges if span.start < edge < span.end} | {span.end}):
        yield Span(at, edge)
        at = edge


def _make_hits(index: Index, hit: Hit, spans: Sequence[Span], text: str) -> list[Hit]:
    """Return spans of a hit's document as hits with the same score."""
    number = index.entry(hit.chunk.document).number
    passages = [RankedPassage(number, span, hit.score, find_row(index.table, number, span.start)) for span in spans]
    return to_hits(index, passages, lambda _: text)
