"""Summaries of documents and sections: one file per way to make them; its name is its name on the command line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section
from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.schemas.plugins import load_plugin
from exhibit.storage.cache import Cache, key_of

__all__ = [
    "CHARACTERS",
    "SECTION_CHARACTERS",
    "TOLERANCE",
    "Summariser",
    "SummaryCache",
    "open_summariser",
]


CHARACTERS = 150  # as the paper on summary-augmented chunks has it
SECTION_CHARACTERS = 75  # half a document's: two of them stand before a chunk
TOLERANCE = 20
"""A summary of 150 characters may have 170, one of a section 95."""


class Summariser(Protocol):
    """Documents to a line. A module in `rag/summaries/` has `open(argument, *, llm, cache, style, characters)`.

    One that asks a model may have `shown`, `tokens` and `temperature`, which are set as the config has them.
    """

    name: str
    """Way, style and model: it changes whenever a summary would."""
    alone: bool
    """Whether it needs nothing but the document: workers then do it where the document is read."""
    counts: Counter[str]
    """What became of the requests: asked, cached, cut, failed."""

    def __call__(self, document: Document, root: Section, profile: Profile) -> str:
        """Return a document's summary at the length that was set when this was opened."""

    def summarise_sections(
        self,
        document: Document,
        sections: Sequence[Section],
        profile: Profile,
        *,
        characters: int = SECTION_CHARACTERS,
    ) -> list[str]:
        """Return one line on each section, in order, about so long; a model is asked for all of them at once."""


class SummaryCache:
    """Summaries by key in one file that several processes may share; without a path, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._disk = Cache(path) if path else None
        self._kept: dict[str, str] = {}

    @staticmethod
    def key(**parts: object) -> str:
        """Return the hash of all that a summary depends on: content, style, model, length."""
        return key_of(json.dumps(parts, sort_keys=True, default=str)).hex()

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what is kept under these keys."""
        missing = [key.encode() for key in keys if key not in self._kept]
        if missing and self._disk is not None:
            self._kept |= {key.decode(): words.decode() for key, words in self._disk.get(missing).items()}
        return {key: self._kept[key] for key in keys if key in self._kept}

    def put(self, summaries: Mapping[str, str]) -> None:
        """Keep summaries, all of them or, when the machine stops, none."""
        self._kept.update(summaries)
        if summaries and self._disk is not None:
            self._disk.put({key.encode(): words.encode() for key, words in summaries.items()})


def open_summariser(config: Config, *, llm: LLM | None = None, cache: Path | None = None) -> Summariser:
    """Return the summariser that a configuration names; `cache` is the folder where answers are kept."""
    module, argument = load_plugin("exhibit.rag.summaries", config.summaries)
    opened = module.open(
        argument,
        llm=llm,
        cache=SummaryCache(cache / "summaries.sqlite" if cache else None),
        style=config.summary_style,
        characters=config.summary_characters,
    )
    for name in ("shown", "tokens", "temperature"):
        if hasattr(opened, name):  # it asks a model
            setattr(opened, name, getattr(config, f"summary_{name}"))
    return cast(Summariser, opened)
