"""The headings of a document of the corpus and the section under each, by the engine that reads every document."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exhibit.converters._cpr.names import Name, read_name
from exhibit.evidence import Document, Span
from exhibit.law.names import letters
from exhibit.law.structure import read_structure
from exhibit.law.structure.headings import FOOTNOTE
from exhibit.law.structure.lines import Outline, find_contents
from exhibit.law.structure.tree import Section


class SourceLine(NamedTuple):
    """A line of the text, or a paragraph of a document that is still to be printed."""

    start: int
    end: int
    text: str
    page: int = 0


@dataclass(frozen=True)
class Heading:
    """A heading or a numbered paragraph, and where what stands under it ends."""

    start: int
    end: int
    """Where its words end."""
    name: Name
    level: int
    """How deep it stands in the document's tree."""
    titled: bool = True
    """False for a paragraph that has a number and no title."""
    page: int = 0
    until: int = 0
    """Where its section ends."""
    last_page: int = 0


_LONGEST = 150  # characters: what is longer is a sentence
_LISTED = re.compile(r"[\s.…]\d{1,3}$|[.…]{4}$")
_LEADERS = re.compile(r"(?<![\s.…])[\s.…]*+\d{0,3}$")
_FEWEST = 3
"""Characters below a heading that make it a place."""
_DIGITS = 10  # of a page's number: Python refuses to read thousands of them


class Lines(NamedTuple):
    """A document's lines, less furniture and contents, and what its edges tell."""

    kept: Sequence[SourceLine]
    entries: Mapping[str, str]
    """What the contents list, by its letters."""
    printed: Mapping[int, int]
    """The number printed on each page."""
    running: frozenset[int]
    """Where running heads and page numbers begin."""


def lines_of(document: Document) -> Lines:
    """Return a file's lines, what its contents list, and the number printed on each page."""
    spans = [(page.span, page.number) for page in document.pages] or [(Span(0, len(document.text)), 0)]
    pages = [[line for line in _split(document.text, *span, number) if line.text] for span, number in spans]
    contents, furniture, running = find_contents(document.text), document.furniture, _running(pages)
    skipped = running | {span.start for span in furniture if not read_name(document.text[slice(*span)]).number}
    printed = {line.page: int(line.text) for page in pages for line in reversed(_edges(page)) if _is_page_number(line)}
    listed = [line for page in pages for line in page if contents.start <= line.start < contents.end]
    kept = [
        line for page in pages for line in page
        if line.start not in skipped and not contents.start <= line.start < contents.end
    ]  # fmt: skip
    return Lines(kept, _entries(listed), printed, running)


def _is_page_number(line: SourceLine) -> bool:
    # decimal: `²` is a digit, and no number; and no page has a number of ten digits
    return line.text.isdecimal() and len(line.text) < _DIGITS


def _edges(lines: Sequence[SourceLine]) -> Sequence[SourceLine]:
    return [*lines[:2], *lines[2:][-2:]]


_LABEL = 14
"""Letters that may stand before a title that the running head repeats: a page's number and `Section 12`."""


def _running(pages: Sequence[Sequence[SourceLine]]) -> frozenset[int]:
    """Return where page numbers and chapters' running heads start: a chapter has too few pages for the usual count."""
    # the first page of a chapter has its title below the running line
    tops = [[*_edges(lines), *lines[2:3]] for lines in pages]
    counted = Counter(words for lines in tops for words in {letters(line.text) for line in lines})
    repeated: set[int] = set()
    for before, lines in zip([[], *pages], pages, strict=False):
        above = letters("".join(line.text for line in before[:6]))
        edges = _edges(lines)
        numbered = any(line.text.isdigit() for line in edges)
        for at, line in enumerate(edges):
            below = letters("".join(other.text for other in lines[at + 1 : at + 6]))
            twice = at < 2 and (0 <= below.find(letters(line.text)) <= _LABEL or letters(line.text) in above)
            again = counted[letters(line.text)] > 1 and (at < 2 or not read_name(line.text, loose=False).number)
            if line.text.isdigit() or (numbered and (again or twice)):
                repeated.add(line.start)
    return frozenset(repeated)


def _split(text: str, start: int, end: int, page: int) -> Iterator[SourceLine]:
    for match in re.finditer(r"[^\r\n]+", text[start:end]):
        words = match.group().strip()
        at = start + match.start() + match.group().index(words) if words else start + match.start()
        yield SourceLine(at, at + len(words), words, page)


def _entries(lines: Sequence[SourceLine]) -> dict[str, str]:
    """Return what the contents list; an entry may go over two lines, and its page number may be missing."""
    entries: list[str] = []
    pending = ""
    for line in lines:
        words = _LEADERS.sub("", line.text)
        if pending and read_name(words, loose=False).number:
            entries.append(pending)
            pending = ""
        if _LISTED.search(line.text):
            entries.append(f"{pending} {words}".strip())
            pending = ""
        else:
            pending = f"{pending} {line.text}".strip() if len(pending) < _LONGEST else ""
    return {letters(entry): entry for entry in entries if len(letters(entry)) > 2}


def find_headings(document: Document, lines: Sequence[SourceLine], outline: Outline) -> list[Heading]:
    """Return the headings in order, each with its section; those with nothing below are a list of headings."""
    starts = [line.start for line in lines]
    sections = (section for section in read_structure(document, outline).walk() if section.heading)
    headings = (_heading(document.text, one, lines, starts) for one in sections if one.kind != "clause")
    # a rule may be one sentence, whose first words are taken for its title
    return [one for one in headings if one.until - one.end >= _FEWEST or document.text[one.until - 1] == "."]


def _heading(text: str, section: Section, lines: Sequence[SourceLine], starts: Sequence[int]) -> Heading:
    start, end = section.title
    first = lines[min(bisect_left(starts, start), len(lines) - 1)]
    last = lines[max(bisect_left(starts, section.span.end) - 1, 0)]
    titled = section.heading != section.label or section.kind != "section"
    name = read_name(FOOTNOTE.sub("", " ".join(text[start:end].split())) if titled else section.label, loose=False)
    return Heading(start, end, name, section.level, titled, first.page, max(end, last.end), max(first.page, last.page))
