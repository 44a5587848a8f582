"""Questions that a language model drafts; a question is discarded if its quote is not in the document."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from pydantic import BaseModel, OnErrorOmit, ValidationError

from exhibit.converters import Label
from exhibit.drafting.drafts import Draft, digest
from exhibit.drafting.playbook import SURE, Asker
from exhibit.evidence import Document, locate
from exhibit.models.llms import LLM, Prompt
from exhibit.models.protocols import Vectors
from exhibit.rag.ingest import Prepared

_WINDOW_CHARS = 2400  # characters of a document in one prompt: a page and a half
_MAX_WINDOWS = 3  # most parts of a document that the model sees
_MIN_REPEAT_COSINE = 0.92  # the least cosine of two questions that count as the same

_SYSTEM = "You draft questions to test a search system on legal documents. You never invent what a document says."
_PROMPT = """Here is a part of a legal document.{topic}

<document>
{text}
</document>

Write one question of each of these types:
- fact: one fact that one sentence states
- several: something that two or three separate sentences state together
- scenario: a short case that somebody describes, which one provision decides
- near: something that a reader would expect here but that the text does NOT say; leave its quotes empty
Each question must be answerable from this text alone, in ordinary words, without saying "this document" or "the text".
For each give "quotes": the exact words of the text that answer it, copied letter by letter.
Reply with JSON only: {{"questions": [{{"type": "...", "question": "...", "quotes": ["..."]}}]}}"""


class _Question(BaseModel, json_schema_extra={"additionalProperties": False}):
    type: Literal["fact", "several", "scenario", "near"]
    question: str
    quotes: list[str]


class _Reply(BaseModel, json_schema_extra={"additionalProperties": False}):
    questions: list[OnErrorOmit[_Question]]  # one malformed question does not lose the others


@dataclass
class Generator:
    """Asks a language model for questions about each document, and counts the questions that are discarded."""

    llm: LLM
    asker: Asker
    topic: str = ""
    dropped: Counter[str] = field(default_factory=Counter)

    def draft(self, prepared: Prepared) -> list[Draft]:
        chunks = self.asker.embedder.embed(list(prepared.texts), role="passage")
        windows = self._choose_windows(prepared, chunks)
        topic = f" Ask only about this topic: {self.topic}." if self.topic else ""
        schema = json.dumps(_Reply.model_json_schema())
        prompts = [Prompt(_PROMPT.format(topic=topic, text=text), system=_SYSTEM, schema=schema) for text in windows]
        drafts: list[Draft] = []
        document = Document(prepared.entry.filename, prepared.text, ())
        for reply in self.llm.complete(prompts, max_tokens=1200, temperature=0.7):
            if reply.error:
                self.dropped["the language model failed"] += 1
                continue
            content = reply.text[reply.text.find("{") : reply.text.rfind("}") + 1]
            try:
                items = _Reply.model_validate_json(content).questions
            except ValidationError:
                items = []
            if not items:
                self.dropped["a reply that is not the requested JSON"] += 1
            for item in items:
                drafts += self._check(item, document, prepared, chunks)
        if not drafts:
            return []
        vectors = self.asker.embedder.embed([draft.asks for draft in drafts], role="query")
        repeats = np.triu(vectors @ vectors.T, 1).max(axis=0) >= _MIN_REPEAT_COSINE  # each compared with earlier ones
        if repeats.any():
            self.dropped["repeats another question"] += int(repeats.sum())
        return [draft for draft, repeat in zip(drafts, repeats, strict=True) if not repeat]

    def _choose_windows(self, prepared: Prepared, chunks: Vectors) -> list[str]:
        count = max(1, min(_MAX_WINDOWS, len(prepared.text) // _WINDOW_CHARS))
        if self.topic and len(chunks):
            [topic_vector] = self.asker.embedder.embed([self.topic], role="query")
            rows = np.argsort(-(chunks @ topic_vector), kind="stable")[:count]
            starts = [max(0, int(prepared.chunks[row][0]) - _WINDOW_CHARS // 3) for row in rows]
            return [prepared.text[start:][:_WINDOW_CHARS] for start in starts]
        step = len(prepared.text) / count
        return [prepared.text[int(part * step) :][:_WINDOW_CHARS] for part in range(count)]

    def _check(self, item: _Question, document: Document, prepared: Prepared, chunks: Vectors) -> list[Draft]:
        question, name = " ".join(item.question.split()), digest(item.question)
        if not question:
            return []
        labels: dict[str, Label] = {"type": item.type, "model": self.llm.name}
        if item.type == "near":
            status, passage, sure = self.asker.judge([question], prepared, chunks)
            if status == "sure":
                self.dropped["called unanswerable, but the document answers it"] += 1
                return []
        else:
            places = [locate(quote, document) for quote in item.quotes if quote.strip()]
            if not places or not all(places):
                self.dropped["a quote that is not in the document"] += 1
                return []
            passage = tuple(dict.fromkeys(span for [best, *_] in places for span in best.spans))
            sure = self.asker.confidence(question, [document.text[span.start : span.end] for span in passage])
            status = "sure" if sure >= SURE else "unsure"
        return [Draft(prepared.entry.filename, question, "llm", status, name, passage, sure, labels)]
