"""A playbook's questions asked of one document: which passages answer, or that nothing does, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from exhibit.draft.drafts import Draft, Status, pick
from exhibit.draft.playbook import Playbook
from exhibit.evidence import Span
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.rerankers import Reranker, confidence
from exhibit.rag.ingest import Prepared

FIRST = 8
"""Chunks that are read with each question: 16 find little more on the contracts for tuning, and take twice the time."""


class Finder(Protocol):
    """Marks the words that answer, in the chunks that were read."""

    def find(self, question: str, prepared: Prepared, chunks: Sequence[int], scores: Sequence[float]) -> list[Span]:
        """Return the passages, best first, as spans of the document's text."""


@dataclass(frozen=True)
class Thresholds:
    """From which confidence on an answer is sure, and up to which an absence is."""

    sure: float = 0.85
    absent: float = 0.15


class Judged(NamedTuple):
    """What the models say of a question on a document."""

    status: Status
    spans: tuple[Span, ...]
    confidence: float


@dataclass
class Asker:
    """Asks the questions of playbooks; the models are opened once for many documents."""

    embedder: Embedder
    reranker: Reranker
    finder: Finder
    thresholds: Thresholds = Thresholds()

    @cached_property
    def _questions(self) -> dict[str, Vectors]:
        return {}

    def ask(self, playbook: Playbook, prepared: Prepared) -> list[Draft]:
        """Return a draft for each question of the playbook."""
        chunks = self.embedder.embed(list(prepared.texts), role="passage")
        drafts = []
        for question in playbook.questions:
            judged = self.judge(question.ask[0], question.ask, prepared, chunks)
            wording = pick(question.ask, prepared.filename, playbook.name, question.name)
            name = f"{playbook.name}/{question.name}"
            drafts.append(
                Draft(prepared.filename, wording, "playbook", judged.status, name, judged.spans, judged.confidence)
            )
        return drafts

    def judge(self, question: str, wordings: Sequence[str], prepared: Prepared, chunks: Vectors) -> Judged:
        """Return which passages of a document answer a question, or that none does; every wording looks for chunks."""
        best = np.max(chunks @ self._embedded(tuple(wordings)).T, axis=1)
        first = [int(at) for at in np.argsort(-best, kind="stable")[:FIRST]]
        scores = self.reranker.score(question, [prepared.texts[at] for at in first])
        sure = confidence(self.reranker, scores) or 0.0
        spans = self.finder.find(question, prepared, first, scores) if sure > self.thresholds.absent else []
        if not spans:
            return Judged("absent", (), round(1 - sure, 3))
        return Judged("sure" if sure >= self.thresholds.sure else "unsure", tuple(sorted(spans)), round(sure, 3))

    def confidence(self, question: str, passages: Sequence[str]) -> float:
        """Return how likely one of some passages answers a question."""
        return round(confidence(self.reranker, self.reranker.score(question, passages)) or 0.0, 3)

    def _embedded(self, wordings: tuple[str, ...]) -> Vectors:
        key = "\n".join(wordings)
        if key not in self._questions:
            self._questions[key] = self.embedder.embed(list(wordings), role="query")
        return self._questions[key]
