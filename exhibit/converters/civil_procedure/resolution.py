"""Data for resolving the citation in a row of a table: the row's other texts as evidence, and the result."""

from dataclasses import dataclass
from typing import Literal

from exhibit.converters.civil_procedure.sources import RulesFile

Method = Literal["exact", "normalised", "section", "unresolved"]
METHODS: tuple[Method, ...] = ("exact", "normalised", "section", "unresolved")


@dataclass(frozen=True)
class RowEvidence:
    """The texts of a row other than its citation.

    These texts are evidence for or against a candidate document; they never select a document alone.
    """

    source_type: str = ""
    fields: tuple[str, ...] = ()
    """All texts of the row other than question and answer: category, court …"""
    prose: str = ""


@dataclass(frozen=True)
class CitedSection:
    """A cited section of a document: its start and end offsets, its heading as printed, its text and its page."""

    start: int
    end: int
    heading: str
    text: str
    page: int = 0


@dataclass(frozen=True)
class Resolution:
    """The result of resolving a citation: the document, the section and the method, or the reason for no result."""

    source: RulesFile | None
    how: Method
    reason: str = ""
    place: CitedSection | None = None
    score: float = 1.0
