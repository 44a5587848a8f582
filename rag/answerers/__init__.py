"""Answerers: one file per way to answer from sources; its name is its name on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from exhibit.models.llms import LLM
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
    """Return the answerer that the config names."""
    wanted = ("llm" if llm is not None else "reader") if config.answerer == "auto" else config.answerer
    module, _ = load_plugin(__name__, wanted)
    return cast(Answerer, module.open(config, llm=llm))
