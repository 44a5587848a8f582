"""Questions that a language model drafts; a question is discarded if its quote is not in the document."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from exhibit.converters import Label
from exhibit.drafting.asked import Asker
from exhibit.drafting.drafts import Draft, digest
from exhibit.drafting.playbook import SURE
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


class _Question(BaseModel):
    """A question in a reply; the schema for the model allows no other fields."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    type: Literal["fact", "several", "scenario", "near"]
    question: str
    quotes: list[str]


class _Reply(BaseModel):
    questions: list[Any]  # each is validated alone, so that one malformed question does not lose the others


_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": _Question.model_json_schema()}},
        "required": ["questions"],
        "additionalProperties": False,
    }
)


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
        prompts = [
            Prompt(_PROMPT.format(topic=topic, text=window), system=_SYSTEM, schema=_SCHEMA) for window in windows
        ]
        drafts: list[Draft] = []
        document = Document(prepared.entry.filename, prepared.text, ())
        for reply in self.llm.complete(prompts, max_tokens=1200, temperature=0.7):
            if reply.error:
                self.dropped["the language model failed"] += 1
                continue
            for item in self._read_items(reply.text):
                drafts += self._check(item, document, prepared, chunks)
        return self._drop_repeats(drafts) if drafts else []

    def _choose_windows(self, prepared: Prepared, chunks: Vectors) -> list[str]:
        count = max(1, min(_MAX_WINDOWS, len(prepared.text) // _WINDOW_CHARS))
        if self.topic and len(chunks):
            [topic_vector] = self.asker.embedder.embed([self.topic], role="query")
            rows = np.argsort(-(chunks @ topic_vector), kind="stable")[:count]
            middles = [int(prepared.chunks[row][0]) for row in rows]
            return [prepared.text[max(0, at - _WINDOW_CHARS // 3) :][:_WINDOW_CHARS] for at in middles]
        step = len(prepared.text) / count
        return [prepared.text[int(part * step) :][:_WINDOW_CHARS] for part in range(count)]

    def _read_items(self, text: str) -> Iterator[_Question]:
        """Yield the questions of a model's reply; count the items that do not have the required form."""
        try:
            items = _Reply.model_validate_json(text[text.find("{") : text.rfind("}") + 1]).questions
        except ValidationError:
            self.dropped["a reply that is not the requested JSON"] += 1
            return
        for item in items:
            try:
                question = _Question.model_validate(item)
            except ValidationError:
                question = None
            if question and question.question.strip():
                yield question
            else:
                self.dropped["a question without its type or quotes"] += 1

    def _check(self, item: _Question, document: Document, prepared: Prepared, chunks: Vectors) -> list[Draft]:
        question, name = " ".join(item.question.split()), digest(item.question)
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

    def _drop_repeats(self, drafts: list[Draft]) -> list[Draft]:
        """Return the drafts without those that repeat the question of an earlier draft."""
        vectors = self.asker.embedder.embed([draft.asks for draft in drafts], role="query")
        kept: list[int] = []
        for at in range(len(drafts)):
            if kept and float(np.max(vectors[kept] @ vectors[at])) >= _MIN_REPEAT_COSINE:
                self.dropped["repeats another question"] += 1
            else:
                kept.append(at)
        return [drafts[at] for at in kept]
