"""Where the headings of a document of the corpus stand, and what each page is called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from exhibit.converters._cpr.headings import (
    BARE,
    CHAPTER,
    Heading,
    SourceLine,
    find_headings,
    lines_of,
    section_at,
    whole_lines,
)
from exhibit.converters._cpr.names import Name, likeness, read_name
from exhibit.converters._cpr.sources import Source
from exhibit.engine import guarded
from exhibit.engine.limits import reading
from exhibit.evidence.readers import pdf
from exhibit.law.names import letters
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
        keys = [f"={letters(name.text)}", f"#{name.number}"] if name.number else [f"={letters(name.text)}"]
        if not name.number:
            keys += [word[:_STEM] for word in name.words]
        for at in sorted({at for key in keys for at in self._index.get(key, ())}):
            like = likeness(name, self.headings[at].name)
            if like:
                yield self.headings[at], like

    @cached_property
    def _index(self) -> dict[str, list[int]]:
        """Headings by their letters, by their number, and by how their words begin."""
        index: dict[str, list[int]] = defaultdict(list)
        for at, heading in enumerate(self.headings):
            name = heading.name
            for key in {f"={letters(name.text)}", f"#{name.number}", *(word[:_STEM] for word in name.words)}:
                index[key].append(at)
        return index

    def titled(self, title: str) -> Iterator[Heading]:
        """Yield places where a title stands as whole lines, though no number, contents or bookmark tells of it."""
        wanted = letters(title)
        for index, count in whole_lines(self.lines, wanted, self._line_index):
            first, last = self.lines[index], self.lines[index + count - 1]
            words = " ".join(line.text for line in self.lines[index : index + count])
            if words[0].islower() or words[-1] in ".,;:":
                continue  # the end of a sentence, or a piece of a list
            heading = Heading(first.start, last.end, read_name(words, loose=False), BARE + 0.2, first.page)
            yield section_at(heading, self.headings, self.lines)

    @cached_property
    def _line_index(self) -> dict[str, list[int]]:
        index: dict[str, list[int]] = defaultdict(list)
        for at, line in enumerate(self.lines):
            if len(line.text) <= _LONGEST_TITLE:
                index[letters(line.text)].append(at)
        return index


_STEM = 3
"""Letters: a slip of the pen is seldom in the first three of every word of a title."""
_LONGEST_TITLE = 200  # characters: titles of two lines included
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
        lines = list(_lines_in(source))
        return Layout(source.raw.text or "", lines, find_headings(lines, {}))
    document = source.document()
    lines, entries, printed = lines_of(document)
    known = dict.fromkeys(entries, BARE) | (_bookmarked(source.raw.path) if source.raw.path else {})
    known.pop("", None)
    known.pop("contents", None)
    offsets = sorted(page - number for page, number in printed.items())
    listed = tuple(read_name(entry, loose=False) for entry in entries.values())
    offset = offsets[len(offsets) // 2] if offsets else 0
    return Layout(document.text, lines, find_headings(lines, known), listed, offset)


def _lines_in(source: Source) -> Iterator[SourceLine]:
    at = 0
    for block in source.blocks:
        if block.style != "h1":
            yield SourceLine(at, at + len(block.text), block.text, marked=block.style == "h2")
        at += len(block.text) + len("\n\n")


def _bookmarked(path: Path) -> dict[str, float]:
    """Return the titles that a PDF's own outline lists, with their levels: those beside chapters are chapters."""
    listed = read_outline(path)
    numbered = [depth for title, depth in listed if read_name(title, loose=False).number]
    highest = min(numbered, default=-1)
    return {letters(title): CHAPTER if depth <= highest else BARE + depth / 100 for title, depth in reversed(listed)}


def read_outline(path: Path) -> list[tuple[str, int]]:
    """Return the titles of a PDF's outline with their depths; empty where it is damaged: a help, not a need."""
    try:
        with reading(str(path), path.stat().st_size, pdf.MEMORY):
            return pdf.outline(path)
    except LimitError:
        raise
    except (DocumentError, OSError):
        return []
