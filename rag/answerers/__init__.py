"""Answerers: one file per way to answer from sources; its name is its name on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from exhibit.models.llms import LLM
from exhibit.rag.answerers._places import Form, with_places
from exhibit.rag.config import Config
from exhibit.rag.protocols import Answer, Context
from exhibit.schemas.plugins import load_plugin


class Answerer(Protocol):
    """Sources to a cited answer. A module in `rag/answerers/` has `open(config, *, llm) -> Answerer`."""

    name: str

    def answer(self, question: str, context: Context) -> Answer:
        """Return an answer from the context's sources and nothing else, a refusal, or an error."""

    def answer_all(self, asked: Sequence[tuple[str, Context]]) -> list[Answer]:
        """Return one answer per question, in order."""


def open_answerer(config: Config, *, llm: LLM | None = None) -> Answerer:
    """Return the answerer that the config names; its answers say where they stand."""
    wanted = ("llm" if llm is not None else "reader") if config.answerer == "auto" else config.answerer
    module, _ = load_plugin(__name__, wanted)
    inner = cast(Answerer, module.open(config, llm=llm))
    return Placed(inner.name, inner, config.cite)


@dataclass
class Placed:
    """An answerer whose answers say which document, section and page each citation is."""

    name: str
    inner: Answerer
    form: Form

    def answer(self, question: str, context: Context) -> Answer:
        """Return the answer with its places."""
        return self.answer_all([(question, context)])[0]

    def answer_all(self, asked: Sequence[tuple[str, Context]]) -> list[Answer]:
        """Return one answer per question, in order."""
        answers = self.inner.answer_all(asked)
        return [self._placed(answer, context) for answer, (_, context) in zip(answers, asked, strict=True)]

    def _placed(self, answer: Answer, context: Context) -> Answer:
        if answer.refused or answer.error:
            return answer
        return replace(answer, text=with_places(answer.text, context.sources, self.form))
