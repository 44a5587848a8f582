"""Asks the questions of a playbook about one document.

The result for a question is either a list of passages that answer it, or the finding that the document has no answer.
Each result has a confidence.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from exhibit.drafting.drafts import Draft, Status
from exhibit.drafting.playbook import ABSENT, SURE, Playbook, PlaybookQuestion
from exhibit.evidence import Span
from exhibit.law.sentences import split_sentences
from exhibit.models.protocols import Embedder, Vectors
from exhibit.models.reader import EMBEDDER, QuestionKind, Reader, Reading, shared_kinds
from exhibit.models.rerankers import Reranker, estimate_confidence
from exhibit.rag.ingest import Prepared

# most chunks that are read with each question: at the threshold that finds half of the experts' gold, 1, 2 and 3 chunks
# give a precision of 0.87, 0.93 and 0.96 on the tuning documents of CUAD, and of 0.89, 0.92 and 0.95 on ContractNLI's
MAX_READ_CHUNKS = 3
_MIN_VECTOR_PROBABILITY = 0.02  # no chunk is read if the probability of an answer, by the vectors, is not above this
_MIN_READ_PROBABILITY = 0.05  # no further chunk is read if the probability of an answer is not above this
# least log-odds from its own vector of a chunk that is read after the best chunk. With these limits, 60 of 123 pairs of
# question and chunk are read on CUAD's 26 contracts for tuning; AUROC is 0.954 (0.957 if all are read), precision is
# 0.924 (0.930) where half of the gold is found, and 0.984 (0.989) where half of the absences are found
_MIN_CHUNK_ODDS = -3.0
# the reranker's confidence in the same chunks above which an absence is uncertain: on the 15 agreements for tuning, 80
# absences are certain without this check, of which 6 are wrong, and 65 with it, of which 1 is wrong
_MAX_DOUBT = 0.2
_MAX_DISPUTED_CONFIDENCE = 0.5  # the greatest confidence of a draft if the models disagree
_COSINE_WEIGHT = 5.0  # factor of the cosine that is added to a chunk's log-odds to rank chunks for reading
MAX_PROPOSED_PASSAGES = 3  # most passages of an uncertain draft that a reviewer sees
_SENTENCE_CHARS = 700  # most characters by which a passage is extended to complete a sentence
_MAX_ODDS_BELOW_BEST = 1.5  # a chunk's passages are gold if its log-odds are at most this far below the best chunk's


class Judged(NamedTuple):
    """The models' judgement on whether and where a document answers a question: status, passages and confidence."""

    status: Status
    spans: tuple[Span, ...]
    confidence: float


@dataclass
class Asker:
    """Asks the questions of playbooks; the models are opened once for many documents."""

    embedder: Embedder
    reader: Reader
    reranker: Reranker
    _questions: dict[tuple[str, ...], Vectors] = field(default_factory=dict)

    def ask(self, playbook: Playbook, prepared: Prepared) -> list[Draft]:
        """Return a draft for each question of a playbook: the question about this document, with proposed gold."""
        chunks = self.embedder.embed(list(prepared.texts), role="passage")
        judge = partial(self.judge, sure=playbook.sure, absent=playbook.absent, again=playbook.again)

        def draft(question: PlaybookQuestion) -> Draft:
            status, spans, confidence = judge(question.wordings, prepared, chunks)
            name = f"{playbook.name}/{question.name}"
            return Draft(prepared.entry.filename, question.ask, "playbook", status, name, spans, confidence)

        with ThreadPoolExecutor(self.reader.threads) as pool:
            return list(pool.map(draft, playbook.questions))

    def judge(
        self, wordings: Sequence[str], prepared: Prepared, chunks: Vectors, *,
        sure: float = SURE, absent: float = ABSENT, again: bool = True,
    ) -> Judged:  # fmt: skip
        """Judge whether a document answers a question; `wordings` are the question's wordings, the most precise first.

        `sure` and `absent` are thresholds for the probability that the document answers. With `again`, if the reader
        finds no answer, a reranker must confirm this.
        """
        if not len(chunks):
            return Judged("absent", (), 1.0)
        question = wordings[0]
        kind, best, odds, spot = self._choose_chunks(wordings, chunks)
        texts = [prepared.texts[at] for at in best]
        readings: list[Reading] = []
        likely = 1.0 if spot is None else self.reader.confidence((), spot=spot)
        for text, own_odds in zip(texts, odds, strict=True):
            least = min(_MIN_READ_PROBABILITY if readings else _MIN_VECTOR_PROBABILITY, absent)
            if spot is not None and (likely <= least or (readings and own_odds < _MIN_CHUNK_ODDS and absent > 0)):
                break
            readings += self.reader.read(question, [text], kind.asks)
            likely = self.reader.confidence([reading.score for reading in readings], spot=spot)
        if likely <= absent:
            doubt = 0.0
            if again:
                doubt = estimate_confidence(self.reranker, self.reranker.score(question, texts)) or 0.0
            if doubt <= _MAX_DOUBT:
                return Judged("absent", (), round(1 - likely, 3))
            likely = min(doubt, _MAX_DISPUTED_CONFIDENCE)
            readings += self.reader.read(question, texts[len(readings) :], kind.asks)
        spans = self._locate_spans(best, readings, prepared) or [Span(*map(int, prepared.chunks[best[0]][:2]))]
        if likely >= sure:
            return Judged("sure", tuple(spans), round(likely, 3))
        return Judged("unsure", tuple(spans[:MAX_PROPOSED_PASSAGES]), round(likely, 3))

    def _choose_chunks(
        self, wordings: Sequence[str], chunks: Vectors
    ) -> tuple[QuestionKind, list[int], list[float], float | None]:
        """Compare a question's vectors with the chunks' vectors, and choose the chunks that the reader reads.

        Return the question's kind; the chunks, best first; the log-odds that each of these chunks answers; and the
        log-odds that any chunk of the document answers, which are None if the kind is unknown.
        """
        near = _COSINE_WEIGHT * np.mean(chunks @ self._embed(tuple(wordings)).T, axis=1)
        odds = np.zeros(len(chunks), np.float32)
        spot: float | None = None
        kind = QuestionKind()
        if self.embedder.name.startswith(EMBEDDER):
            [vector] = self._embed((wordings[0],))
            kind = shared_kinds().of(wordings[0], vector)
        # A short document is read completely and needs no choice by vectors: the vector of a page with many clauses
        # represents none of them.
        if kind.number >= 0 and len(chunks) > MAX_READ_CHUNKS:
            odds = shared_kinds().answers(kind, chunks)
            near, spot = near + odds, shared_kinds().together(kind, odds)
        best = [int(at) for at in np.argsort(-near, kind="stable")[:MAX_READ_CHUNKS]]
        return kind, best, [float(odds[at]) for at in best], spot

    def _locate_spans(self, chunks: Sequence[int], readings: Sequence[Reading], prepared: Prepared) -> list[Span]:
        """Return the spans that the model marked as answers, as offsets in the document, best first."""
        ranked = sorted(zip(chunks, readings, strict=False), key=lambda pair: -pair[1].score)
        least = ranked[0][1].score - _MAX_ODDS_BELOW_BEST
        spans: list[Span] = []
        for chunk, reading in ranked:
            start, end = (int(at) for at in prepared.chunks[chunk][:2])
            words, whole = prepared.texts[chunk], prepared.text[start:end]
            for marked in sorted(reading.spans, key=lambda answer: -answer.sure) if reading.score >= least else ():
                at = marked.start if words == whole else whole.find(words[marked.start : marked.end])
                if at >= 0:
                    span = Span(start + at, start + at + marked.end - marked.start)
                    cut = marked.start == 0, marked.end == len(words)
                    spans.append(complete_passage(prepared.text, span, *cut))
        return list(dict.fromkeys(spans))

    def confidence(self, question: str, passages: Sequence[str]) -> float:
        """Return the probability that one of the passages answers the question."""
        return round(self.reader.confidence([reading.score for reading in self.reader.read(question, passages)]), 3)

    def _embed(self, wordings: tuple[str, ...]) -> Vectors:
        if wordings not in self._questions:
            self._questions[wordings] = self.embedder.embed(list(wordings), role="query")
        return self._questions[wordings]


def complete_passage(text: str, span: Span, at_start: bool, at_end: bool) -> Span:
    """Return a passage whose ends are extended to whole words."""
    start, end = span
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not (text[end].isspace() or text[end - 1].isspace()):
        end += 1
    low, high = max(0, start - _SENTENCE_CHARS), min(len(text), end + _SENTENCE_CHARS)
    for sentence in split_sentences(text[low:high]) if at_start or at_end else ():
        whole = Span(sentence.start + low, sentence.end + low)
        if at_start and whole.start < start < whole.end and (not low or text[low : whole.start].strip()):
            start = whole.start
        if at_end and whole.start < end < whole.end and (high == len(text) or text[whole.end : high].strip()):
            end = whole.end
    return Span(start, end)
