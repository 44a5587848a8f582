"""A document as a tree of sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exhibit.evidence import Span


@dataclass(frozen=True)
class Section:
    """A stretch of a document under a heading; the leaves of the tree tile the text."""

    span: Span
    heading: str = ""
    kind: str = "section"
    """document, recitals, definitions, article, part, section, clause, schedule, signature …"""
    level: int = 0
    children: tuple[Section, ...] = ()
    label: str = ""
    """What its heading is numbered by, `§ 12` or `Section 2.01`."""
    at: int = 0
    """Where its heading begins: the span may begin with the headings above it."""

    def walk(self) -> Iterator[Section]:
        """Yield this section and all below it, in reading order."""
        yield self
        for child in self.children:
            yield from child.walk()
