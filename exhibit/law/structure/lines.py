"""A document's lines without running heads and table of contents, and the outline of its headings."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import compress, islice
from typing import NamedTuple

from exhibit.evidence import Document, Span
from exhibit.evidence.read import ending_of
from exhibit.evidence.readers.pdf import LineType, find_line_types
from exhibit.storage.locations import fetch_file

_NUMBERED_PART = re.compile(r"(?i)(?:article|part|chapter|section|schedule)\s+(?:\d{1,2}|[ivxl]{1,6})[.:]?")
_RULE = re.compile(r"[\W_]{3,}")
_PAGE_MARK = re.compile(r"(?i)(?:page(?=\s))?[-–—\s]*+(?:\d{1,4}|[ivxl]{1,7})[-–—\s]*+(?:of\s+\d+)?")
# The text before a heading inside a line: the last character of the previous sentence, and spaces.
_INLINE = re.compile(
    r"[.;:”\")A-Z](?:\s+(?=(?:Section|SECTION)\s\d{1,2}\.\d{1,2}\.?\s+[A-Z“\"]|"
    r"(?:ARTICLE|EXHIBIT|SCHEDULE|ANNEX)\s[\dA-Z]{1,5}\b)|(?<=[A-Z]{3})\s+(?=\d{1,2}\.\d{1,2}\.?\s+[A-Z][a-z])"
    r"|(?<=[.;:”\")])\s+(?=\d{1,2}\.\d{1,2}\.?\s+[A-Z“\"]|\d{1,2}\.\s+[A-Z]|\([a-z]{1,2}\)\s+[A-Z“\"]|\(a\)\s|"
    r"RECITALS\b|WHEREAS\b|NOW,? THEREFORE|IN WITNESS WHEREOF))"
)
# The text before the first item of a list after a title: `4.1 Conduct of Business. (a) The Company …`.
_FIRST_ITEM = re.compile(r"[.:]\s+(?=\([a1A]\)(?:\s|$))")
_ENDS = re.compile(r"[.;:!?][”“\"’')\]]*$|[;,] (?:and|or)$")
_CONTENTS = re.compile(r"(?im)^[^\S\n]*(?:table\s+of\s+contents|contents|index)\b")
# The page number at the end of an entry in a table of contents.
_ENTRY = re.compile(
    r"(?i)(?<=[\s.…])(\d{1,3})(?=[^\S\n]*(?:\n|$)|\s{2}|\s+(?:section|article|exhibit|schedule|annex|appendix|part|"
    r"chapter|\d{1,3}\.)\b)"
)
_NUMBERED = re.compile(r"(?i)\b(?:article|section|chapter|part|exhibit|schedule|annex|appendix|page)\s+$")
_LEADERS = re.compile(r"(?:\.[ \xa0]?){4,}\s*\d{0,4}$|…{2,}\s*\d{0,4}$|[\t ]{2,}\d{1,3}$")
_LINE = re.compile(r"(?m)^.*$")
_STRETCH = re.compile(r"[^ \n]+(?: {1,2}[^ \n]+)*")  # text without a wide space, which may separate paragraphs
_MAX_WRAPPED_CHARS = 160
"""If most lines are shorter than this, lines are wrapped at the margin; otherwise each line is a paragraph."""
_MAX_LINE_CHARS = 800  # a longer line contains whole sections: some text files have lost the ends of their paragraphs
_TITLE_CHARS = 140  # characters in which a title ends and its list begins
_SHORT_LINE_SHARE = 0.6  # share of the usual width: a shorter line ends a paragraph


class Line(NamedTuple):
    start: int
    end: int
    text: str
    gap: bool  # whether a blank line, a rule or a wide space separates it from the line before
    fresh: bool  # whether the line before ended a sentence, a list item or a paragraph
    before: str  # the line before; empty for the first line


def read_lines(document: Document, *, paged: bool = True) -> list[Line]:
    pieces = list(_split_pieces(document))
    lengths = sorted(piece.end - piece.start for piece in pieces if piece.end > piece.start)
    full = lengths[len(lengths) * 9 // 10] if lengths else 0
    width = full if full <= _MAX_WRAPPED_CHARS else 0
    contents = find_contents(document.text) if paged else Span(0, 0)
    lines: list[Line] = []
    before, gap = "", True
    for piece in pieces:
        text = document.text[piece.start : piece.end].strip()
        listed = contents.start <= piece.start < contents.end
        if not text or (_RULE.fullmatch(text) and not listed):
            gap = True
            continue
        if listed or _PAGE_MARK.fullmatch(text):
            continue
        gap = gap or piece.wide
        ended = not width or len(before) < _SHORT_LINE_SHARE * width or _ENDS.search(before[-12:]) is not None
        lines.append(Line(piece.start, piece.start + len(text), text, gap, gap or ended, before))
        before, gap = text, False
    return lines


class _Piece(NamedTuple):
    start: int
    end: int
    wide: bool


def _split_pieces(document: Document) -> Iterator[_Piece]:
    """Yield the ranges of text between line ends, wide spaces and headings; a blank line gives an empty range."""
    text = document.text
    flat = text.replace("\t", " ").replace("\xa0", " ")
    texts = [text[start:end].strip() for start, end in document.furniture]
    counts = Counter(texts)
    # a heading may look like a running head, but it does not recur
    repeated = [counts[words] > 1 or not _NUMBERED_PART.fullmatch(words) for words in texts]
    furniture = iter([*compress(document.furniture, repeated), Span(len(text), len(text))])
    skip = next(furniture)
    for line in _LINE.finditer(flat):
        start, end = line.span()
        while skip.end <= start < len(text):
            skip = next(furniture)
        if skip.start <= start < skip.end:
            continue
        worded = False
        for stretch in _STRETCH.finditer(flat, start, end):
            if words := text[slice(*stretch.span())].lstrip():
                yield from _split_at_headings(text, stretch.end() - len(words), stretch.end(), wide=worded)
                worded = True
        if not worded:
            yield _Piece(start, start, False)


def _split_at_headings(text: str, start: int, end: int, *, wide: bool) -> Iterator[_Piece]:
    """Yield the pieces of a line, cut where a heading or the first item of a list may begin."""
    long = end - start > _MAX_LINE_CHARS
    pattern, last = (_INLINE, end) if long else (_FIRST_ITEM, start + _TITLE_CHARS)
    for mark in pattern.finditer(text, start, last):
        if mark.end() >= end:
            break
        yield _Piece(start, mark.start() + 1, wide)
        start, wide = mark.end(), False
    yield _Piece(start, end, wide)


_CONTENTS_CHARS = 60_000  # characters at the start of a document that contain its table of contents
_MAX_ENTRY_CHARS = 320  # most characters between two entries of one table
_MAX_PAGES_BETWEEN = 40  # pages between two entries: a long annex may lie between them
_MAX_CONTENTS_WORDS = 20  # most examined occurrences of the word `contents`: a hostile text may be full of it


def find_contents(text: str) -> Span:
    """Return the span of the table of contents, whose entries have rising page numbers; empty if there is none."""
    for mark in islice(_CONTENTS.finditer(text, 0, _CONTENTS_CHARS), _MAX_CONTENTS_WORDS):
        page, entries, end = 0, 0, mark.end()
        entry = _ENTRY.search(text, end, end + _MAX_ENTRY_CHARS)
        while entry:
            number = int(entry[1])
            named = _NUMBERED.search(text, max(mark.end(), entry.start() - 12), entry.start())
            if not named and page <= number <= page + _MAX_PAGES_BETWEEN:
                page, entries, end = number, entries + 1, entry.end()
            entry = _ENTRY.search(text, entry.end(), end + _MAX_ENTRY_CHARS)
        if entries >= 3:
            return Span(mark.start(), end)
    return Span(0, 0)


def is_entry(text: str) -> bool:
    return _LEADERS.search(text[-60:]) is not None


class Outline(NamedTuple):
    heights: Mapping[int, LineType] = {}  # the larger or bolder fonts, by the line's offset

    least: float = 0.0  # the least font height of a heading without a number
    rules: bool = False  # whether each decimal number at the start of a paragraph is a label

    @property
    def known(self) -> bool:
        return bool(self.heights or self.rules)


NO_OUTLINE = Outline()
# least ratio of a heading's font height to the text's: it finds 98.8% of 808 bookmarks of four court guides; without
_HEADING_HEIGHT = 1.15
# fonts, 70.9% are found
_MIN_LARGE_LINES = 3  # lines: a title page alone does not show the fonts of headings


def make_typed_outline(document: Document) -> Outline:
    """Return an outline of a PDF's lines whose font is larger or bolder than that of its text."""
    if document.path is None or ending_of(document.path) != ".pdf":
        return NO_OUTLINE
    with fetch_file(document.path) as local_path:
        types = find_line_types(replace(document, path=local_path)) if local_path.is_file() else {}
    heights: Counter[LineType] = Counter()
    for at, kind in types.items():
        heights[kind] += max(document.text.find("\n", at) - at, 0)
    if not heights:
        return NO_OUTLINE
    body = heights.most_common(1)[0][0]
    least = _HEADING_HEIGHT * body.height
    large = {at: kind for at, kind in types.items() if kind.height >= least or kind.bold > body.bold}
    if len(large) < _MIN_LARGE_LINES:
        return NO_OUTLINE
    # if headings are larger, a merely bold line is a numbered heading or an emphasised word
    larger = sum(kind.height >= least for kind in large.values()) >= _MIN_LARGE_LINES
    return Outline(heights=large, least=least if larger else 0.0)
