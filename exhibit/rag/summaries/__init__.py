"""Summaries of documents and sections: one file per way to make them; its name is its name on the command line."""

from collections.abc import Sequence
from typing import Protocol, cast

from exhibit.evidence import Document
from exhibit.law.profile import Profile
from exhibit.law.structure.tree import Section
from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.runtime.plugins import load_plugin

__all__ = [
    "CHARACTERS",
    "SECTION_CHARACTERS",
    "TOLERANCE",
    "Summariser",
    "open_summariser",
]


CHARACTERS = 150  # as the paper on summary-augmented chunks has it
SECTION_CHARACTERS = 75  # half a document's: two of them stand before a chunk
TOLERANCE = 20
"""A summary of 150 characters may have 170, one of a section 95."""


class Summariser(Protocol):
    """Documents to a line. A module in `rag/summaries/` has `open(argument, *, llm, style, characters)`.

    One that asks a model may have `shown`, `tokens` and `temperature`, which are set as the config has them.
    """

    name: str
    """Way, style and model: it changes whenever a summary would."""
    alone: bool
    """Whether it needs nothing but the document: workers then do it where the document is read."""

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


def open_summariser(config: Config, *, llm: LLM | None = None) -> Summariser:
    """Return the summariser that a configuration names."""
    module, argument = load_plugin("exhibit.rag.summaries", config.summaries)
    opened = module.open(
        argument,
        llm=llm,
        style=config.summary_style,
        characters=config.summary_characters,
    )
    for name in ("shown", "tokens", "temperature"):
        if hasattr(opened, name):  # it asks a model
            setattr(opened, name, getattr(config, f"summary_{name}"))
    return cast(Summariser, opened)
