"""A playbook's questions asked of one document: which passages answer, or that nothing does, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

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

    sure: float = 0.8
    absent: float = 0.1


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
        return [self._draft(question.name, question.ask, playbook, prepared, chunks) for question in playbook.questions]

    def _draft(
        self, name: str, wordings: Sequence[str], playbook: Playbook, prepared: Prepared, chunks: Vectors
    ) -> Draft:
        # every wording looks for chunks, and the one that is printed is not the one that decides
        best = np.max(chunks @ self._embedded(tuple(wordings)).T, axis=1)
        first = [int(at) for at in np.argsort(-best, kind="stable")[:FIRST]]
        scores = self.reranker.score(wordings[0], [prepared.texts[at] for at in first])
        sure = confidence(self.reranker, scores) or 0.0
        spans = self.finder.find(wordings[0], prepared, first, scores) if sure > self.thresholds.absent else []
        status: Status = "sure" if spans and sure >= self.thresholds.sure else "unsure" if spans else "absent"
        return Draft(
            prepared.filename,
            pick(wordings, prepared.filename, playbook.name, name),
            "playbook",
            status,
            f"{playbook.name}/{name}",
            tuple(sorted(spans)),
            round(sure if spans else 1 - sure, 3),
        )

    def _embedded(self, wordings: tuple[str, ...]) -> Vectors:
        key = "\n".join(wordings)
        if key not in self._questions:
            self._questions[key] = self.embedder.embed(list(wordings), role="query")
        return self._questions[key]
