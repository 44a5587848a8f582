"""A document's lines without page furniture and contents, and the outline of its headings."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from exhibit.evidence import Document, Span
from exhibit.evidence.read import ending_of
from exhibit.evidence.readers.pdf import LineType, line_types
from exhibit.storage.locations import fetch_file

_NUMBERED_PART = re.compile(r"(?i)(?:article|part|chapter|section|schedule)\s+(?:\d{1,2}|[ivxl]{1,6})[.:]?")
_LABELLED = re.compile(r"(?:[A-Z]\w+ )?(?:\d[\d.]*|[A-Z]\b)[.:]?\s+[A-Z]")
_RULE = re.compile(r"[\W_]{3,}")
_PAGE_MARK = re.compile(r"(?i)(?:page(?=\s))?[-–—\s]*+(?:\d{1,4}|[ivxl]{1,7})[-–—\s]*+(?:of\s+\d+)?")
# What stands before a heading inside a line: the last sign of what ends there, and spaces.
_INLINE = re.compile(
    r"[.;:”\")A-Z](?:\s+(?=(?:Section|SECTION)\s\d{1,2}\.\d{1,2}\.?\s+[A-Z“\"]|"
    r"(?:ARTICLE|EXHIBIT|SCHEDULE|ANNEX)\s[\dA-Z]{1,5}\b)"
    r"|(?<=[A-Z]{3})\s+(?=\d{1,2}\.\d{1,2}\.?\s+[A-Z][a-z])"
    r"|(?<=[.;:”\")])\s+(?=\d{1,2}\.\d{1,2}\.?\s+[A-Z“\"]|\d{1,2}\.\s+[A-Z]|\([a-z]{1,2}\)\s+[A-Z“\"]|\(a\)\s|"
    r"RECITALS\b|WHEREAS\b|NOW,? THEREFORE|IN WITNESS WHEREOF))"
)
# The same before the first item of a list that follows a title: `4.1 Conduct of Business. (a) The Company …`.
_FIRST_ITEM = re.compile(r"[.:]\s+(?=\([a1A]\)(?:\s|$))")
_ENDS = re.compile(r"[.;:!?][”“\"’')\]]*$|[;,] (?:and|or)$")
_CONTENTS = re.compile(r"(?im)^[^\S\n]*(?:table\s+of\s+contents|contents|index)\b")
# A page number at the end of an entry.
_ENTRY = re.compile(
    r"(?i)(?<=[\s.…])(\d{1,3})(?=[^\S\n]*(?:\n|$)|\s{2}|\s+(?:section|article|exhibit|schedule|annex|appendix|"
    r"part|"
    r"chapter|\d{1,3}\.)\b)"
)
_NUMBERED = re.compile(r"(?i)\b(?:article|section|chapter|part|exhibit|schedule|annex|appendix|page)\s+$")
_LEADERS = re.compile(r"(?:\.[ \xa0]?){4,}\s*\d{0,4}$|…{2,}\s*\d{0,4}$|[\t ]{2,}\d{1,3}$")
_SPACES = " \t\xa0"
_WIDE = 3 * " "
"""What parts two pieces of a line: some text files part paragraphs by wide spaces only."""
_WRAPPED = 160
"""Where most lines are shorter than this, a line's end is the margin's doing; where not, it ends a paragraph."""
_RUN_ON = 800
"""A line longer than this holds whole sections: some text files have lost the ends of their paragraphs."""
_TITLE = 140  # characters in which a title ends and its list begins
_SHORT = 0.6  # of the usual width: a line that ends before it ends a paragraph


class Line(NamedTuple):
    """A line that may be a heading, with facts about the line before it."""

    start: int
    end: int
    text: str
    gap: bool
    """A blank line, a rule or a wide space parts it from the line before."""
    fresh: bool
    """The line before ended a sentence, a list item or a paragraph."""
    before: str
    """The line before, empty at the beginning."""


def read_lines(document: Document, *, listed: bool = False, paged: bool = True) -> list[Line]:
    """Return the lines in which headings can stand, in order.

    `listed` says that its headings are known by a list; only a `paged` text can have a table of contents.
    """
    pieces = list(_pieces(document, listed))
    width = full_width(piece.end - piece.start for piece in pieces)
    contents = find_contents(document.text) if paged else Span(0, 0)
    lines: list[Line] = []
    before, gap = "", True
    for piece in pieces:
        text = document.text[piece.start : piece.end].strip()
        if not text:
            gap = True
            continue
        # where headings are listed, running heads and page numbers are known, too: a year may end a title
        marked = not listed and _PAGE_MARK.fullmatch(text)
        if marked or contents.start <= piece.start < contents.end:
            continue
        if _RULE.fullmatch(text):
            gap = True
            continue
        gap = gap or piece.wide
        ended = not width or len(before) < _SHORT * width or _ENDS.search(before[-12:]) is not None
        lines.append(Line(piece.start, piece.start + len(text), text, gap, gap or ended, before))
        before, gap = text, False
    return lines


def read_opening(document: Document, characters: int) -> list[Line]:
    """Return the lines of a document's beginning; a cover page that is printed twice is no furniture here."""
    return read_lines(replace(document, text=document.text[:characters], pages=()))


class _Piece(NamedTuple):
    start: int
    end: int
    wide: bool


def _pieces(document: Document, listed: bool) -> Iterator[_Piece]:
    """Yield every stretch between line ends or wide spaces; an empty one for a blank line; no furniture."""
    text = document.text
    flat = text.replace("\t", " ").replace("\xa0", " ")
    furniture = iter([*_furniture(document, listed), Span(len(text), len(text))])
    skip = next(furniture)
    for start, end in _line_spans(text):
        while skip.end <= start < len(text):
            skip = next(furniture)
        if skip.start <= start < skip.end:
            continue
        worded = False
        for first, last in _stretches(text, flat, start, end):
            yield from _at_headings(text, first, last, wide=worded)
            worded = True
        if not worded:
            yield _Piece(start, start, False)


def _line_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start of each line and the end of its words, before trailing spaces."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, start + len(text[start:end].rstrip(_SPACES))
        start = end + 1
    yield start, len(text)


def _stretches(text: str, flat: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a line that wide spaces part; `flat` is the text with spaces alone for tabs and such."""
    while start < end:
        wide = flat.find(_WIDE, start, end)
        last = end if wide < 0 else wide
        words = text[start:last].lstrip()
        if words:
            yield last - len(words), last
        start = last + len(_WIDE)


def _furniture(document: Document, listed: bool) -> list[Span]:
    """Return the page furniture but for headings that start a page: those stand once, running heads recur."""
    texts = [document.text[start:end].strip() for start, end in document.furniture]
    counts = Counter(texts)
    pairs = zip(document.furniture, texts, strict=True)
    return [
        span
        for span, text in pairs
        if (counts[text] > 1 or not _NUMBERED_PART.fullmatch(text))
        # a short guide has its headings twice at a page's edge: in the contents, and where they stand
        and not (listed and _LABELLED.match(text))
    ]


def _at_headings(text: str, start: int, end: int, *, wide: bool) -> Iterator[_Piece]:
    """Yield a stretch, cut where a heading or a list's first item may begin inside it.

    A line that runs on for whole sections is cut before each numbered heading; any other only after its title.
    """
    if end - start > _RUN_ON:
        marks = _INLINE.finditer(text, start, end)
    elif text.find("(", start, start + _TITLE) >= 0:
        marks = _FIRST_ITEM.finditer(text, start, start + _TITLE)
    else:
        marks = iter(())
    for mark in marks:
        if mark.end() >= end:
            break
        yield _Piece(start, mark.start() + 1, wide)
        start, wide = mark.end(), False
    yield _Piece(start, end, wide)


def full_width(lengths: Iterator[int]) -> int:
    """Return the length of a full line; 0 if lines are not wrapped at a margin."""
    ordered = sorted(length for length in lengths if length)
    if not ordered:
        return 0
    width = ordered[min(len(ordered) * 9 // 10, len(ordered) - 1)]
    return width if width <= _WRAPPED else 0


# ---------------------------------------------------------------- the table of contents

_NEAR = 60_000  # characters: a table of contents stands in front
_REACH = 320
"""Entries of one table are not farther apart than this."""
_JUMP = 40  # pages between two entries: a long annex lies between
_MARKS = 20  # places where the word stands: a text full of it must not take for ever


_LEADING = frozenset(".… \xa0")


def find_contents(text: str) -> Span:
    """Return the span of the table of contents, empty if there is none: entries with rising page numbers."""
    for mark in islice(_CONTENTS.finditer(text, 0, _NEAR), _MARKS):
        page, entries, end = 0, 0, mark.end()
        entry = _ENTRY.search(text, end, end + _REACH)
        while entry:
            number = int(entry[1])
            named = _NUMBERED.search(text, max(mark.end(), entry.start() - 12), entry.start())
            if not named and page <= number <= page + _JUMP:
                page, entries, end = number, entries + 1, entry.end()
            entry = _ENTRY.search(text, entry.end(), end + _REACH)
        if entries >= 3:
            return Span(mark.start(), end)
    return Span(0, 0)


def is_entry(text: str) -> bool:
    """Return whether a line leads to a page number, as an entry of a table of contents does."""
    last = text[-1:]
    if last == "." and text[-2:-1] not in _LEADING:
        return False  # a sentence: most lines end so, or in a letter
    return (last in _LEADING or last.isdecimal() or last.isspace()) and _LEADERS.search(text[-60:]) is not None


# ---------------------------------------------------------------- what is known before lines are read


class Outline(NamedTuple):
    """The headings that are known before lines are read: from the contents, bookmarks or fonts."""

    titles: Mapping[str, float] = {}
    """By the letters of each title: how high it stands, 0 where its number or its place tells."""
    skipped: Collection[int] = ()
    """Where lines begin that are none of the text: running heads."""
    heights: Mapping[int, LineType] = {}
    """By where lines begin that are set larger than the text, or bolder: their type."""

    least: float = 0.0
    """How high the type of a heading without a number must be."""
    rules: bool = False
    """Whether the text is a set of rules: each decimal number at a paragraph's beginning is that of a paragraph."""

    @property
    def known(self) -> bool:
        """Whether the outline contains any heading."""
        return bool(self.titles or self.heights or self.rules)


NO_OUTLINE = Outline()
_LARGER = 1.15  # times the type's height: finds 98.8% of 808 bookmarks of four court guides, words alone 70.9%
_FEWEST_LARGE = 3  # lines: a title page alone tells nothing of the rest


def typed_outline(document: Document) -> Outline:
    """Return which lines of a PDF are set larger or bolder than its text, as headings are; empty where none are."""
    if document.path is None or ending_of(document.path) != ".pdf":
        return NO_OUTLINE
    with fetch_file(document.path) as here:
        types = line_types(replace(document, path=here)) if here.is_file() else {}
    ends = {at: document.text.find("\n", at) for at in types}
    heights: Counter[LineType] = Counter()
    for at, kind in types.items():
        heights[kind] += max(ends[at] - at, 0)
    if not heights:
        return NO_OUTLINE
    body = heights.most_common(1)[0][0]
    least = _LARGER * body.height
    large = {at: one for at, one in types.items() if one.height >= least or one.bold > body.bold}
    if len(large) < _FEWEST_LARGE:
        return NO_OUTLINE
    # where headings are larger, what is only bold is a heading with a number, or a word of weight
    larger = sum(one.height >= least for one in large.values()) >= _FEWEST_LARGE
    return Outline(heights=large, least=least if larger else 0.0)
