"""Where the headings of a document of the corpus stand, and what each page is called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from exhibit.converters._cpr.headings import Heading, SourceLine, find_headings, lines_of, whole_lines
from exhibit.converters._cpr.names import Name, likeness, read_name
from exhibit.converters._cpr.sources import Source
from exhibit.engine import guarded
from exhibit.engine.limits import reading
from exhibit.evidence import Document
from exhibit.evidence.readers import pdf
from exhibit.law.names import letters
from exhibit.law.structure.headings import Outline
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
            yield self._section_at(Heading(first.start, last.end, read_name(words, loose=False), 0, page=first.page))

    def _section_at(self, heading: Heading) -> Heading:
        """Return a heading that is none of these with its section: up to the next that is not below the one above."""
        above = next((h for h in reversed(self.headings) if h.start < heading.start and h.titled), None)
        level = above.level if above else 1
        after = (h.start for h in self.headings if h.start >= heading.end and h.titled and h.level <= level + 1)
        end = next(after, self.lines[-1].end + 1)
        last = [line for line in self.lines if heading.start <= line.start < end][-1]
        return replace(heading, until=max(heading.end, last.end), last_page=max(heading.page, last.page))

    @cached_property
    def _line_index(self) -> dict[str, list[int]]:
        index: dict[str, list[int]] = defaultdict(list)
        for at, line in enumerate(self.lines):
            if len(line.text) <= _LONGEST_TITLE:
                index[letters(line.text)].append(at)
        return index


_CHAPTER = 3.0
"""How high a title stands that the outline has beside numbered chapters."""
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
