"""Summaries by a language model: generic, or guided by what an expert looks for; asked once, never over the limit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section
from exhibit.models.llms import LLM, Prompt
from exhibit.rag.summaries import CHARACTERS, SECTION_CHARACTERS, TOLERANCE, SummaryCache
from exhibit.rag.summaries.extractive import Extractive, fit
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import read_beside

PROMPT_VERSION = 1
"""Raised when the wording changes: summaries made with another wording are not used again."""
_SECTION_SHOWN = 2500  # characters of a section: a page
_SHORTER = (1.0, 0.8, 0.6)
"""What a model is asked for when its summary was too long, as a share of the length wanted."""
_PROMPT = read_beside(__file__)
_TASKS: dict[str, str] = _PROMPT["tasks"]
_NOISE = re.compile(r"^(?:\**summary\**\s*[:\-–—]\s*)|[\"“”*`]+", re.IGNORECASE)


def open(argument: str | None, *, llm: LLM | None, cache: SummaryCache, style: str, characters: int) -> LLMSummaries:
    """Return summaries by the model that was opened; `llm:expert` overrules the style."""
    if llm is None:
        raise ToolkitError(
            "summaries by an LLM need one: set llm, for instance openai:MODEL, or summaries = extractive"
        )
    return LLMSummaries(llm, cache, argument or style, characters)


@dataclass(frozen=True)
class _Request:
    """One text to be summarised, and what to say if the model does not."""

    thing: str
    about: str
    text: str
    spare: str

    def prompt(self, style: str, characters: int) -> Prompt:
        task = _TASKS[style].format(thing=self.thing)
        given = {"task": task, "thing": self.thing, "about": self.about, "text": self.text}
        return Prompt(_PROMPT["user"].format(characters=characters, **given), _PROMPT["system"])


@dataclass
class LLMSummaries:
    """Asks a model, keeps what it said, and falls back on the text's own words where it fails."""

    llm: LLM
    cache: SummaryCache
    style: str = "generic"
    length: int = CHARACTERS
    shown: int = 6000
    """Characters of a document that the model is shown."""
    tokens: int = 150
    temperature: float = 0.0
    alone: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.style not in _TASKS:
            raise ToolkitError(f"no style {self.style!r} of summaries; there are {', '.join(_TASKS)}")
        self.name = f"llm:{self.style}:{self.llm.name}"
        self._spare = Extractive(self.length)

    def __call__(self, document: Document, root: Section, profile: Profile) -> str:
        """Return a document's summary at the length that was set when this was opened."""
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
        """Return one line on each section; the model is asked for all of them at once."""
        spares = self._spare.summarise_sections(document, sections, profile, characters=characters)
        about = f"From: {profile.title or document.filename}"
        requests = [
            _Request("section", about, document.text[part.span.start : part.span.end][:_SECTION_SHOWN], spare)
            for part, spare in zip(sections, spares, strict=True)
        ]
        return self._ask(requests, characters=characters)

    def _ask(self, requests: Sequence[_Request], *, characters: int) -> list[str]:
        keys = [self._key(request, characters) for request in requests]
        known = self.cache.get(keys)
        self.counts["cached"] += sum(key in known for key in keys)
        pairs = zip(keys, requests, strict=True)
        # what has no text is not asked about
        waiting = {key: request for key, request in pairs if key not in known and request.text.strip()}
        made = self._complete(waiting, characters=characters)
        self.cache.put(made)
        failed = sum(key not in made for key in waiting)
        if failed:
            self.counts["failed"] += failed
        known |= made
        return [known.get(key, request.spare) for key, request in zip(keys, requests, strict=True)]

    def _complete(self, waiting: dict[str, _Request], *, characters: int) -> dict[str, str]:
        """Return the summaries that the model gave: asked again for less while they are too long, cut in the end."""
        made: dict[str, str] = {}
        too_long: dict[str, str] = {}
        for share in _SHORTER:
            keys = [key for key in waiting if key not in made and (share == 1.0 or key in too_long)]
            if not keys:
                break
            prompts = [waiting[key].prompt(self.style, int(characters * share)) for key in keys]
            self.counts["asked"] += len(prompts)
            replies = self.llm.complete(prompts, max_tokens=self.tokens, temperature=self.temperature)
            for key, reply in zip(keys, replies, strict=True):
                words = " ".join(_NOISE.sub("", reply.text.strip()).split())
                if reply.error or not words:
                    continue
                if len(words) <= characters + TOLERANCE:
                    made[key] = words
                elif key not in too_long or len(words) < len(too_long[key]):
                    too_long[key] = words
        for key, words in too_long.items():
            if key not in made:
                self.counts["cut"] += 1
                made[key] = fit(words, characters)
        return made

    def _key(self, request: _Request, characters: int) -> str:
        prompt = request.prompt(self.style, characters)
        return SummaryCache.key(
            prompt=prompt.user,
            version=PROMPT_VERSION,
            style=self.style,
            model=self.llm.name,
            length=(characters, characters + TOLERANCE, self.tokens, self.temperature),
        )
