"""Reads laws in Markdown: their divisions, such as chapters and §§, and the text that will be printed to PDF."""

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from exhibit.converters.laws.files import Version
from exhibit.law.editions import label_key
from exhibit.law.language import LegalSystem, Level, choose_system, load_systems
from exhibit.law.values import write_day
from exhibit.schemas.layout import fit_name

_SHORTEST = 40  # fewest characters of a §: a shorter § was repealed, or only refers to another §
_WORD = re.compile(r"\w+")

_WIDTH = 84  # most letters of a printed line, so that the printer breaks no line and each is read back unchanged
_HEADER = re.compile(r"\A\ufeff?---[^\S\n]*\n(.*?)\n---[^\S\n]*\n", re.DOTALL)
_FIELD = re.compile(r'^(\w+):\s*"?(.*?)"?\s*$', re.MULTILINE)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"(?:[-*+]\s+)+(?=\S)")
_NUMBERED = re.compile(r"\s*(?:[-*+]\s+|\d{1,3}[a-z]?\\?[.)]\s+|[a-z]{1,2}\)\s+|\(\d{1,3}[a-z]?\)\s+)")
_RULE = re.compile(r"\|?[\s|:-]+\|?")
_MARKS = re.compile(r"\*\*|__|\\(?=[^\w\s])|\^(?=\S)|`")
_PLACEHOLDER = re.compile(r"\(X+\)\s*")  # the mark of bundestag/gesetze before repealed paragraphs


class LawHeading(NamedTuple):
    """A heading of a law, and the level and label of the division that it opens."""

    text: str
    level: Level | None = None
    label: str = ""
    rest: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A § or an article: its label and title, and its offsets in the law's text."""

    label: str
    title: str
    quoted: bool  # whether it is a § that an article quotes, which belongs to another law
    start: int
    end: int
    body: int  # the offset of its words, after its label and title


@dataclass(frozen=True)
class Law:
    """A version of a law as read from Markdown: its header, title, printed text and paragraphs."""

    version: Version
    fields: dict[str, str]  # the fields of its header
    title: str
    dated: str  # the line with the first and last day of the version, below the title; empty if they are unknown
    text: str  # title, days and law, in lines that are short enough to be printed unchanged
    system: LegalSystem
    paragraphs: tuple[Paragraph, ...] = ()

    @property
    def filename(self) -> str:
        day = f"_{self.version.start.isoformat()}" if self.version.start else ""
        return fit_name(f"{self.version.law}{day}", ".pdf")

    @property
    def full_title(self) -> str:
        """The law's full name for use inside a sentence: its `full_citation`, else its title."""
        return self.fields.get("full_citation") or self.title

    def words(self, paragraph: Paragraph) -> str:
        """Return a paragraph's words without its label and title, as one line."""
        return " ".join(self.text[paragraph.body : paragraph.end].split())

    def find_paragraph(self, label: str) -> Paragraph | None:
        """Return the § with a label; None if this version does not have exactly one."""
        paragraphs = self._by_label.get(label_key(label), ())
        return paragraphs[0] if len(paragraphs) == 1 else None

    @cached_property
    def _by_label(self) -> dict[tuple[str, str], list[Paragraph]]:
        index: dict[tuple[str, str], list[Paragraph]] = defaultdict(list)
        for paragraph in self.own:
            index[label_key(paragraph.label)].append(paragraph)
        return index

    @cached_property
    def own(self) -> list[Paragraph]:
        """The paragraphs (§) of the law, without those that an article quotes."""
        return [paragraph for paragraph in self.paragraphs if not paragraph.quoted]

    @cached_property
    def live(self) -> list[Paragraph]:
        """The paragraphs that are long enough and not marked as repealed."""
        gone = set(self.system.data.get("repealed", "").split())
        return [
            paragraph
            for paragraph in self.own
            if len(words := self.words(paragraph)) >= _SHORTEST
            and gone.isdisjoint(_WORD.findall(f"{paragraph.title} {words[:_SHORTEST]}".lower()))
        ]


def read_law(version: Version) -> Law:
    header = _HEADER.match(version.markdown)
    fields: dict[str, str] = dict(_FIELD.findall(header[1])) if header else {}
    blocks = list(_split_blocks(version.markdown[header.end() :] if header else version.markdown))
    system = _choose_system(fields, blocks)
    title = next((text for depth, text in blocks if depth == 1), "") or fields.get("title") or fields.get("Title", "")
    law = Law(version, fields, title, _write_days(version, system), "", system)
    reader = _Reader()
    for line in filter(None, (law.full_title, law.dated)):
        reader.write(line)
    marked = [bool(depth) or _is_unmarked_heading(text, system) for depth, text in blocks]
    for (_, text), heading, following in zip(blocks, marked, [*marked[1:], False], strict=True):
        if heading:
            reader.add_heading(_make_heading(text, system), words_follow=not following)
        else:
            reader.write(text)
    reader.close()
    return replace(law, text="\n".join(reader.lines), paragraphs=tuple(reader.paragraphs))


def _write_days(version: Version, system: LegalSystem) -> str:
    if version.start is None:
        return ""
    pattern: str = system.data["ended" if version.end else "version"]
    return pattern.format(
        start=write_day(version.start, system), end=write_day(version.end, system) if version.end else ""
    )


@dataclass
class _Reader:
    lines: list[str] = field(default_factory=list)
    at: int = 0
    above: list[float] = field(default_factory=list)  # the ranks of the § or articles that are not finished
    paragraphs: list[Paragraph] = field(default_factory=list)
    unit: Paragraph | None = None  # the paragraph that is being read
    bare: bool = False  # whether there is no text below its number yet

    def write(self, text: str) -> None:
        self.bare = False
        for line in wrap_paragraph(text):
            self.lines.append(line)
            self.at += len(line) + 1

    def add_heading(self, heading: LawHeading, *, words_follow: bool) -> None:
        if self.unit is not None and self.bare and heading.level is None and words_follow:
            self.write(heading.text)
            self.unit = replace(self.unit, title=heading.text, body=self.at)
            return
        self.close()
        start = self.at
        self.write(heading.text)
        if heading.level is not None:
            rank = heading.level.rank
            self.above = [other for other in self.above if other < rank] if heading.level.unit else []
            if heading.level.unit:
                self.unit = Paragraph(heading.label, heading.rest, bool(self.above), start, start, self.at)
                self.bare = not heading.rest
                self.above.append(rank)

    def close(self) -> None:
        if self.unit is not None:
            end = self.at - 1
            self.paragraphs.append(replace(self.unit, end=end, body=min(self.unit.body, end)))
        self.unit = None


def _make_heading(text: str, system: LegalSystem) -> LawHeading:
    plain = _PLACEHOLDER.sub("", text)
    match = system.label.match(plain)
    if match is not None and (match["number"] or match["before"] or (not plain[match.end() :] and plain.isupper())):
        level = system.by_word[match["word"].lower()]
        rest = plain[match.end() :].strip(" -–—:.")
        if level.text or not rest or not rest[0].islower():
            return LawHeading(plain, level, match.group().strip(" \xa0.:-–—"), rest)
    roman = next((level for level in system.levels if level.roman), None)
    if roman and (numbered := re.match(r"([IVXLC]{1,6}[a-z]?\.)\s*[-–—]?\s*", plain)):
        return LawHeading(plain, roman, numbered[1].rstrip("."), plain[numbered.end() :])
    return LawHeading(plain)


def _is_unmarked_heading(text: str, system: LegalSystem) -> bool:
    """Return whether a line is a division's label without `#`, such as `Pododdíl 1`."""
    match = system.label.fullmatch(text) if len(text) < _WIDTH else None
    level = system.by_word[match["word"].lower()] if match and (match["number"] or match["before"]) else None
    return level is not None and not level.unit and not level.text and level.rank > 1


def _choose_system(fields: dict[str, str], blocks: list[tuple[int, str]]) -> LegalSystem:
    country = fields.get("country", "")
    named = next((system for system in load_systems() if country and country in system.country.split()), None)
    if named:
        return named
    words = re.findall(r"[^\W\d_]+", " ".join(text for _, text in blocks[:400]).lower())
    legal = [system for system in load_systems() if system.units]
    return max(legal, key=lambda system: sum(word in system.glue for word in words), default=choose_system("en"))


def _split_blocks(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the blocks of a Markdown text, each as its heading depth and its text without marks."""
    pending: list[str] = []

    def end_paragraph() -> Iterator[tuple[int, str]]:
        text = _strip_marks(" ".join(pending))
        pending.clear()
        if text:
            yield 0, text

    for raw in markdown.split("\n"):
        line = raw.strip()
        heading = _HEADING.fullmatch(line)
        row = line.startswith("|")
        if not line or heading or row or _NUMBERED.match(raw):
            yield from end_paragraph()
        if heading:
            text = _strip_marks(heading[2].rstrip("#"))
            if text:
                yield len(heading[1]), text
        elif row and not _RULE.fullmatch(line):
            cells = [_strip_marks(cell) for cell in line.strip("|").split("|")]
            pending.append("; ".join(cell for cell in cells if cell))
        elif line and not row and line != "[image omitted]":
            pending.append(line.removeprefix(":   "))
    yield from end_paragraph()


def _strip_marks(text: str) -> str:
    text = _ITEM.sub("", text.strip(), count=1) if text[:2].strip() in {"-", "*", "+"} else text
    return " ".join(_MARKS.sub("", text).replace("\xa0", " ").replace("\xad", "").split())


def wrap_paragraph(text: str) -> list[str]:
    """Return a paragraph in lines that fit the page; lines are shorter if many letters are capitals."""
    wide = sum(character.isupper() for character in text)
    width = _WIDTH if 4 * wide < len(text) else _WIDTH * 2 // 3
    lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=True) or [""]
    for at, line in enumerate(lines[:-1]):
        head, space, last = line.rpartition(" ")
        if line.endswith("-") and space:
            lines[at] = head
            lines[at + 1 :] = wrap_paragraph(" ".join([last, *lines[at + 1 :]]))
            break
    return lines
