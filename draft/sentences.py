"""Passages by sentences: those of the best chunks that the reranker likes best; what the reader is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from exhibit.evidence import Span
from exhibit.law.sentences import sentences
from exhibit.models.rerankers import Reranker
from exhibit.rag.ingest import Prepared

_NEAR = 1.5  # log-odds below the best sentence: a second sentence that answers nearly as well is gold too
_CHUNKS = 2  # whose sentences are read
_MOST = 3  # sentences of a passage


@lru_cache(maxsize=1)
def _sentences(text: str) -> list[Span]:
    """Return the sentences of the document that is being asked."""
    return sentences(text)


@dataclass(frozen=True)
class SentenceFinder:
    """Reads the sentences of the best chunks, each with the question."""

    reranker: Reranker

    def find(self, question: str, prepared: Prepared, chunks: Sequence[int], scores: Sequence[float]) -> list[Span]:
        """Return the best sentences of the best chunks, best first; neighbours are one passage."""
        order = sorted(range(len(chunks)), key=lambda at: -scores[at])[:_CHUNKS]
        places = [prepared.chunks[chunks[at]].tolist() for at in order]
        # whole sentences: a chunk may begin or end within one
        spans = [
            span
            for span in _sentences(prepared.text)
            if any(start < span.end and span.start < end for start, end, *_ in places)
        ]
        if not spans:
            return []
        judged = self.reranker.score(question, [prepared.text[span.start : span.end] for span in spans])
        best = max(judged)
        ranked = sorted(zip(judged, spans, strict=True), key=lambda pair: (-pair[0], pair[1]))
        return [span for score, span in ranked[:_MOST] if score >= best - _NEAR]
