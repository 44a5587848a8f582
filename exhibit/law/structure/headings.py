"""Finds the headings of legal texts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from exhibit.evidence import Document
from exhibit.law.language import system_of
from exhibit.law.names import ends_in_form
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
    start: int
    end: int  # the end of the heading's words, where the text under it begins
    label: str
    title: str
    style: str  # the style: `decimal 2` for 1.1, `(a)`, `article` …; headings of the same style are counted together
    value: tuple[int, ...]  # the value of the number: (4,) for IV, (2, 1) for 2.01
    rank: float  # the default rank: 1 for a schedule, 4 for an article, 6 for `1.`, 9 or more for a clause
    kind: str
    sure: bool = True  # False for a number that is a heading only if it continues a sequence
    counted: bool = True
    """Whether the number must follow the previous number; False for rules, which are inserted and repealed."""

    @property
    def text(self) -> str:
        return f"{self.label} {self.title}".strip()


def find_headings(document: Document, outline: Outline = NO_OUTLINE) -> list[Heading]:
    lines = read_lines(document, paged=not outline.rules)
    system = system_of(document.text)
    labels = [read_label(line, system) for line in lines]
    if not outline.rules:
        drop_stray(labels)
    headings = _without_empty(list(_Finder(lines, labels, outline).find_headings()), document.text)
    if system.units or outline.known:
        return headings  # in a law every part has a label
    return _mark_opening(_without_lists(_without_repeats(headings)))


_RECITALS = re.compile(
    r"(?i)(?:(?:preliminary )?recitals?|w\s*i\s*t\s*n\s*e\s*s\s*s\s*e\s*t\s*h.{0,12}|background|preamble|premises)\W*"
    r"(?:of .{0,40})?"
)
_WHEREAS = re.compile(r"(?:WHEREAS\b|Whereas[,:\s])")
_NOW = re.compile(r"(?:NOW,?\s+THEREFORE|Now,?\s+[Tt]herefore|IN\s+CONSIDERATION\s+OF)\b")
_SIGNED = re.compile(
    r"(?:IN WITNESS (?:WHEREOF|OF|HEREOF)|In [Ww]itness [Ww]hereof|ACCEPTED AND AGREED|AGREED AND ACCEPTED|"
    r"(?:EXECUTED|SIGNED)\b.{0,30}\b(?:DEED|by)\b|SIGNATURE PAGES?\W*$|SIGNATURES\W*$)"
)
_DEFINITIONS = re.compile(
    r"(?i)(?:(?:certain |general )?definitions?|defined terms|interpretation|definitions and .{3,40}|glossary)\W*"
)
_DOCUMENT = re.compile(r"(?i)\b(?:agreement|contract|deed|policy|plan|lease|undertaking|amendment|guide)\b")
_UNNUMBERED_RANK, _LARGE_RANK = (
    6,
    6.5,
)  # ranks of a title that is not above a number: any title, or one in a larger font
_MAX_HEADING_LINES = 4  # most lines of a heading: the longest in the five court guides has four
_MAX_HEADING_CHARS = 300  # characters: a longer text is a sentence
FOOTNOTE = re.compile(r"(?<=[a-z])\d{1,2}$")  # a footnote mark at the end of a title
_SIGNATURE_CHARS = 3000  # characters after a signature in which a line in capitals is a name or an office
_MAX_CAPITAL_LINES = 3  # most lines in capitals of a heading; four in a row are a disclaimer

HeadingMatch = tuple[Heading | None, int]  # the heading at a line, or None, and its number of lines


class _Finder:
    def __init__(self, lines: Sequence[Line], labels: Sequence[Label | None], outline: Outline) -> None:
        self._lines, self._labels, self._outline = lines, labels, outline

    def find_headings(self) -> Iterator[Heading]:
        index = quiet = 0
        while index < len(self._lines):
            line, label = self._lines[index], self._labels[index]
            heading, taken = self._find_large(index) if line.start in self._outline.heights else (None, 1)
            if heading is None:
                heading, taken = self._find_heading(index, calm=line.start < quiet)
                heading = _demote_unlisted(heading) if heading and self._outline.known else heading
                if self._outline.heights and heading and label and heading.end == line.end:
                    # in the text's font, the line is the start of a sentence that looks like a title
                    heading = replace(heading, title="", end=heading.end - len(label.rest))
            if heading:
                yield replace(heading, counted=False) if self._outline.rules else heading
                quiet = heading.start + _SIGNATURE_CHARS if heading.kind == "signature" else quiet
            index += taken

    def _find_unlabelled(self, index: int) -> Line | None:
        return self._lines[index] if index < len(self._lines) and self._labels[index] is None else None

    def _label(self, index: int) -> Label | None:
        return self._labels[index] if index < len(self._labels) else None

    def _find_large(self, index: int) -> HeadingMatch:
        """Return the heading at a line whose font is larger or bolder than the text's, and its number of lines."""
        heights = self._outline.heights
        height, last = heights[self._lines[index].start], index
        if self._labels[index] is None and height.height < self._outline.least:
            return None, 1
        while (
            last + 1 < index + _MAX_HEADING_LINES
            and (line := self._find_unlabelled(last + 1))
            and heights.get(line.start) == height
        ):
            last += 1
        return self._read_large(index, last), last + 1 - index

    def _read_large(self, index: int, last: int) -> Heading | None:
        line, end = self._lines[index], self._lines[last].end
        text = FOOTNOTE.sub("", " ".join(line.text for line in self._lines[index : last + 1]))
        if len(text) > _MAX_HEADING_CHARS or text[-1] in ",;":
            return None
        label = self._labels[index]
        if label is None:
            label = read_label(line._replace(gap=True, fresh=True, before=""))
        if label is not None:
            label = replace(label, rest=text[len(line.text) - len(label.rest) :])
            return replace(_make_heading(line, label, label.rest, end), sure=True)
        if not text[0].isupper() or (text[-1] == "." and not text.endswith("etc.")):
            return None
        over = self._make_unnumbered(index, last + 1, text, "large")
        return replace(over, rank=over.rank if over.rank != _UNNUMBERED_RANK else _LARGE_RANK)

    def _find_heading(self, index: int, *, calm: bool) -> HeadingMatch:
        line, label = self._lines[index], self._labels[index]
        if label is not None:
            return self._find_labelled(index, label)
        if not line.fresh or is_entry(line.text):
            return None, 1
        fixed = _find_fixed(line)
        if fixed or calm:
            return fixed, 1
        shouted, taken = self._find_shouted(index)
        return (shouted, taken) if shouted or line.text.isupper() else self._titled(index)

    def _find_labelled(self, index: int, label: Label) -> HeadingMatch:
        line, after, taken = self._lines[index], self._find_unlabelled(index + 1), 1
        end, high = line.end - len(label.rest), label.rank < 9
        title, length = run_in(label.rest)
        if title:
            end += length
        elif high and label.rest and is_title(label.rest) and len(label.rest) <= 90 and self._ends_at(index):
            title, end = label.rest, line.end
            if after and title.split()[-1] in SMALL and len(after.text) < 60:
                title, end, taken = f"{title} {after.text}", after.end, 2
        elif high and after and not label.rest:
            title, length = run_in(after.text)
            if not title and is_title(after.text) and self._ends_at(index + 1):
                title, length = after.text, len(after.text)
            if title:
                end, taken = after.start + length, 2
        return _make_heading(line, label, title, max(end, line.start + 1)), taken

    def _ends_at(self, index: int) -> bool:
        """Return whether a paragraph ends at a line that is not merely wrapped at the margin."""
        after = self._find_unlabelled(index + 1)
        return after is None or after.fresh

    def _find_shouted(self, index: int) -> HeadingMatch:
        """Return the heading in capitals that begins at a line, and the number of its lines."""
        end = index
        while (line := self._find_unlabelled(end)) and line.text.isupper() and (end == index or not line.gap):
            end += 1
        if end - index > _MAX_CAPITAL_LINES:
            return None, end - index
        if end == index or not all(is_shout(line.text) for line in self._lines[index:end]):
            return None, 1
        title = " ".join(line.text for line in self._lines[index:end])
        return None if is_prose(title) else self._make_unnumbered(index, end, title, "shout"), end - index

    def _titled(self, index: int) -> HeadingMatch:
        line, label = self._lines[index], self._label(index + 1)
        text, ended = line.text, line.gap or line.before[-1:] in ".;:"
        last = index + 1 == len(self._lines)
        if last or not is_title(text) or text[-1] in ":?" or heads_nothing(text) or ends_in_form(text):
            return None, 1
        after = self._lines[index + 1]
        if label and label.style == "decimal" and not label.rest and ended:
            # a rule of court has its title, and its number alone on the next line
            return replace(_make_heading(line, label, text, after.end), title=text, kind=label.kind, sure=True), 2
        if label:
            titled = label.style in COUNTED and (ended or line.before == "")
        else:
            opens = after.text[0].isupper() or after.text[0] in '“"('
            titled = is_title_case(text) and len(text) <= 60 and ended and len(after.text) >= 60 and opens
        return self._make_unnumbered(index, index + 1, text, "title") if titled else None, 1

    def _make_unnumbered(self, first: int, end: int, title: str, style: str) -> Heading:
        label, (start, stop) = self._label(end), (self._lines[first].start, self._lines[end - 1].end)
        rank = label.rank - 0.5 if label is not None and label.style in COUNTED else _UNNUMBERED_RANK
        kind = "definitions" if _DEFINITIONS.fullmatch(title) else "section"
        return Heading(start, stop, "", title.strip(" .:-–—"), style, (), rank, kind)


def _demote_unlisted(heading: Heading) -> Heading | None:
    if heading.kind == "schedule":
        return replace(heading, rank=heading.rank + 0.5)
    return None if heading.style in BARE and heading.rank <= _UNNUMBERED_RANK else heading


def _make_heading(line: Line, label: Label, title: str, end: int) -> Heading:
    kind = "definitions" if _DEFINITIONS.fullmatch(title) else label.kind
    title = title.strip(" .:-–—")
    return Heading(line.start, end, label.text, title, label.style, label.value, label.rank, kind, label.sure)


def _find_fixed(line: Line) -> Heading | None:
    whole = _RECITALS.fullmatch(line.text)
    for match, kind, rank in (
        (whole or _WHEREAS.match(line.text), "recitals", 6),
        (_NOW.match(line.text), "agreement", 6),
        (_SIGNED.match(line.text), "signature", 2.5),
    ):
        if match:
            title = " ".join(match.group().split()).strip(" :,.")
            return Heading(line.start, line.start + match.end(), "", title, kind, (), rank, kind)
    return None


COUNTED = frozenset({"1.", "A.", "decimal", "unit"})
BARE = frozenset({"shout", "title"})
_FIRST_PAGE_CHARS = 3000  # characters of the first page, which states the document's name


def _without_empty(headings: Sequence[Heading], text: str) -> list[Heading]:
    """Return the headings; of several unnumbered headings without text between them, only the last."""
    kept = []
    for heading, after in zip_longest(headings, headings[1:]):
        empty = after is not None and not text[heading.end : after.start].strip()
        if not (empty and heading.style in BARE and after is not None and after.style in BARE):
            kept.append(heading)
    return kept


def _without_repeats(headings: Sequence[Heading]) -> list[Heading]:
    """Return the headings without those of a table of contents, which are close together and recur later."""
    last = {_make_key(heading): at for at, heading in enumerate(headings)}
    again = [bool(heading.title) and last[_make_key(heading)] > at for at, heading in enumerate(headings)]
    kept = []
    for at, heading in enumerate(headings):
        near = at + 1 < len(headings) and headings[at + 1].start - heading.start < 200
        listed = again[at] and near and (again[at + 1] or (at > 0 and again[at - 1]))
        if not listed:
            kept.append(heading)
    return kept


def _without_lists(headings: Sequence[Heading]) -> list[Heading]:
    """Return the headings without the lists in front of an agreement, such as a list of exhibits."""
    body = next((at for at, heading in enumerate(headings) if _begins_agreement(heading)), 0)
    while body and headings[body - 1].kind == "recitals":
        body -= 1
    first = next((at for at, heading in enumerate(headings[:body]) if heading.style in BARE), body)
    return [
        heading
        for at, heading in enumerate(headings)
        if at >= body or at == first or not (heading.kind in {"schedule", "recitals"} or heading.style in BARE)
    ]


def _begins_agreement(heading: Heading) -> bool:
    return heading.kind == "agreement" or (
        heading.value[:1] == (1,) and (heading.style in COUNTED or heading.style == "article")
    )


def _make_key(heading: Heading) -> str:
    return re.sub(r"\W+", "", heading.text).casefold()


def _mark_opening(headings: Sequence[Heading]) -> list[Heading]:
    """Return the headings without the exhibit number at the start of a filing, such as `Exhibit 10.1`."""
    kept = list(headings)
    while kept and kept[0].kind == "schedule" and kept[0].start < 500 and len(kept[0].value) > 1:
        del kept[0]
    first = kept[0] if kept else None
    if (
        first
        and first.style in BARE
        and first.kind == "section"
        and (first.start < 200 or (first.start < _FIRST_PAGE_CHARS and _DOCUMENT.search(first.title)))
    ):
        kept[0] = replace(first, kind="title")
    return kept
