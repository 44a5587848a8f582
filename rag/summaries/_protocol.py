"""What a summariser does, whoever writes the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section

CHARACTERS = 150  # as the paper on summary-augmented chunks has it
SECTION_CHARACTERS = 75  # half a document's: two of them stand before a chunk
TOLERANCE = 20
"""A summary of 150 characters may have 170, one of a section 95."""


Described = tuple[Document, Section, Profile]
"""A document with its tree and its profile: what a summary is made from."""


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

    def summarise(
        self,
        document: Document,
        root: Section,
        profile: Profile,
        *,
        characters: int = CHARACTERS,
        limit: int = CHARACTERS + TOLERANCE,
    ) -> str:
        """Return one line on a document, about `characters` long and never over the limit."""

    def summarise_documents(
        self,
        items: Sequence[Described],
        *,
        characters: int = CHARACTERS,
        limit: int = CHARACTERS + TOLERANCE,
    ) -> list[str]:
        """Return one line on each document, in order; a model is asked for all of them at once."""

    def summarise_sections(
        self,
        document: Document,
        sections: Sequence[Section],
        profile: Profile,
        *,
        characters: int = SECTION_CHARACTERS,
        limit: int = SECTION_CHARACTERS + TOLERANCE,
    ) -> list[str]:
        """Return one line on each section, in order."""
