"""Splits a document into lines, without running heads, page numbers and the table of contents."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from exhibit.converters.civil_procedure.names import read_name
from exhibit.evidence import Document, Span
from exhibit.law.names import keep_letters
from exhibit.law.structure.lines import find_contents


class SourceLine(NamedTuple):
    """A line of an extracted text, or a paragraph of a document that has no file yet and will be printed to PDF."""

    start: int
    end: int
    text: str
    page: int = 0


_LONGEST = 150  # characters: a longer line is a sentence
_LISTED = re.compile(r"[\s.…]\d{1,3}$|[.…]{4}$")
_LEADERS = re.compile(r"(?<![\s.…])[\s.…]*+\d{0,3}$")
_DIGITS = 10  # digits of a page number: Python refuses to parse thousands


class LayoutLines(NamedTuple):
    """The lines of a document without running heads, page numbers and table of contents.

    Other fields hold the entries of the contents, the printed page numbers and the offsets of running heads.
    """

    kept: Sequence[SourceLine]
    entries: Mapping[str, str]
    """The entries of the contents, by their letters."""
    printed: Mapping[int, int]
    """The number printed on each page."""
    running: frozenset[int]
    """The offsets of running heads and page numbers."""


def lines_of(document: Document) -> LayoutLines:
    """Split a document into lines, and separate running heads, page numbers and the table of contents from them."""
    spans = [(page.span, page.number) for page in document.pages] or [(Span(0, len(document.text)), 0)]
    pages = [[line for line in _split(document.text, *span, number) if line.text] for span, number in spans]
    contents, furniture, running = find_contents(document.text), document.furniture, _find_running(pages)
    skipped = running | {span.start for span in furniture if not read_name(document.text[slice(*span)]).number}
    printed = {
        line.page: int(line.text) for page in pages for line in reversed(_find_edges(page)) if _is_page_number(line)
    }
    listed = [line for page in pages for line in page if contents.start <= line.start < contents.end]
    kept = [
        line for page in pages for line in page
        if line.start not in skipped and not contents.start <= line.start < contents.end
    ]  # fmt: skip
    return LayoutLines(kept, _read_entries(listed), printed, running)


def _is_page_number(line: SourceLine) -> bool:
    # isdecimal: `²` is a digit, but not a number; and no page number has ten digits
    return line.text.isdecimal() and len(line.text) < _DIGITS


def _find_edges(lines: Sequence[SourceLine]) -> Sequence[SourceLine]:
    return [*lines[:2], *lines[2:][-2:]]


_LABEL = 14
"""Most letters before a title that the running head repeats: a page number and `Section 12`."""


def _find_running(pages: Sequence[Sequence[SourceLine]]) -> frozenset[int]:
    """Return the offsets of page numbers and running heads.

    On a page with a printed number, a line at the edge of the page that occurs twice counts as a running head,
    because a chapter may have only a few pages.
    """
    # the first page of a chapter has its title below the running head
    tops = [[*_find_edges(lines), *lines[2:3]] for lines in pages]
    counted = Counter(words for lines in tops for words in {keep_letters(line.text) for line in lines})
    repeated: set[int] = set()
    for before, lines in zip([[], *pages], pages, strict=False):
        above = keep_letters("".join(line.text for line in before[:6]))
        edges = _find_edges(lines)
        numbered = any(line.text.isdigit() for line in edges)
        for at, line in enumerate(edges):
            below = keep_letters("".join(other.text for other in lines[at + 1 : at + 6]))
            twice = at < 2 and (0 <= below.find(keep_letters(line.text)) <= _LABEL or keep_letters(line.text) in above)
            again = counted[keep_letters(line.text)] > 1 and (at < 2 or not read_name(line.text, loose=False).number)
            if line.text.isdigit() or (numbered and (again or twice)):
                repeated.add(line.start)
    return frozenset(repeated)


def _split(text: str, start: int, end: int, page: int) -> Iterator[SourceLine]:
    for match in re.finditer(r"[^\r\n]+", text[start:end]):
        words = match.group().strip()
        at = start + match.start() + match.group().index(words) if words else start + match.start()
        yield SourceLine(at, at + len(words), words, page)


def _read_entries(lines: Sequence[SourceLine]) -> dict[str, str]:
    """Return the entries of a table of contents, as a mapping from an entry's letters and digits to its text.

    An entry may take two lines, and its page number may be missing.
    """
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
    return {keep_letters(entry): entry for entry in entries if len(keep_letters(entry)) > 2}
