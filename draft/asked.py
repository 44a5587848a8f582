"""A playbook's questions asked of one document: which passages answer, or that nothing does, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from exhibit.draft.drafts import Draft, Status, pick
from exhibit.draft.playbook import ABSENT, SURE, Playbook
from exhibit.evidence import Span
from exhibit.law.sentences import sentences
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.reader import Reading
from exhibit.models.rerankers import Reranker, confidence
from exhibit.rag.ingest import Prepared

FIRST, MORE = 2, 3
"""Chunks that are read with each question, and in all where none of the first answers.

On nine contracts for tuning 4 give the same sure answers and fewer sure absences, and 1 first loses sure answers.
"""
READ = 2
"""Of these, chunks in which the reader marks the words that answer."""
_CLOSE = 3.0  # log-odds below the best chunk: what a reranker holds less of is not read, and no sure answer was lost
_NOTHING = 0.075  # what a reranker holds of all it read, up to which there is nothing to mark
_UNLIKELY = 0.15  # what a reranker holds of the first chunks, below which it reads more
PROPOSED = 3  # passages that an unsure draft shows a person: more are read by nobody
_SENTENCE = 700  # characters around a passage in which the sentences are looked for that its chunk cuts
_NEAR = 1.5  # log-odds below the best chunk: what a second chunk says is gold too


class SpanReader(Protocol):
    """Marks the words that answer, as `exhibit.models.reader` does."""

    name: str

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """Return what each passage is to the question, in order."""

    def confidence(self, scores: Sequence[float], found: float | None = None) -> float:
        """Return how likely one of the passages answers, together with what a reranker holds of it."""


class Levels(NamedTuple):
    """Thresholds that are known."""

    sure: float = SURE
    absent: float = ABSENT


USUAL = Levels()


@dataclass(frozen=True)
class Thresholds:
    """From which confidence on an answer is sure, and up to which an absence is; None: as the playbook says."""

    sure: float | None = None
    absent: float | None = None

    def over(self, playbook: Playbook) -> Levels:
        """Return what counts for a playbook's questions."""
        sure = playbook.sure if self.sure is None else self.sure
        return Levels(sure, playbook.absent if self.absent is None else self.absent)


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
    reader: SpanReader
    thresholds: Thresholds = Thresholds()

    @cached_property
    def _questions(self) -> dict[str, Vectors]:
        return {}

    def ask(self, playbook: Playbook, prepared: Prepared) -> list[Draft]:
        """Return a draft for each question of the playbook."""
        chunks = self.embedder.embed(list(prepared.texts), role="passage")
        drafts = []
        for question in playbook.questions:
            seek = question.seek or question.ask[0]
            judged = self.judge(seek, [seek, *question.ask], prepared, chunks, self.thresholds.over(playbook))
            wording = pick(question.ask, prepared.entry.filename, playbook.name, question.name)
            name = f"{playbook.name}/{question.name}"
            drafts.append(
                Draft(
                    prepared.entry.filename, wording, "playbook", judged.status, name, judged.spans, judged.confidence
                )
            )
        return drafts

    def judge(
        self, question: str, wordings: Sequence[str], prepared: Prepared, chunks: Vectors, levels: Levels = USUAL
    ) -> Judged:
        """Return which passages of a document answer a question, or that none does; every wording looks for chunks."""
        near = np.max(chunks @ self._embedded(tuple(wordings)).T, axis=1)
        first = [int(at) for at in np.argsort(-near, kind="stable")[:MORE]]
        if not first:
            return Judged("absent", (), 1.0)
        texts = [prepared.texts[at] for at in first]
        scores = self.reranker.score(question, texts[:FIRST])
        found = confidence(self.reranker, scores) or 0.0
        if found < _UNLIKELY and texts[FIRST:]:
            scores += self.reranker.score(question, texts[FIRST:])
            found = confidence(self.reranker, scores) or 0.0
        if found <= min(_NOTHING, levels.absent):  # half of the questions end here
            return Judged("absent", (), round(1 - found, 3))
        best = sorted(range(len(scores)), key=lambda at: -scores[at])[:READ]
        best = [at for at in best if scores[at] >= scores[best[0]] - _CLOSE]
        readings = self.reader.read(question, [texts[at] for at in best])
        sure = self.reader.confidence([reading.score for reading in readings], found)
        spans = self._spans([first[at] for at in best], readings, prepared) if sure > levels.absent else []
        if not spans:
            return Judged("absent", (), round(1 - sure, 3))
        if sure >= levels.sure:
            return Judged("sure", tuple(spans), round(sure, 3))
        return Judged("unsure", tuple(spans[:PROPOSED]), round(sure, 3))

    def _spans(self, chunks: Sequence[int], readings: Sequence[Reading], prepared: Prepared) -> list[Span]:
        """Return where the marked words stand in the document, the best first; a chunk has no running heads."""
        ranked = sorted(zip(chunks, readings, strict=True), key=lambda pair: -pair[1].score)
        least = ranked[0][1].score - _NEAR
        spans: list[Span] = []
        for chunk, reading in ranked:
            start, end = (int(at) for at in prepared.chunks[chunk][:2])
            words, whole = prepared.texts[chunk], prepared.text[start:end]
            for marked in sorted(reading.spans, key=lambda one: -one.sure) if reading.score >= least else ():
                at = marked.start if words == whole else whole.find(words[marked.start : marked.end])
                if at >= 0:
                    span = Span(start + at, start + at + marked.end - marked.start)
                    cut = marked.start == 0, marked.end == len(words)
                    spans.append(completed(prepared.text, span, *cut))
        return list(dict.fromkeys(spans))

    def confidence(self, question: str, passages: Sequence[str]) -> float:
        """Return how likely one of some passages answers a question."""
        return round(confidence(self.reranker, self.reranker.score(question, passages)) or 0.0, 3)

    def _embedded(self, wordings: tuple[str, ...]) -> Vectors:
        key = "\n".join(wordings)
        if key not in self._questions:
            self._questions[key] = self.embedder.embed(list(wordings), role="query")
        return self._questions[key]


def completed(text: str, span: Span, at_start: bool, at_end: bool) -> Span:
    """Return a passage of whole words, with the rest of the sentences that its chunk cut at its start and end."""
    start, end = span
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end - 1].isspace()):
        end += 1
    low, high = max(0, start - _SENTENCE), min(len(text), end + _SENTENCE)
    for one in sentences(text[low:high]) if at_start or at_end else ():
        whole = Span(one.start + low, one.end + low)
        if at_start and whole.start < start < whole.end and (not low or text[low : whole.start].strip()):
            start = whole.start
        if at_end and whole.start < end < whole.end and (high == len(text) or text[whole.end : high].strip()):
            end = whole.end
    return Span(start, end)
