"""Summarisers of documents and sections: each file is one summariser, selected by `--summaries`."""

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


CHARACTERS = 150  # the value of the paper on summary-augmented chunks
SECTION_CHARACTERS = 75  # half of a document's: two of them precede a chunk
TOLERANCE = 20
"""The characters by which a summary may exceed its length: a document's may have 170, a section's 95."""


class Summariser(Protocol):
    """A summariser of documents and sections. A module in `rag/summaries/` has the function `open`.

    It is called as `open(argument, *, llm, style, characters)`. If the summariser uses a model, it may have the
    attributes `shown`, `tokens` and `temperature`, which are then set to the values in the config.
    """

    name: str
    """The summariser, its style and its model. Two summarisers with one name write the same summaries."""
    alone: bool
    """Whether the summariser needs only the document: then the worker that reads the document summarises it."""

    def __call__(self, document: Document, root: Section, profile: Profile) -> str:
        """Return the summary of a document; it has about as many characters as the argument `characters` of `open`."""

    def summarise_sections(
        self,
        document: Document,
        sections: Sequence[Section],
        profile: Profile,
        *,
        characters: int = SECTION_CHARACTERS,
    ) -> list[str]:
        """Return one line of about `characters` characters on each section, in order.

        A summariser with a model sends all sections to it in one batch.
        """


def open_summariser(config: Config, *, llm: LLM | None = None) -> Summariser:
    """Return the summariser that a config names."""
    module, argument = load_plugin("exhibit.rag.summaries", config.summaries)
    opened = module.open(
        argument,
        llm=llm,
        style=config.summary_style,
        characters=config.summary_characters,
    )
    for name in ("shown", "tokens", "temperature"):
        if hasattr(opened, name):  # this summariser uses a model
            setattr(opened, name, getattr(config, f"summary_{name}"))
    return cast(Summariser, opened)
