"""The corpus as citations see it: documents by their names, guides by their courts, sections by their headings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from exhibit.converters._cpr.courts import Court, guide_courts
from exhibit.converters._cpr.headings import Heading
from exhibit.converters._cpr.layout import Layout, layout_of
from exhibit.converters._cpr.names import likeness, read_name
from exhibit.converters._cpr.sources import GUIDE, Source, reference_of
from exhibit.law.names import plain

_SPACES = re.compile(r"\s+")
_LISTED = 0.96
"""Likeness to an entry of the contents: all of it, or its beginning and an ellipsis."""
_BETWEEN = re.compile(r",\s+|(?<!\s)\s++[–—>|/-]\s+|:\s+|(?<=Guide)\s+(?=\S)|(?<=Guide \d{4})\s+(?=\S)")


@dataclass
class Library:
    """Finds documents and headings by the names that citations give them; weighs nothing."""

    sources: Sequence[Source]
    _exact: dict[str, list[Source]] = field(default_factory=lambda: defaultdict(list))
    _plain: dict[str, list[Source]] = field(default_factory=lambda: defaultdict(list))
    _layouts: dict[str, Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the names."""
        for source in self.sources:
            for name in dict.fromkeys(_SPACES.sub(" ", name) for name in source.names):
                self._exact[name].append(source)
            for name in dict.fromkeys(map(plain, source.names)):
                self._plain[name].append(source)

    def layout(self, source: Source) -> Layout:
        """Return where a document's headings stand; it is read once."""
        name = source.raw.filename
        if name not in self._layouts:
            self._layouts[name] = layout_of(source)
        return self._layouts[name]

    @property
    def faults(self) -> list[str]:
        """Why headings of documents were not found, where a limit ended the search."""
        return [layout.fault for layout in self._layouts.values() if layout.fault]

    @cached_property
    def guides(self) -> list[tuple[Source, list[Court]]]:
        """The court guides, each with its courts."""
        guides = [source for source in self.sources if source.kind == GUIDE]
        return [(source, guide_courts((*source.names, self.layout(source).first_page))) for source in guides]

    @cached_property
    def courts(self) -> list[Court]:
        """The courts that have a guide here."""
        return [court for _, courts in self.guides for court in courts]

    def documents(self, name: str) -> Iterator[tuple[Literal["exact", "normalised"], Source]]:
        """Yield the documents of a name, by the surest of three rules: the name, its number, its court."""
        exact = {source.raw.filename for source in self._exact.get(name, ())}
        ways = (self._plain.get(plain(name), ()), self._by_number(name), self._by_court(name))
        for source in next(filter(None, ways), ()):
            yield ("exact" if source.raw.filename in exact else "normalised"), source

    def _by_number(self, name: str) -> list[Source]:
        """`PART 36 - OFFERS`: the number decides, if at least half of the words after it are the document's, too."""
        words = plain(name)
        number = reference_of(words)
        after = words.removeprefix(number).split()
        if not number or not after:
            return []
        return [
            source
            for source in self._plain.get(number, [])
            if 2 * len(set(after) & {w for n in source.names for w in plain(n).split()}) >= len(set(after))
        ]

    def _by_court(self, name: str) -> list[Source]:
        """`Commercial Court Guide`: the guide of that court, whatever stands around it in the file's name."""
        if not re.search(r"\bguide(?: \d{4})?$", plain(name)):
            return []
        return [source for source, courts in self.guides if any(court.named_in(name) for court in courts)]

    def headings(self, source: Source, text: str) -> Iterator[tuple[Heading | None, float, bool]]:
        """Yield headings that a text can mean, how alike they are, and whether a heading above it agrees, too."""
        layout = self.layout(source)
        any_heading = False
        whole = read_name(text)
        for heading, like in layout.alike(whole):
            any_heading = True
            yield heading, like, False
            if like == 1 and whole.number and whole.title:
                return  # its commas are its own
        for left, right in splits(text):
            for heading, like, _ in self._below(layout, left, right):
                any_heading = True
                yield heading, like, True
        if any_heading:
            return
        if len(whole.words) > 1:
            for heading in layout.titled(whole.text):
                any_heading = True
                yield heading, 1.0, False
        if (
            not any_heading
            and whole.number
            and whole.title
            and any(likeness(whole, name) > _LISTED for name in layout.listed)
        ):
            yield None, 1.0, False

    def _below(self, layout: Layout, left: str, right: str) -> Iterator[tuple[Heading, float, bool]]:
        """Yield the headings of the right text that stand below a heading of the left one."""
        above, wanted = read_name(left), read_name(right)
        if not above.number and not above.title:
            return
        parents = [heading for heading, _ in layout.alike(above) if heading.titled]
        for heading, like in layout.alike(wanted):
            inside = any(parent.start < heading.start < parent.until for parent in parents)
            # a slip in the chapter's title: its number and all of the section's name are enough
            counted = above.number and like == 1 and wanted.title and wanted.number.startswith(above.number)
            # a guide's own parts, as in "Part 3, Chapter 21 Insolvency", have no heading on the page
            division = above.kind == "part" and not above.title and like == 1 and wanted.number and wanted.title
            if inside or counted or division:
                yield heading, like, True
        if parents and wanted.title and not wanted.number:
            for parent in parents:
                for heading in layout.titled(right):
                    if parent.start < heading.start < parent.until:
                        yield heading, 1.0, True


def splits(text: str) -> list[tuple[str, str]]:
    """Return the ways to read a text as two names, the first above the second."""
    return [
        (text[: m.start()].strip(), text[m.end() :].strip()) for m in _BETWEEN.finditer(text) if m.end() < len(text)
    ]
