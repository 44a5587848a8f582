"""Finds the headings of legal texts: reads their labels (ARTICLE IV, Section 2.01, 1.1, (a)) and their titles."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, zip_longest

from exhibit.evidence import Document
from exhibit.law.language import LegalSystem, Level, choose_system, system_of
from exhibit.law.names import ends_in_form
from exhibit.law.structure.lines import NO_OUTLINE, Line, Outline, is_entry, read_lines

# ---------------------------------------------------------------- labels

SMALL = frozenset("a an and as at by for from in into of on or per the to under upon with without".split())
_RUN_IN = re.compile(r"([^.:;–—]{2,90}?)(?:[.:](?=\s|[A-Z“]|$)|\s[–—-]\s|[.]?[–—])")
_LONG_WORD = re.compile(r"[^\W\d_]{4}")
_TITLE_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_NO_HEADING = re.compile(
    r"(?i)(?:and|between|among|by|by and (?:between|among)|dated\b.*|to|name|title|date|its|confidential\b.*|"
    r"execution (?:copy|version).*|page\b.*|\[.*|<.*|source\b.*|(?:section|recitals|preamble|annex)\b.*|"
    r"[a-z]{1,4}-\d+|.*\bintentionally (?:left )?(?:blank|omitted)|.*_{3}.*|.*\[\*+\].*|\W*)\W*"
)
# Sentences begin with these words; a title that begins with one is entirely in title case.
_STARTS = re.compile(r"(?i)(?:this|the|each|any|no|if|all|a|an|in|for|where|when|it|you|we|such|these|subject)\b")
_VERBS = re.compile(r"\b(?:shall|means?|is|are|will|may|must|has|have|agrees?|includes?|was|were|been|would)\b")
_NUMBER = re.compile(
    r"(?P<number>\d{1,3}(?:[A-Z]{0,2}\.\d{1,3}){1,4}(?:[A-Z](?![A-Za-z]))?|[A-Z](?:\.\d{1,3}){1,4}|"
    r"\d{1,3}[A-Z]{0,2}(?=[.)—\s]))(?P<mark>\.\)|[.)]|—)?(?=[\s“\"‘'A-Z(\[]|$)[ \xa0]*"
)
_BRACKET = re.compile(r"\((?P<number>[a-z]{1,2}|[ivxl]{1,6}|[A-Z]{1,2}|[IVX]{1,5}|\d{1,3})\)[ \xa0]*")
_LETTER = re.compile(r"(?P<number>[A-Z]|[a-z]|[ivx]{1,5}|[IVX]{1,5})[.)](?=[\s“\"A-Z(]|$)[ \xa0]*")
_GOES_ON = re.compile(r"(?:above|below|hereof|of (?:this|the)|and \(|or \(|[,;)])")
_PAGE = re.compile(r"(?i)page\s+\d")
_ROMAN_PART = re.compile(r"([IVXLC]{1,6}[a-z]?\.)[ \xa0]*(?:[-–—][ \xa0]*)?")
_ROMAN_ITEM = re.compile(r"([IVXLC]{1,7})[ \xa0]*[-–—][ \xa0]*")
_ROMAN = re.compile(r"(?=.)(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_MAX_TITLE_CHARS = 150  # characters: a longer text is a sentence


def is_title(text: str) -> bool:
    opens, ends = text[:1].isupper() or text[:1] in "“\"'‘", text[-1:] in ".;,"
    return 3 <= len(text) <= 110 and opens and not ends and len(text.split()) <= 16


def is_title_case(text: str) -> bool:
    words = _TITLE_WORD.findall(text)
    capital = all(word[0].isupper() or word in SMALL for word in words)
    return 0 < len(words) <= 9 and capital and words[0][0].isupper()


def is_shout(text: str) -> bool:
    lettered = 2 * sum(map(str.isalpha, text)) > len(text) and _LONG_WORD.search(text) is not None
    if not (lettered and len(text) <= 110 and text.isupper()) or text[-1] in ",;":
        return False
    return not ends_in_form(text) and not _NO_HEADING.fullmatch(text)


def is_prose(title: str) -> bool:
    return len(title) > _MAX_TITLE_CHARS or (len(title.split()) > 6 and _VERBS.search(title.lower()) is not None)


def run_in(heading: str) -> tuple[str, int]:
    match = _RUN_IN.match(heading)
    if match is None:
        return "", 0
    words = _TITLE_WORD.findall(match[1])
    large = [word for word in words if word not in SMALL]
    small = sum(word[0].islower() for word in large)
    most = 0 if _STARTS.match(match[1]) else max(len(large) // 3, 2)
    if not words or len(words) > 12 or not words[0][0].isupper() or small > most or _VERBS.search(match[1]):
        return "", 0
    return match[1].strip(' “”"'), match.end()


_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True)
class Label:
    label: str
    rest: str  # the text of the line after the label
    style: str  # the style: `decimal 2` for 1.1, `(a)`, `article` …; headings of the same style are counted together
    value: tuple[int, ...]  # the value of the number: (4,) for IV, (2, 1) for 2.01
    rank: float  # the default rank: 1 for a schedule, 4 for an article, 6 for `1.`, 9 or more for a clause
    kind: str
    sure: bool = True  # False for a number that is a heading only if it continues a sequence


def read_label(line: Line, system: LegalSystem | None = None) -> Label | None:
    system = system or choose_system("en")
    if is_entry(line.text):
        return None
    readers = (_read_worded, _read_roman_part, _read_number, _read_item)
    return next((label for read in readers if (label := read(line, system))), None)


def _read_worded(line: Line, system: LegalSystem) -> Label | None:
    match = system.label.match(line.text)
    if match is None:
        return None
    level, rest = system.by_word[match["word"].lower()], line.text[match.end() :]
    number = match["number"] or (match["before"] if system.units else "") or ""
    shouts = match["word"].isupper()
    marked = bool(match["mark"].strip())
    if not number and (not level.alone or rest or not shouts):
        return None
    if rest and not _can_follow(rest, level, system, marked=marked, shouts=shouts):
        return None
    apart = line.fresh or bool(system.units) or (shouts and not line.before.isupper())
    if not apart or (level.rank > 1 and system.goes_on.search(line.before[-16:]) and not line.gap):
        return None
    style, rank, kind = _rank_part(level, match["word"].lower(), number, system)
    return Label(match.group().strip(" \xa0.:-–—"), rest, style, _parse_value(number, system), rank, kind)


def _rank_part(level: Level, word: str, number: str, system: LegalSystem) -> tuple[str, float, str]:
    """Return the `style`, `rank` and `kind` of a label that consists of a word and a number, such as `Article 2`."""
    if system.units:
        return "unit" if level.unit else word if level.free else level.kind, level.rank, level.kind
    depth = len(_parse_value(number, system))
    if level.rank in {4, 5} and number[:1].isdigit() and (level.rank == 5 or depth > 1):
        return "decimal", 5 + depth, "section"
    return level.kind, level.rank, level.kind


def _read_roman_part(line: Line, system: LegalSystem) -> Label | None:
    """Return the label of a part with a Roman number at the start of a line, as in `II. Definitions`."""
    level = next((level for level in system.levels if level.roman), None)
    if level is None or not line.fresh:
        return None
    match = (_ROMAN_ITEM if level.text else _ROMAN_PART).match(line.text)
    if match is None or not (level.text or is_title(line.text[match.end() :])):
        return None
    number, rest = match[1].rstrip("."), line.text[match.end() :]
    return Label(number, rest, level.kind, _parse_value(match[1], system), level.rank, level.kind, sure=not level.text)


def _can_follow(heading: str, level: Level, system: LegalSystem, *, marked: bool, shouts: bool) -> bool:
    """Return whether the words after a label such as `Section 4` show that the line is a heading."""
    if system.units and (heading[0] == "(" or heading.split()[0] in system.follows):
        # "§ 10 (weggefallen)" is a heading, but "§ 5 Satz 1 gilt" is a reference at the start of a line
        return heading[0] == "("
    if level.text:
        return heading[0] not in ",;)&/"
    if _PAGE.match(heading):
        return False  # "Annex A Page 3" is a page footer in a text without pages
    if heading[0].islower() or heading[0] in ",;)&/" or (heading[0] == "(" and not shouts):
        return False
    return marked or shouts or is_title(heading) or level.rank == 5


def _read_number(line: Line, system: LegalSystem) -> Label | None:
    match = _NUMBER.match(line.text)
    if match is None or (not line.fresh and system.goes_on.search(line.before[-16:])):
        return None
    label, rest, value = match.group().strip(), line.text[match.end() :], _parse_value(match["number"], system)
    starts = not rest or not (rest[0].islower() or rest[0].isdigit() or rest[0] in ",;%)&/=")
    if len(value) > 1:
        apart = (line.fresh and (starts or line.gap)) or (starts and run_in(rest)[0])
        return Label(label, rest, "decimal", value, 5 + len(value), "section", starts and bool(rest)) if apart else None
    marked = bool(match["mark"])
    if system.units:  # an item of a list: in a law, the number of a heading has a word before it
        fits = marked and (line.fresh or line.before.endswith(","))
        return Label(label, rest, "1.", value, 9, "clause", sure=False) if fits else None
    if not (line.gap or (marked and line.fresh)) or not starts or not (marked or rest):
        return None
    titled = bool(run_in(rest)[0]) or is_shout(rest) or (len(rest) <= 60 and is_title_case(rest))
    return Label(label, rest, "1.", value, 6, "section", sure=marked and titled)


def _read_item(line: Line, system: LegalSystem) -> Label | None:
    """Return the label of an item of a list: `(a)`, `(1)`, `a.` or `A)`."""
    bracket = line.text[0] == "("
    match = (_BRACKET if bracket else _LETTER).match(line.text)
    listed = line.before.endswith(",") and (bracket or bool(system.units))
    if match is None or not (line.fresh or listed):
        return None
    rest, number = line.text[match.end() :], match["number"]
    style = "1" if number.isdigit() else "a" if number.islower() else "A"
    opens = rest[:1].isupper() or rest[:1] in '“"([' or (style == "a" and bool(system.units))
    if _GOES_ON.match(rest) if bracket else not opens:
        return None
    style = f"({style})" if bracket else f"{style}."
    rank, kind = (5.5, "section") if style == "A." else (9, "clause")
    return Label(match.group().strip(), rest, style, _parse_value(number, letters=True), rank, kind, sure=False)


def _parse_value(number: str, system: LegalSystem | None = None, *, letters: bool = False) -> tuple[int, ...]:
    """Return the value of a label as integers: `4.2` is (4, 2), and `i` is (1,)."""
    ordinal = system.parse_ordinal(number) if system else None
    if ordinal is not None:
        return (ordinal,)
    parts = []
    for part in re.split(r"[.-]", number.lower()):
        digits = re.match(r"\d+", part)
        if digits:
            parts.append(int(digits[0]))
        elif part and not letters and _ROMAN.fullmatch(part):
            parts.append(parse_roman(part))
        elif part:
            parts.append(ord(part[0]) - 96 + 26 * (len(part) - 1))
    return tuple(parts)


def parse_roman(text: str) -> int:
    if not _ROMAN.fullmatch(text):
        return 0
    values = [_DIGITS[letter] for letter in text]
    return sum(-value if value < max(values[at:]) else value for at, value in enumerate(values))


def drop_stray(labels: list[Label | None]) -> None:
    """Replace labels by None if they are only numbers in a PDF's margin."""
    at = 0
    while at < len(labels):
        end = at
        while end < len(labels) and (label := labels[end]) is not None and not label.rest and label.rank > 4:
            end += 1
        if end - at >= 3 and not any(label is not None and label.style == "unit" for label in labels[at:end]):
            labels[at:end] = [None] * (end - at)
        at = max(end, at + 1)


# ---------------------------------------------------------------- headings


@dataclass(frozen=True)
class Heading(Label):
    """A label with its title; a heading without a number has an empty label."""

    start: int = 0
    end: int = 0  # the end of the heading's words, where the text under it begins
    title: str = ""

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
_UNNUMBERED_RANK = 6  # the rank of a title, unless the line below it is a numbered heading
_LARGE_RANK = 6.5  # the rank of such a title in a larger font
_MAX_HEADING_LINES = 4  # most lines of a heading: the longest in the five court guides has four
_MAX_HEADING_CHARS = 300  # characters: a longer text is a sentence
FOOTNOTE = re.compile(r"(?<=[a-z])\d{1,2}$")  # a footnote mark at the end of a title
_SIGNATURE_CHARS = 3000  # characters after a signature in which a line in capitals is a name or an office
_MAX_CAPITAL_LINES = 3  # most lines in capitals of a heading; four in a row are a disclaimer

HeadingMatch = tuple[Heading | None, int]  # the heading at a line, or None, and its number of lines


class _Finder:
    def __init__(self, lines: Sequence[Line], labels: Sequence[Label | None], outline: Outline) -> None:
        self._lines, self._outline = lines, outline
        self._labels = [*labels, None]  # no label after the last line

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
                yield heading
                quiet = heading.start + _SIGNATURE_CHARS if heading.kind == "signature" else quiet
            index += taken

    def _find_unlabelled(self, index: int) -> Line | None:
        return self._lines[index] if index < len(self._lines) and self._labels[index] is None else None

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
        if label := self._labels[index] or read_label(line._replace(gap=True, fresh=True, before="")):
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
        """Return whether a paragraph ends at this line, so that the next line begins a new paragraph."""
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
        line, label = self._lines[index], self._labels[index + 1]
        text, ended = line.text, line.gap or line.before[-1:] in ".;:"
        last = index + 1 == len(self._lines)
        if last or not is_title(text) or text[-1] in ":?" or _NO_HEADING.fullmatch(text) or ends_in_form(text):
            return None, 1
        after = self._lines[index + 1]
        if label and label.style == "decimal" and not label.rest and ended:
            # in a rule of court, the number is alone on the line below the title
            return replace(_make_heading(line, label, text, after.end), title=text, kind=label.kind, sure=True), 2
        if label:
            titled = label.style in COUNTED and (ended or line.before == "")
        else:
            opens = after.text[0].isupper() or after.text[0] in '“"('
            titled = is_title_case(text) and len(text) <= 60 and ended and len(after.text) >= 60 and opens
        return self._make_unnumbered(index, index + 1, text, "title") if titled else None, 1

    def _make_unnumbered(self, first: int, end: int, title: str, style: str) -> Heading:
        label, (start, stop) = self._labels[end], (self._lines[first].start, self._lines[end - 1].end)
        rank = label.rank - 0.5 if label is not None and label.style in COUNTED else _UNNUMBERED_RANK
        kind = "definitions" if _DEFINITIONS.fullmatch(title) else "section"
        return Heading("", "", style, (), rank, kind, start=start, end=stop, title=title.strip(" .:-–—"))


def _demote_unlisted(heading: Heading) -> Heading | None:
    if heading.kind == "schedule":
        return replace(heading, rank=heading.rank + 0.5)
    return None if heading.style in BARE and heading.rank <= _UNNUMBERED_RANK else heading


def _make_heading(line: Line, label: Label, title: str, end: int) -> Heading:
    kind = "definitions" if _DEFINITIONS.fullmatch(title) else label.kind
    return Heading(**{**vars(label), "kind": kind}, start=line.start, end=end, title=title.strip(" .:-–—"))


def _find_fixed(line: Line) -> Heading | None:
    whole = _RECITALS.fullmatch(line.text)
    for match, kind, rank in (
        (whole or _WHEREAS.match(line.text), "recitals", 6),
        (_NOW.match(line.text), "agreement", 6),
        (_SIGNED.match(line.text), "signature", 2.5),
    ):
        if match:
            title = " ".join(match.group().split()).strip(" :,.")
            return Heading("", "", kind, (), rank, kind, start=line.start, end=line.start + match.end(), title=title)
    return None


COUNTED = frozenset({"1.", "A.", "decimal", "unit"})
BARE = frozenset({"shout", "title"})
_FIRST_PAGE_CHARS = 3000  # characters of the first page, which states the document's name


def _without_empty(headings: Sequence[Heading], text: str) -> list[Heading]:
    """Return the headings; of unnumbered headings without text between them, return only the last."""
    return [
        heading
        for heading, after in zip_longest(headings, headings[1:])
        if after is None or not {heading.style, after.style} <= BARE or text[heading.end : after.start].strip()
    ]


def _without_repeats(headings: Sequence[Heading]) -> list[Heading]:
    """Return the headings without the entries of a table of contents, which are close together and recur later."""
    keys = [re.sub(r"\W+", "", heading.text).casefold() for heading in headings]
    last = {key: at for at, key in enumerate(keys)}
    again = [
        bool(heading.title) and last[key] > at for at, (heading, key) in enumerate(zip(headings, keys, strict=True))
    ]
    kept = []
    for at, heading in enumerate(headings):
        near = at + 1 < len(headings) and headings[at + 1].start - heading.start < 200
        listed = again[at] and near and (again[at + 1] or (at > 0 and again[at - 1]))
        if not listed:
            kept.append(heading)
    return kept


def _without_lists(headings: Sequence[Heading]) -> list[Heading]:
    """Return the headings without the lists in front of an agreement, such as a list of exhibits."""
    first_number = COUNTED | {"article"}
    begins = (h.kind == "agreement" or (h.value[:1] == (1,) and h.style in first_number) for h in headings)
    body = next((at for at, begun in enumerate(begins) if begun), 0)
    while body and headings[body - 1].kind == "recitals":
        body -= 1
    first = next((at for at, heading in enumerate(headings[:body]) if heading.style in BARE), body)
    return [
        heading
        for at, heading in enumerate(headings)
        if at >= body or at == first or not (heading.kind in {"schedule", "recitals"} or heading.style in BARE)
    ]


def _mark_opening(headings: Sequence[Heading]) -> list[Heading]:
    """Return the headings without a filing's exhibit number, such as `Exhibit 10.1`, and mark the document's title."""
    kept = list(dropwhile(lambda h: h.kind == "schedule" and h.start < 500 and len(h.value) > 1, headings))
    if kept and kept[0].style in BARE and kept[0].kind == "section":
        start, title = kept[0].start, kept[0].title
        if start < 200 or (start < _FIRST_PAGE_CHARS and _DOCUMENT.search(title)):
            kept[0] = replace(kept[0], kind="title")
    return kept
