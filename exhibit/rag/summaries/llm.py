"""Summaries by a language model: generic or in an expert's style, cached, and never longer than the limit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section
from exhibit.models.llms import LLM, Prompt
from exhibit.rag.summaries import CHARACTERS, SECTION_CHARACTERS, TOLERANCE
from exhibit.rag.summaries.extractive import ExtractiveSummariser, fit
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import read_beside

_SECTION_SHOWN = 2500  # characters of a section: a page
_SHORTER = (1.0, 0.8, 0.6)
"""The lengths that are requested one after another while a summary is too long, as shares of the limit."""
_PROMPT = read_beside(__file__)
_TASKS: dict[str, str] = _PROMPT["tasks"]
_NOISE = re.compile(r"^(?:\**summary\**\s*[:\-–—]\s*)|[\"“”*`]+", re.IGNORECASE)


def open(argument: str | None, *, llm: LLM | None, style: str, characters: int) -> "LLMSummaries":
    """Return the summariser that uses the language model; `llm:expert` overrides the style."""
    if llm is None:
        raise ToolkitError(
            "summaries = llm needs a language model: set llm, for instance openai:MODEL, or summaries = extractive"
        )
    return LLMSummaries(llm, argument or style, characters)


@dataclass(frozen=True)
class _Request:
    """One text to summarise, and the fallback summary for a failed request."""

    thing: str
    about: str
    text: str
    spare: str

    def make_prompt(self, style: str, characters: int) -> Prompt:
        task = _TASKS[style].format(thing=self.thing)
        given = {"task": task, "thing": self.thing, "about": self.about, "text": self.text}
        return Prompt(_PROMPT["user"].format(characters=characters, **given), _PROMPT["system"])


@dataclass
class LLMSummaries:
    """Summarises with a language model; if a request fails, the summary is extractive instead."""

    llm: LLM
    style: str = "generic"
    length: int = CHARACTERS
    shown: int = 6000
    """The number of characters of a document in the prompt."""
    tokens: int = 150
    temperature: float = 0.0
    alone: bool = False

    def __post_init__(self) -> None:
        if self.style not in _TASKS:
            raise ToolkitError(f"no style {self.style!r} of summaries; there are {', '.join(_TASKS)}")
        self.name = f"llm:{self.style}:{self.llm.name}"
        self._spare = ExtractiveSummariser(self.length)

    def __call__(self, document: Document, root: Section, profile: Profile) -> str:
        """Return the summary of a document, with about the number of characters that `open` was called with."""
        spare = self._spare(document, root, profile)
        request = _Request("document", f"File: {document.filename}", document.text[: self.shown], spare)
        return self._ask([request], characters=self.length)[0]

    def summarise_sections(
        self,
        document: Document,
        sections: Sequence[Section],
        profile: Profile,
        *,
        characters: int = SECTION_CHARACTERS,
    ) -> list[str]:
        """Return a one-line summary of each section, written by the language model in one batch.

        A summary has about `characters` characters.
        """
        spares = self._spare.summarise_sections(document, sections, profile, characters=characters)
        about = f"From: {profile.title or document.filename}"
        requests = [
            _Request("section", about, document.text[part.span.start : part.span.end][:_SECTION_SHOWN], spare)
            for part, spare in zip(sections, spares, strict=True)
        ]
        return self._ask(requests, characters=characters)

    def _ask(self, requests: Sequence[_Request], *, characters: int) -> list[str]:
        """Return a summary of each text; if a summary is too long, request a shorter one.

        If every reply is too long, the shortest is cut. If every request fails, the fallback summary is used.
        """
        shortest: dict[_Request, str] = {}
        for share in _SHORTER:
            # a section without text needs no request
            waiting = [
                request
                for request in dict.fromkeys(requests)
                if request.text.strip() and (share == 1.0 or len(shortest.get(request, "")) > characters + TOLERANCE)
            ]
            if not waiting:
                break
            prompts = [request.make_prompt(self.style, int(characters * share)) for request in waiting]
            replies = self.llm.complete(prompts, max_tokens=self.tokens, temperature=self.temperature)
            for request, reply in zip(waiting, replies, strict=True):
                words = " ".join(_NOISE.sub("", reply.text.strip()).split())
                if words and not reply.error and len(words) <= len(shortest.get(request, words)):
                    shortest[request] = words
        return [fit(shortest.get(request, request.spare), characters) for request in requests]
