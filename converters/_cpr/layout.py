"""The corpus as citations see it: documents by their names, guides by their courts, sections by their headings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal

from exhibit.converters._cpr.headings import Heading, SourceLine, find_headings, lines_of
from exhibit.converters._cpr.names import Name, guide_courts, likeness, names_court, read_name
from exhibit.converters._cpr.sources import GUIDE, Source, reference_of
from exhibit.engine import guarded
from exhibit.engine.limits import reading
from exhibit.evidence import Document
from exhibit.evidence.readers import pdf
from exhibit.law.names import letters, plain
from exhibit.law.structure.lines import Outline
from exhibit.schemas.errors import DocumentError, LimitError


@dataclass(frozen=True)
class Layout:
    """A document's text, its headings, and the number printed on each page."""

    text: str
    lines: Sequence[SourceLine]
    headings: Sequence[Heading]
    listed: tuple[Name, ...] = ()
    """What its contents list, also where the page itself cannot be read."""
    offset: int = 0
    """What a page's place in the file is more than the number printed on it, for most of its pages."""
    fault: str = ""
    """Why its headings were not looked for to the end."""

    @property
    def first_page(self) -> str:
        """The words of the first page, where it is no page of contents."""
        return " ".join(line.text for line in self.lines if line.page == 1)

    def alike(self, name: Name) -> Iterator[tuple[Heading, float]]:
        """Yield the headings that a name can mean, with their likeness, in the text's order."""
        for heading in self.headings:
            other = heading.name
            same = name.number == other.number if name.number else not name.stems.isdisjoint(other.stems)
            like = likeness(name, other) if same or letters(name.text) == letters(other.text) else 0.0
            if like:
                yield heading, like

    def titled(self, title: str) -> Iterator[Heading]:
        """Yield places where a title stands as whole lines, though no number, contents or bookmark tells of it."""
        text, places = self._letters
        wanted = letters(title)
        at = text.find(wanted)
        while wanted and at >= 0:
            first, end = places.get(at), places.get(at + len(wanted))
            at = text.find(wanted, at + 1)
            if first is None or end is None or end - first > _MOST_LINES:
                continue
            lines = self.lines[first:end]
            words = " ".join(line.text for line in lines)
            if words[0].islower() or words[-1] in ".,;:":
                continue  # the end of a sentence, or a piece of a list
            name = read_name(words, loose=False)
            yield self._section_at(Heading(lines[0].start, lines[-1].end, name, 0, page=lines[0].page))

    def _section_at(self, heading: Heading) -> Heading:
        """Return a heading that is none of these with its section: up to the next that is not below the one above."""
        above = next((h for h in reversed(self.headings) if h.start < heading.start and h.titled), None)
        level = above.level if above else 1
        after = (h.start for h in self.headings if h.start >= heading.end and h.titled and h.level <= level + 1)
        end = next(after, self.lines[-1].end + 1)
        last = [line for line in self.lines if heading.start <= line.start < end][-1]
        return replace(heading, until=max(heading.end, last.end), last_page=max(heading.page, last.page))

    @cached_property
    def _letters(self) -> tuple[str, dict[int, int]]:
        """The letters of all lines, and which line begins at which of them."""
        written = [letters(line.text) for line in self.lines]
        starts = accumulate(map(len, written), initial=0)
        return "".join(written), {start: line for line, start in enumerate(starts)}


_CHAPTER = 3.0
"""How high a title stands that the outline has beside numbered chapters."""
_MOST_LINES = 4
"""A heading's lines: the longest of the five court guides takes four."""
_SHORT = 50_000
"""Characters of a text that is here already: even one made of nothing but headings takes a fifth of a second."""


def layout_of(source: Source) -> Layout:
    """Return the layout of a document, from its file or from what will be printed of it; a long one's in a worker."""
    if source.blocks and len(source.raw.text or "") <= _SHORT:
        return read_layout(source)
    try:
        # its markup is not looked at, and stays here
        return guarded(read_layout, replace(source, raw=replace(source.raw, html=None)))
    except LimitError as error:
        return Layout("", (), (), fault=str(error))
    except DocumentError:
        return Layout("", (), ())  # the conversion reads it next, and reports it


def read_layout(source: Source) -> Layout:
    """Return the layout of a document, wherever it is called."""
    if source.blocks:
        text = source.raw.text or ""
        marked = {letters(block.text): 0.0 for block in source.blocks if block.style == "h2"}
        lines, shown = list(_lines_in(source)), Document(source.raw.filename, text)
        return Layout(text, lines, find_headings(shown, lines, Outline(marked)))
    document = source.document()
    kept, entries, printed, running = lines_of(document)
    known = dict.fromkeys(entries, 0.0) | (_bookmarked(source.raw.path) if source.raw.path else {})
    known = {title: rank for title, rank in known.items() if title not in {"", "contents"}}
    offsets = sorted(page - number for page, number in printed.items())
    listed = tuple(read_name(entry, loose=False) for entry in entries.values())
    offset = offsets[len(offsets) // 2] if offsets else 0
    return Layout(document.text, kept, find_headings(document, kept, Outline(known, running)), listed, offset)


def _lines_in(source: Source) -> Iterator[SourceLine]:
    at = 0
    for block in source.blocks:
        if block.style != "h1":
            yield SourceLine(at, at + len(block.text), block.text)
        at += len(block.text) + len("\n\n")


def _bookmarked(path: Path) -> dict[str, float]:
    """Return the titles that a PDF's own outline lists, with their levels: those beside chapters are chapters."""
    listed = read_outline(path)
    numbered = [depth for title, depth in listed if read_name(title, loose=False).number]
    highest = min(numbered, default=-1)
    return {letters(title): _CHAPTER if depth <= highest else 0.0 for title, depth in reversed(listed)}


def read_outline(path: Path) -> list[tuple[str, int]]:
    """Return the titles of a PDF's outline with their depths; empty where it is damaged: a help, not a need."""
    try:
        with reading(str(path), path.stat().st_size, pdf.MEMORY):
            return pdf.outline(path)
    except LimitError:
        raise
    except (DocumentError, OSError):
        return []


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
    def guides(self) -> list[tuple[Source, dict[str, set[str]]]]:
        """The court guides, each with its courts and their initials."""
        guides = [source for source in self.sources if source.kind == GUIDE]
        return [(source, guide_courts((*source.names, self.layout(source).first_page))) for source in guides]

    @cached_property
    def courts(self) -> dict[str, set[str]]:
        """The courts that have a guide here."""
        return {court: short for _, courts in self.guides for court, short in courts.items()}

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
        return [source for source, courts in self.guides if names_court(name, courts)]

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
