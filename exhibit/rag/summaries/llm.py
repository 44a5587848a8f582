"""Summaries by a language model: generic or in an expert's style, cached, and never longer than the limit."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section
from exhibit.models.llms import LLM, Prompt
from exhibit.rag.config import Config
from exhibit.rag.summaries import DOCUMENT_CHARS, SECTION_CHARS, TOLERANCE, Summary
from exhibit.rag.summaries.extractive import ExtractiveSummariser, fit
from exhibit.schemas.errors import ToolkitError

_SHOWN_SECTION_CHARS = 2500  # characters of a section that the model gets: about a page
_SHORTER = (1.0, 0.8, 0.6)  # shares of the limit, requested in turn while a summary is too long
_NOISE = re.compile(r"^(?:\**summary\**\s*[:\-–—]\s*)|[\"“”*`]+", re.IGNORECASE)
_SYSTEM = "You write one-line summaries of legal texts. You reply with the summary alone, as plain text on one line."
_USER = """
{task}
It will stand in front of passages of the same {thing}, so that a reader knows where they come from. At most \
{characters} characters, counting spaces. No quotation marks, no introduction.

{about}
---
{text}
---"""
_TASKS = {
    "generic": "Say what this {thing} is: who it concerns, what it is for, and its main topics.",
    "expert": """
Summarise this {thing} as a specialist lawyer would note it: its type, the parties and their roles, the core \
obligations and restrictions, term and termination, liability, governing law, and any unusual condition. \
Abbreviate; prefer the facts that tell it from others of its type.""",
}


def open(argument: str | None, *, config: Config, llm: LLM | None) -> "LLMSummariser":
    if llm is None:
        raise ToolkitError(
            "summaries = llm needs a language model: set llm, for instance openai:MODEL, or summaries = extractive"
        )
    return LLMSummariser(llm, config, argument or "generic")


class _Request(NamedTuple):
    thing: str
    about: str
    text: str
    fallback: str


class LLMSummariser:
    """Summarises with a language model; if a request fails, the summary is extractive instead."""

    alone = False

    def __init__(self, llm: LLM, config: Config, style: str) -> None:
        if style not in _TASKS:
            raise ToolkitError(f"no style {style!r} of summaries; choose one of {', '.join(_TASKS)}")
        self._llm, self._config, self._style = llm, config, style
        self._extractive = ExtractiveSummariser(config)

    def summarise(self, document: Document, root: Section, profile: Profile) -> Summary:
        config = self._config
        fallback = self._extractive.summarise(document, root, profile)
        text = document.text[: config.summary_input_characters]
        request = _Request("document", f"File: {document.filename}", text, fallback.document)
        [line] = self._ask([request], characters=DOCUMENT_CHARS)
        about = f"From: {profile.title or document.filename}"
        leaves = [section for section in root.walk() if not section.children]
        requests = [
            _Request("section", about, document.text[leaf.span.start : leaf.span.end][:_SHOWN_SECTION_CHARS], short)
            for leaf, short in zip(leaves, fallback.sections, strict=False)
        ]
        return Summary(line, tuple(self._ask(requests, characters=SECTION_CHARS)))

    def _ask(self, requests: Sequence[_Request], *, characters: int) -> list[str]:
        config = self._config
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
            prompts = [self._make_prompt(request, int(characters * share)) for request in waiting]
            replies = self._llm.complete(
                prompts, max_tokens=config.summary_tokens, temperature=config.summary_temperature
            )
            for request, reply in zip(waiting, replies, strict=True):
                words = " ".join(_NOISE.sub("", reply.text.strip()).split())
                if words and not reply.error and len(words) <= len(shortest.get(request, words)):
                    shortest[request] = words
        return [fit(shortest.get(request, request.fallback), characters) for request in requests]

    def _make_prompt(self, request: _Request, characters: int) -> Prompt:
        task = _TASKS[self._style].format(thing=request.thing)
        return Prompt(_USER.format(task=task, characters=characters, **request._asdict()), _SYSTEM)
