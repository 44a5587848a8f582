"""The headings of a document and the section under each: from its contents, bookmarks, numbers and shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from exhibit.converters._cpr.names import Name, read_name
from exhibit.evidence import Document
from exhibit.law.names import letters


class SourceLine(NamedTuple):
    """A line of the text, or a paragraph of a document that is still to be printed."""

    start: int
    end: int
    text: str
    page: int = 0
    marked: bool = False
    """Whether the source says that it is a heading."""


@dataclass(frozen=True)
class Heading:
    """A heading or a numbered paragraph, and where what stands under it ends."""

    start: int
    end: int
    """Where its words end."""
    name: Name
    level: float
    """Small is high: 1 a chapter or an annex, 2 `K.1`, 2.5 a title without a number, 10 a paragraph."""
    page: int = 0
    until: int = 0
    """Where its section ends."""
    last_page: int = 0


CHAPTER, SCHEDULE, BARE, PARAGRAPH = 1.0, 1.5, 2.5, 10.0  # levels: only their order counts
_MOST_LINES = 4
"""A heading's lines: the longest of the five court guides takes four."""
_LONGEST = 150  # characters: what is longer is a sentence
_PARAGRAPH = re.compile(
    r"(?:[A-Z]\.?)?\d{1,3}[A-Z]{0,2}\.\d{1,3}[A-Z]?(?:\.\d{1,3}[A-Z]?)*(?=[\s(]|[A-Z]|['‘“\"]|\.|$)"
)
_ENDS = re.compile(r"[.;:?!)\]”’\"]$|\b(?:and|or)$")
_OPEN = re.compile(
    r"[.;,:–-]$|\b(?:and|or|of|the|a|an|to|in|for|by|with|see|CPR|PD|Part|rules?|section|paragraphs?|clause|Chapter)$"
)
_LONGEST_WORD = 16  # characters at a line's end in which each of these words stands whole
_DOTTED = re.compile(r"[^\s.]*+\.")
_FOOTNOTE = re.compile(r"(?<=[a-z])\d{1,2}$")
_LISTED = re.compile(r"[\s.…]\d{1,3}$|[.…]{4}$")
_LEADERS = re.compile(r"(?<![\s.…])[\s.…]*+\d{0,3}$")


def lines_of(document: Document) -> tuple[list[SourceLine], dict[str, str], dict[int, int]]:
    """Return a file's lines, less furniture and contents; what the contents list; the number printed on each page."""
    pages = [[line for line in _split(document.text, *page.span, page.number) if line.text] for page in document.pages]
    if not pages:
        pages = [[line for line in _split(document.text, 0, len(document.text), 0) if line.text]]
    furniture, running = {span.start for span in document.furniture}, _running(pages)
    kept: list[SourceLine] = []
    entries: dict[str, str] = {}
    printed: dict[int, int] = {}
    for lines in pages:
        for line in _edges(lines):
            if _is_page_number(line) and line.page not in printed:
                printed[line.page] = int(line.text)
        if _is_contents(lines):
            entries |= _entries(lines)
        else:
            kept += [line for line in lines if line.start not in running and not _is_furniture(line, furniture)]
    return kept, entries, printed


def _is_page_number(line: SourceLine) -> bool:
    # decimal: `²` is a digit, and no number; and no page has a number of ten digits
    return line.text.isdecimal() and len(line.text) < _DIGITS


_DIGITS = 10  # of a page's number: Python refuses to read thousands of them
_FEWEST_LISTED = 5
"""Entries that make a page one of the contents, if they are half of its lines, too."""


def _is_furniture(line: SourceLine, furniture: Collection[int]) -> bool:
    # a short guide has its headings twice at a page's edge: in the contents, and where they stand
    return line.start in furniture and not read_name(line.text, loose=False).number


def _is_contents(lines: Sequence[SourceLine]) -> bool:
    listed = sum(1 for line in lines if _LISTED.search(line.text))
    return listed >= _FEWEST_LISTED and 2 * listed >= len(lines)


def _edges(lines: Sequence[SourceLine]) -> Sequence[SourceLine]:
    return [*lines[:2], *lines[2:][-2:]]


_LABEL = 14
"""Letters that may stand before a title that the running head repeats: a page's number and `Section 12`."""


def _running(pages: Sequence[Sequence[SourceLine]]) -> set[int]:
    """Return where page numbers and chapters' running heads start: a chapter has too few pages for the usual count."""
    # the first page of a chapter has its title below the running line
    tops = [[*_edges(lines), *lines[2:3]] for lines in pages]
    counted = Counter(words for lines in tops for words in {letters(line.text) for line in lines})
    repeated: set[int] = set()
    for before, lines in zip([[], *pages], pages, strict=False):
        above = "" if _is_contents(before) else letters("".join(line.text for line in before[:6]))
        edges = _edges(lines)
        numbered = any(line.text.isdigit() for line in edges)
        for at, line in enumerate(edges):
            below = letters("".join(other.text for other in lines[at + 1 : at + 6]))
            twice = at < 2 and (0 <= below.find(letters(line.text)) <= _LABEL or letters(line.text) in above)
            again = counted[letters(line.text)] > 1 and (at < 2 or not read_name(line.text, loose=False).number)
            if line.text.isdigit() or (numbered and (again or twice)):
                repeated.add(line.start)
    return repeated


def _split(text: str, start: int, end: int, page: int) -> Iterator[SourceLine]:
    for match in re.finditer(r"[^\r\n]+", text[start:end]):
        words = match.group().strip()
        at = start + match.start() + match.group().index(words) if words else start + match.start()
        yield SourceLine(at, at + len(words), words, page)


def _entries(lines: Sequence[SourceLine]) -> dict[str, str]:
    """Return what a page of contents lists; an entry may go over two lines, and its page number may be missing."""
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


def find_headings(lines: Sequence[SourceLine], known: Mapping[str, float]) -> list[Heading]:
    """Return the headings in order, each with its section; `known` are titles by their letters, each with its level."""
    headings: list[Heading] = []
    keys: set[tuple[str, str, str]] = set()
    chapter: Heading | None = None
    index = 0
    titles = _Titles(lines, known)
    while index < len(lines):
        heading, taken = _heading(lines, index, titles, headings[-1] if headings else None)
        if heading is not None:
            if heading.level <= CHAPTER and not heading.name.number:
                # the contents mean the first of this title; below an appendix it may come again
                heading = replace(heading, level=BARE + 0.1) if _key(heading) in keys else heading
            if heading.level <= CHAPTER:
                heading = _counted(heading, chapter, sure=letters(heading.name.text) in known or lines[index].marked)
                chapter = heading if heading.level <= CHAPTER else chapter
            headings.append(heading)
            keys.add(_key(heading))
        index += taken
    return _with_ends(headings, lines)


def _counted(heading: Heading, chapter: Heading | None, *, sure: bool) -> Heading:
    """Return a chapter as it is where it is sure or goes on counting; the clauses of a form in an annex are none."""
    last, this = (chapter.name.number if chapter else "0"), heading.name.number
    counted = this.isdecimal() and last.isdecimal() and max(len(this), len(last)) < _DIGITS
    goes_on = counted and int(this) == int(last) + 1
    is_chapter = sure or (goes_on and not (chapter and chapter.name.kind)) or not this.isdigit() or heading.name.kind
    return heading if is_chapter else replace(heading, level=SCHEDULE)


class _Titles:
    """Which lines begin with a title that is known; the letters of each line are taken once."""

    def __init__(self, lines: Sequence[SourceLine], known: Mapping[str, float]) -> None:
        self.known = known
        self._lines = lines
        self._letters = [letters(line.text) for line in lines] if known else []
        # a title may end in the number of a footnote
        self._ends = [letters(_FOOTNOTE.sub("", line.text)) for line in lines] if known else []

    def at(self, index: int) -> Iterator[tuple[int, str, float]]:
        """Yield each number of lines from this one on that are a title, the longest first, its words and its level."""
        for count in range(min(_MOST_LINES, len(self._letters) - index), 0, -1):
            last = index + count - 1
            level = self.known.get("".join(self._letters[index:last]) + self._ends[last])
            if level is not None:
                text = _FOOTNOTE.sub("", " ".join(line.text for line in self._lines[index : index + count]))
                if len(text) <= 2 * _LONGEST and text[-1] not in ",;":
                    yield count, text, level


def _heading(
    lines: Sequence[SourceLine], index: int, titles: _Titles, before: Heading | None
) -> tuple[Heading | None, int]:
    line = lines[index]
    follows = before is not None and index > 0 and before.level < PARAGRAPH and before.end >= lines[index - 1].end
    for count, text, level in titles.at(index):
        name = read_name(text, loose=False)
        # a word of the contents may end a sentence by chance
        if name.number or (
            text[0].isupper()
            and (text[-1] != "." or text.endswith("etc."))
            and (follows or _apart(lines, index, index + count))
        ):
            level = level_of(name, worded=_is_worded(text)) if name.number else level
            return _made(lines[index : index + count], name, level), count
    if line.marked:
        name = read_name(line.text, loose=False)
        return _made([line], name, level_of(name, worded=_is_worded(line.text)) if name.number else BARE), 1
    return _by_shape(lines, index, listed=bool(titles.known))


def _by_shape(lines: Sequence[SourceLine], index: int, *, listed: bool) -> tuple[Heading | None, int]:
    """Return a heading that no contents tell of: a number with a title, a paragraph's number, a title over a number."""
    line = lines[index]
    number = _PARAGRAPH.match(line.text)
    # the end of the line alone: a search through all of it takes most of the time
    titled = len(line.text) <= _LONGEST and not _OPEN.search(line.text, max(0, len(line.text) - _LONGEST_WORD))
    if number:
        return _numbered(lines, index, number, titled=titled), 1
    after = lines[index + 1] if index + 1 < len(lines) else None
    if titled and after is not None and _DOTTED.match(after.text):
        chapter = read_name(line.text, loose=False)
        if chapter.number and chapter.title[:1].isupper() and _starts(lines, index + 1, chapter.number):
            return _made([line], chapter, level_of(chapter, worded=_is_worded(line.text))), 1
    if titled and (word := re.match(r"(?i:annex|appendix|schedule|section)\b", line.text)):
        name = read_name(line.text, loose=False)
        fits = name.number and (name.title[:1].isupper() or not name.title) and _apart(lines, index, index + 1)
        # the contents have the annexes; a schedule may be part of one
        if fits and (not listed or word.group().lower() == "schedule"):
            return _made([line], name, SCHEDULE if listed else CHAPTER), 1
    over = after is not None and _PARAGRAPH.match(after.text)
    if over and titled and line.text[:1].isupper() and len(line.text) > 3 and _apart(lines, index, index):
        return _made([line], read_name(line.text, loose=False), BARE + 0.1), 1
    return None, 1


def _numbered(lines: Sequence[SourceLine], index: int, number: re.Match[str], *, titled: bool) -> Heading:
    """Return the heading of a line with a number in front: a title, or a paragraph."""
    line = lines[index]
    rest = line.text[number.end() :].strip(" .")
    is_title = titled and rest[:1].isupper() and len(rest) <= 90 and _starts(lines, index + 1, number.group())
    name = read_name(line.text if is_title else number.group(), loose=False)
    if is_title:
        return _made([line], name, level_of(name))
    return Heading(line.start, line.start + number.end(), name, PARAGRAPH + name.number.count("."), line.page)


def _starts(lines: Sequence[SourceLine], index: int, number: str) -> bool:
    """Whether the line after a numbered title is the first paragraph below that number, `5.9.1` below `5.9`."""
    return index < len(lines) and lines[index].text.startswith(f"{number}.")


def _apart(lines: Sequence[SourceLine], index: int, after: int) -> bool:
    """Whether lines stand by themselves: a sentence ends before them, or a numbered paragraph begins after them."""
    before = lines[index - 1] if index else None
    if after == index and len(lines[index].text.split()) > _WORDS_IN_TITLE:
        return False
    ended = before is None or bool(_ENDS.search(before.text)) or before.page != lines[index].page or before.marked
    return ended or (index < after < len(lines) and _PARAGRAPH.match(lines[after].text) is not None)


_WORDS_IN_TITLE = 12  # what is longer and stands alone is a sentence


def _is_worded(text: str) -> bool:
    return text[:1].isalpha() and not re.match(r"[A-Z][.\d]", text)


def level_of(name: Name, *, worded: bool = False) -> float:
    """Return how high a numbered heading stands: `Section 5` and `K.` above `5.9` and `K.1`."""
    if worded and name.kind in {"annex", "appendix", "schedule", ""} and "." not in name.number:
        return CHAPTER
    parts = name.number.count(".") + (2 if re.match(r"[A-Z]\d", name.number) else 1)
    return float(parts)


def _made(lines: Sequence[SourceLine], name: Name, level: float) -> Heading:
    return Heading(lines[0].start, lines[-1].end, name, level, lines[0].page)


def _with_ends(headings: Sequence[Heading], lines: Sequence[SourceLine]) -> list[Heading]:
    """Give each heading its section: up to the next one that stands as high."""
    order = {line.start: at for at, line in enumerate(lines)}
    last: dict[int, int] = {}
    open_: list[int] = []
    for at, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            last[open_.pop()] = order[heading.start] - 1
        open_.append(at)
    return _without_lists([_until(heading, lines[last.get(at, -1)]) for at, heading in enumerate(headings)])


def _until(heading: Heading, line: SourceLine) -> Heading:
    return replace(heading, until=max(heading.end, line.end), last_page=max(heading.page, line.page))


def section_at(heading: Heading, headings: Sequence[Heading], lines: Sequence[SourceLine]) -> Heading:
    """Return a heading that is none of these with its section: up to the next of them that stands as high."""
    following = [other.start for other in headings if other.start >= heading.end and other.level <= heading.level]
    before = [line for line in lines if heading.start <= line.start < min(following, default=lines[-1].end)]
    return _until(heading, before[-1])


_FEWEST_WORDS = 3
"""Characters below a heading that make it a place."""


def _without_lists(headings: Sequence[Heading]) -> list[Heading]:
    """Leave out a heading without words, or one that comes again with more below it, as in a list of appendices."""
    longest: dict[tuple[str, str, str], int] = {}
    for heading in headings:
        key = _key(heading)
        longest[key] = max(longest.get(key, 0), heading.until - heading.start)
    kept = []
    for heading in headings:
        if heading.until - heading.end < _FEWEST_WORDS:
            continue
        alone = heading.until - heading.start < heading.end - heading.start + 40
        if not (heading.name.number and alone and longest[_key(heading)] > 2 * (heading.until - heading.start)):
            kept.append(heading)
    return kept


def _key(heading: Heading) -> tuple[str, str, str]:
    return heading.name.kind, heading.name.number, letters(heading.name.title)


def whole_lines(
    lines: Sequence[SourceLine], wanted: str, index: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """Yield where one to four whole lines are these letters: the first line's place, and how many; by an index."""
    for length in range(1, len(wanted) + 1):
        for at in index.get(wanted[:length], ()):
            text = ""
            for count, line in enumerate(lines[at : at + _MOST_LINES], 1):
                text += letters(line.text)
                if text == wanted:
                    yield at, count
