"""The headings of legal texts: numbered, lettered, worded ("ARTICLE IV"), shouted, and titles over a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from exhibit.evidence import Document
from exhibit.law.companies import ends_in_form
from exhibit.law.language import system_of
from exhibit.law.names import letters
from exhibit.law.patterns import Patterns
from exhibit.law.structure.labels import (
    SMALL,
    Label,
    drop_stray,
    heads_nothing,
    is_prose,
    is_shout,
    is_title,
    is_title_case,
    read_label,
    run_in,
)
from exhibit.law.structure.lines import NO_OUTLINE, Line, Outline, is_entry, read_lines


@dataclass(frozen=True)
class Heading:
    """A heading, where it stands, and how high."""

    start: int
    end: int
    """Where its words end and what it heads begins."""
    label: str
    title: str
    style: str
    """Headings of one style are counted together: `decimal 2` for 1.1, `(a)`, `article` …"""
    value: tuple[int, ...]
    """What it counts to, (4,) for IV and (2, 1) for 2.01."""
    rank: float
    """How high it stands where nothing else tells: 1 a schedule, 4 an article, 6 `1.`, 9 and more a clause."""
    kind: str
    sure: bool = True
    """False for a number that is a heading only where it continues a count."""

    @property
    def text(self) -> str:
        """The heading as one line."""
        return f"{self.label} {self.title}".strip()


def find_headings(document: Document, outline: Outline = NO_OUTLINE) -> list[Heading]:
    """Return the headings in order; entries of a table of contents and page furniture are none."""
    lines = [line for line in read_lines(document, listed=bool(outline.titles)) if line.start not in outline.skipped]
    system = system_of(document.text)
    labels = [read_label(line, system) for line in lines]
    drop_stray(labels)
    listed = _Listed(lines, outline)
    headings: list[Heading] = []
    index = quiet = 0
    while index < len(lines):
        heading, taken = listed.at(index, labels) if outline.known else (None, 1)
        if heading is None:
            heading, taken = _heading(lines, labels, index, calm=lines[index].start < quiet)
            heading = _unlisted(heading) if heading and outline.known else heading
            label = labels[index]
            if outline.heights and heading and label and heading.end == lines[index].end:
                # set as the text is: a sentence whose first line reads as a title
                heading = replace(heading, title="", end=heading.end - len(label.rest))
        if heading:
            headings.append(heading)
            if heading.kind == "signature":
                quiet = heading.start + _SIGNATURES
        index += taken
    headings = _without_empty(headings, document.text)
    if system.units or outline.known:
        return headings  # a law says of each of its parts that it is one
    return _mark_opening(_without_lists(_without_repeats(headings)))


def _unlisted(heading: Heading) -> Heading | None:
    """Return a heading that the contents do not have: a title only over a paragraph, a schedule below the annexes."""
    if heading.kind == "schedule":
        return replace(heading, rank=heading.rank + 0.5)
    return None if heading.style in BARE and heading.rank <= _BARE else heading


class _Listed:
    """Which lines begin with a title that is known; the letters of each line are taken once."""

    def __init__(self, lines: Sequence[Line], outline: Outline) -> None:
        titles = outline.titles
        self._lines, self._titles, self._heights, self._least = lines, titles, outline.heights, outline.least
        self._letters = [letters(line.text) for line in lines] if titles else []
        # a title may end in the number of a footnote
        self._ends = [letters(FOOTNOTE.sub("", line.text)) for line in lines] if titles else []
        self._end = 0

    def at(self, index: int, labels: Sequence[Label | None]) -> tuple[Heading | None, int]:
        """Return the known title that begins at a line, and how many lines it takes."""
        for count in range(min(_MOST_LINES, len(self._letters) - index), 0, -1):
            last = index + count - 1
            rank = self._titles.get("".join(self._letters[index:last]) + self._ends[last])
            if rank is not None and (heading := self._heading(index, last, rank, labels)):
                self._end = last + 1
                return heading, count
        return self._large(index, labels) if self._lines[index].start in self._heights else (None, 1)

    def _large(self, index: int, labels: Sequence[Label | None]) -> tuple[Heading | None, int]:
        """Return the heading that lines of one larger type are, and how many lines it takes."""
        height, last = self._heights[self._lines[index].start], index
        if labels[index] is None and height.height < self._least:
            return None, 1
        while last + 1 < min(len(labels), index + _MOST_LINES) and labels[last + 1] is None:
            if self._heights.get(self._lines[last + 1].start) != height:
                break
            last += 1
        self._end = index  # it stands apart by its type
        return self._heading(index, last, 0.0, labels), last + 1 - index

    def _heading(self, index: int, last: int, rank: float, labels: Sequence[Label | None]) -> Heading | None:
        line, end = self._lines[index], self._lines[last].end
        text = FOOTNOTE.sub("", " ".join(line.text for line in self._lines[index : last + 1]))
        label = labels[index] or read_label(line._replace(gap=True, fresh=True, before=""))
        if len(text) > _LONGEST or text[-1] in ",;":
            return None
        if label is not None:
            title = text[len(line.text) - len(label.rest) :]
            return replace(_made(line, label, title, end), sure=True)
        # a word of the contents may end a sentence by chance
        apart = line.fresh or index == self._end or (last + 1 < len(labels) and labels[last + 1] is not None)
        if not text[0].isupper() or (text[-1] == "." and not text.endswith("etc.")) or not apart:
            return None
        over = _over(self._lines, labels, index, last + 1, text, "listed")
        return replace(over, rank=rank or (over.rank if over.rank != _BARE else _LISTED))


_P = Patterns(__file__)
_BARE, _LISTED = 6, 6.5
"""How high a title stands that has no number and is over none: where chapters do, or below them if it is listed."""
_MOST_LINES = 4
"""A heading's lines: the longest of the five court guides takes four."""
_LONGEST = 300  # characters: what is longer is a sentence
FOOTNOTE = re.compile(r"(?<=[a-z])\d{1,2}$")
"""The mark of a footnote at a title's end."""
_SIGNATURES = 3000
"""Names and offices are shouted below a signature line: for so many characters no shout is a heading."""

# ---------------------------------------------------------------- one heading


def _heading(
    lines: Sequence[Line], labels: Sequence[Label | None], index: int, *, calm: bool
) -> tuple[Heading | None, int]:
    """Return the heading at a line, if there is one, and how many lines it takes."""
    line, label = lines[index], labels[index]
    if label is not None:
        return _labelled(lines, labels, index, label)
    if not line.fresh or is_entry(line.text):
        return None, 1
    fixed = _fixed(line)
    if fixed or calm:
        return fixed, 1
    shouted, taken = _shouted(lines, labels, index)
    if shouted or line.text.isupper():
        return shouted, taken
    return _titled(lines, labels, index)


def _labelled(lines: Sequence[Line], labels: Sequence[Label | None], index: int, label: Label) -> tuple[Heading, int]:
    line, taken = lines[index], 1
    end = line.end - len(label.rest)
    title, length = run_in(label.rest)
    if title:
        end += length
    elif (
        label.rest and label.rank < 9 and is_title(label.rest) and len(label.rest) <= 90 and _ends(lines, labels, index)
    ):
        title, end = label.rest, line.end
        if (
            title.split()[-1] in SMALL
            and index + 1 < len(lines)
            and labels[index + 1] is None
            and len(lines[index + 1].text) < 60
        ):
            title, end, taken = f"{title} {lines[index + 1].text}", lines[index + 1].end, 2
    elif not label.rest and index + 1 < len(lines) and labels[index + 1] is None and label.rank < 9:
        after = lines[index + 1]
        title, length = run_in(after.text)
        if not title and is_title(after.text) and _ends(lines, labels, index + 1):
            title, length = after.text, len(after.text)
        if title:
            end, taken = after.start + length, 2
    return _made(line, label, title, max(end, line.start + 1)), taken


def _made(line: Line, label: Label, title: str, end: int) -> Heading:
    kind = "definitions" if _P.definitions.fullmatch(title) else label.kind
    title = title.strip(" .:-–—")
    return Heading(line.start, end, label.text, title, label.style, label.value, label.rank, kind, label.sure)


def _ends(lines: Sequence[Line], labels: Sequence[Label | None], index: int) -> bool:
    """Return whether a line's end is the end of a paragraph, not the margin."""
    return index + 1 == len(lines) or lines[index + 1].fresh or labels[index + 1] is not None


def _fixed(line: Line) -> Heading | None:
    """Return the parts that every contract names alike: recitals, the words of agreement, signatures."""
    for pattern, kind, whole in (
        (_P.recitals, "recitals", True),
        (_P.whereas, "recitals", False),
        (_P.now, "agreement", False),
        (_P.signed, "signature", False),
    ):
        match = pattern.fullmatch(line.text) if whole else pattern.match(line.text)
        if match:
            title = " ".join(match.group().split()).strip(" :,.")
            end = line.start + match.end()
            return Heading(line.start, end, "", title, kind, (), 2.5 if kind == "signature" else 6, kind)
    return None


_MOST_SHOUTED = 3
"""Lines in capitals that a heading may have; four in a row are a disclaimer."""


def _shouted(lines: Sequence[Line], labels: Sequence[Label | None], index: int) -> tuple[Heading | None, int]:
    """Return the heading that lines in capitals make from a place on, and how many lines were looked at."""
    end = index
    while (
        end < len(lines) and labels[end] is None and lines[end].text.isupper() and (end == index or not lines[end].gap)
    ):
        end += 1
    if end - index > _MOST_SHOUTED:
        return None, end - index
    if end == index or not all(is_shout(line.text) for line in lines[index:end]):
        return None, 1
    title = " ".join(line.text for line in lines[index:end])
    return None if is_prose(title) else _over(lines, labels, index, end, title, "shout"), end - index


def _titled(lines: Sequence[Line], labels: Sequence[Label | None], index: int) -> tuple[Heading | None, int]:
    """Return the title that a line is, and how many lines it takes.

    Over a numbered line any short line is one; over a paragraph it must be in title case.
    """
    line = lines[index]
    after = lines[index + 1] if index + 1 < len(lines) else None
    if (
        after is None
        or not is_title(line.text)
        or line.text[-1] in ":?"
        or heads_nothing(line.text)
        or ends_in_form(line.text)
    ):
        return None, 1
    label = labels[index + 1]
    if label is not None and label.style == "decimal" and not label.rest and (line.gap or line.before[-1:] in ".;:"):
        # a rule of court: its title, and its number alone on the next line
        heading = Heading(
            line.start, after.end, label.text, line.text, label.style, label.value, label.rank, label.kind
        )
        return heading, 2
    if label is not None:
        over = label.style in COUNTED and (line.gap or line.before[-1:] in ".;:" or line.before == "")
        return (_over(lines, labels, index, index + 1, line.text, "title"), 1) if over else (None, 1)
    stands = is_title_case(line.text) and len(line.text) <= 60 and (line.gap or line.before[-1:] in ".;:")
    if not stands or len(after.text) < 60 or not (after.text[0].isupper() or after.text[0] in '“"('):
        return None, 1
    return _over(lines, labels, index, index + 1, line.text, "title"), 1


def _over(
    lines: Sequence[Line], labels: Sequence[Label | None], first: int, end: int, title: str, style: str
) -> Heading:
    """Return a heading without a number: it stands just above the number that it is put over."""
    label = labels[end] if end < len(labels) else None
    rank = label.rank - 0.5 if label is not None and label.style in COUNTED else _BARE
    kind = "definitions" if _P.definitions.fullmatch(title) else "section"
    return Heading(lines[first].start, lines[end - 1].end, "", title.strip(" .:-–—"), style, (), rank, kind)


# ---------------------------------------------------------------- all headings together

COUNTED = frozenset({"1.", "A.", "decimal", "unit"})
BARE = frozenset({"shout", "title"})
_OPENING = 3000  # characters of a first page, on which a document says what it is


def _without_empty(headings: Sequence[Heading], text: str) -> list[Heading]:
    """Leave out titles that head nothing but the next title: cover pages are made of them."""
    kept = []
    for heading, after in zip_longest(headings, headings[1:]):
        empty = after is not None and not text[heading.end : after.start].strip()
        if not (empty and heading.style in BARE and after is not None and after.style in BARE):
            kept.append(heading)
    return kept


def _without_repeats(headings: Sequence[Heading]) -> list[Heading]:
    """Leave out headings that come again later and hold nothing here: a table of contents without pages."""
    last = {_key(heading): at for at, heading in enumerate(headings)}
    again = [bool(heading.title) and last[_key(heading)] > at for at, heading in enumerate(headings)]
    kept = []
    for at, heading in enumerate(headings):
        near = at + 1 < len(headings) and headings[at + 1].start - heading.start < 200
        listed = again[at] and near and (again[at + 1] or (at > 0 and again[at - 1]))
        if not listed:
            kept.append(heading)
    return kept


def _without_lists(headings: Sequence[Heading]) -> list[Heading]:
    """Leave out what stands before the agreement proper but its name: lists of exhibits and of defined terms."""
    body = next((at for at, heading in enumerate(headings) if _begins(heading)), 0)
    while body and headings[body - 1].kind == "recitals":
        body -= 1
    first = next((at for at, heading in enumerate(headings[:body]) if heading.style in BARE), body)
    return [
        heading
        for at, heading in enumerate(headings)
        if at >= body or at == first or not (heading.kind in {"schedule", "recitals"} or heading.style in BARE)
    ]


def _begins(heading: Heading) -> bool:
    """Return whether the agreement proper has begun: its first article, its words of agreement, its first number."""
    return heading.kind == "agreement" or (
        heading.value[:1] == (1,) and (heading.style in COUNTED or heading.style == "article")
    )


def _key(heading: Heading) -> str:
    return re.sub(r"\W+", "", heading.text).casefold()


def _mark_opening(headings: Sequence[Heading]) -> list[Heading]:
    """Say which headings are the document's own name: those before all others; and drop a filing's exhibit number."""
    kept = list(headings)
    while kept and kept[0].kind == "schedule" and kept[0].start < 500 and len(kept[0].value) > 1:
        del kept[0]
    first = kept[0] if kept else None
    if first and first.style in BARE and first.kind == "section" and (first.start < 200 or _names(first)):
        kept[0] = replace(first, kind="title")
    return kept


def _names(heading: Heading) -> bool:
    return heading.start < _OPENING and _P.document.search(heading.title) is not None
