"""Reads the versions of laws in Markdown, from dated files in a folder or from the history of a Git repository.

A version has its divisions, such as chapters and §§, and the text that will be printed to PDF.
"""

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from itertools import groupby, zip_longest
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from exhibit.converters import Item, Tally
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.law.language import LegalSystem, Level, choose_system, load_systems
from exhibit.law.provisions import label_key
from exhibit.law.values import write_day
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.parsing import read_regular
from exhibit.storage.atomic import list_files, list_left_out
from exhibit.storage.programs import GitRepository, is_git_repository, open_repository

# ---------------------------------------------------------------- files

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_IN_FORCE = re.compile(r'^(?:effectiveness_date|effective_date|last_updated):\s*"?(\d{4}-\d{2}-\d{2})', re.MULTILINE)
_READ_ME = frozenset({"readme.md", "license.md", "contributing.md", "changelog.md"})
HEADER_CHARS = 4000
MAX_FILE_BYTES = 32 << 20  # the longest German and Czech codes have 2 MB
SAME_DAY = "another version of the law takes effect on the same day"
OUT_OF_RANGE = "version not in force at the dates of --from and --as-of"


@dataclass(frozen=True)
class Version:
    """A version of a law: its text, and the first and last day on which it is in force."""

    law: str  # the path of its folder or file; later the law's name, which is the last part of this path
    markdown: str
    source: str  # the file or commit from which it was read, for the counts
    start: date | None = None  # the first day; None if it is unknown
    end: date | None = None  # the last day; None for the last version

    @property
    def item(self) -> Item:
        """The name under which a conversion counts the version as kept or left out."""
        return Item("files", self.source)

    @property
    def days(self) -> dict[str, str | None]:
        """The first and the last day, as labels."""
        days = {"effective_from": self.start, "effective_to": self.end}
        return {name: day.isoformat() if day else None for name, day in days.items()}


def read_versions(source: Path, tally: Tally, *, since: date | None = None, as_of: date | None = None) -> list[Version]:
    """Return the versions of all laws that were in force from `since`, or on `as_of`, sorted by law and day."""
    if is_git_repository(source):
        with open_repository(source) as repository:
            versions = list(_read_history(repository, tally))
    else:
        versions = list(_read_folder(source, tally))
    if not versions:
        raise SourceError(f"{source}: no laws; expected LAW/DATE.md, LAW.md or a Git repository of such files")
    paths = {version.law: PurePosixPath(version.law) for version in versions}
    names = choose_unique_titles(
        {law: [path.name, "-".join(path.parts), "--".join(path.parts)] for law, path in paths.items()}
    )
    versions = [replace(version, law=names[version.law].replace("/", "-")) for version in versions]
    versions.sort(key=lambda version: (version.law, version.start or date.min))
    kept = []
    for _, group in groupby(versions, lambda version: version.law):
        given = list(group)
        last = {version.start: version for version in given}
        for version in given:
            if last[version.start] is not version:
                tally.leave_out(SAME_DAY, version.source, item=version.item)
        ordered = list(last.values())
        for version, following in zip_longest(ordered, ordered[1:]):
            end = following.start - timedelta(days=1) if following and following.start else None
            begun = as_of is None or version.start is None or version.start <= as_of
            ended = end is not None and any(day is not None and end < day for day in (since, as_of))
            if begun and not ended:
                kept.append(replace(version, end=end))
            else:
                tally.leave_out(OUT_OF_RANGE, version.source, item=version.item)
    if not kept:
        none = f"none of its {len(versions)} versions was in force at the dates of --from and --as-of"
        raise SourceError(f"{source}: {none}; choose other dates")
    return kept


def _is_law(name: str) -> bool:
    return name.endswith(".md") and PurePosixPath(name).name.lower() not in _READ_ME


def _skip(reason: str, name: str, tally: Tally) -> None:
    tally.take([Item("files", name)])
    tally.fault(reason, name, item=Item("files", name))


def _parse(
    law: str, name: str, data: bytes, tally: Tally, *, dated: str = "", committed: str = ""
) -> Iterator[Version]:
    """Yield the version in a file; its first day comes from the file's name, its header, or its commit."""
    try:
        text = data.decode("utf-8-sig")
        stated = _IN_FORCE.search(text[:HEADER_CHARS])
        day = dated or (stated[1] if stated else committed)
        version = Version(law, text, name, date.fromisoformat(day) if day else None)
    except UnicodeDecodeError:
        _skip("the file is not in UTF-8", name, tally)
    except ValueError:
        _skip("the date in its name or header does not exist", name, tally)
    else:
        if text.strip():
            tally.take([version.item])
            yield version
        else:
            _skip("the file is empty", name, tally)


def _read_folder(folder: Path, tally: Tally) -> Iterator[Version]:
    for path, why in list_left_out(folder):
        if _is_law(path.name):
            _skip(f"a {why}", path.relative_to(folder).as_posix(), tally)
    for path in list_files(folder):
        name, match = path.relative_to(folder), _DATED.fullmatch(path.name)
        if not _is_law(path.name):
            continue
        # `LAW/DATE.md` is named by its folder; any other file is named by itself
        law = name.parent if match and path.parent != folder else name.with_suffix("")
        try:
            data = read_regular(path, most=MAX_FILE_BYTES)
        except OSError as error:
            _skip(f"cannot be read: {error.strerror}", name.as_posix(), tally)
        else:
            yield from _parse(law.as_posix(), name.as_posix(), data, tally, dated=match[1] if match else "")


def _read_history(repository: GitRepository, tally: Tally) -> Iterator[Version]:
    """Yield the law files that each commit wrote; a version's day is the date in its header, else the commit's."""
    form = "--format=%x01%H %as"
    log = repository.run("log", "--reverse", "--diff-filter=AM", "--no-renames", "-z", "--name-status", form)
    for entry in log.decode("utf-8", "surrogateescape").split("\x01")[1:]:
        head, *words = entry.split("\x00")
        commit, _, day = head.strip().partition(" ")
        for path in filter(_is_law, words[1::2]):
            source = f"{commit[:10]}:{path}"
            try:
                data = repository.run("cat-file", "blob", f"{commit}:{path}")
            except SourceError:
                _skip("not in the repository", source, tally)
            else:
                yield from _parse(str(PurePosixPath(path).with_suffix("")), source, data, tally, committed=day)


# ---------------------------------------------------------------- text

_MIN_WORDS_CHARS = 40  # fewest characters of a §: a shorter § was repealed, or only refers to another §
_WORD = re.compile(r"\w+")

# most letters of a printed line: the printer does not break such a line, so that it is read back unchanged
_LINE_LETTERS = 84
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
    full_title: str  # the name for use inside a sentence: its `full_citation`, else its title
    dated: str  # the line with the first and last day of the version, below the title; empty if they are unknown
    text: str  # title, days and law, in lines that are short enough to be printed unchanged
    system: LegalSystem
    paragraphs: tuple[Paragraph, ...]

    @property
    def filename(self) -> str:
        day = f"_{self.version.start.isoformat()}" if self.version.start else ""
        return fit_name(f"{self.version.law}{day}", ".pdf")

    def words(self, paragraph: Paragraph) -> str:
        """Return a paragraph's words without its label and title, as one line."""
        return " ".join(self.text[paragraph.body : paragraph.end].split())

    def find_paragraph(self, label: str) -> Paragraph | None:
        """Return the § with this label; None unless this version has exactly one such §."""
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
            if len(words := self.words(paragraph)) >= _MIN_WORDS_CHARS
            and gone.isdisjoint(_WORD.findall(f"{paragraph.title} {words[:_MIN_WORDS_CHARS]}".lower()))
        ]


def read_law(version: Version) -> Law:
    header = _HEADER.match(version.markdown)
    fields: dict[str, str] = dict(_FIELD.findall(header[1])) if header else {}
    blocks = _split_blocks(version.markdown[header.end() :] if header else version.markdown)
    system = _choose_system(fields, blocks)
    title = next((text for depth, text in blocks if depth == 1), "") or fields.get("title") or fields.get("Title", "")
    full_title, dated = fields.get("full_citation") or title, _write_days(version, system)
    reader = _Reader()
    for line in filter(None, (full_title, dated)):
        reader.write(line)
    for depth, text in blocks:
        if depth or _is_unmarked_heading(text, system):
            reader.add_heading(_make_heading(text, system))
        else:
            reader.write(text)
    reader.close()
    return Law(version, fields, title, full_title, dated, "\n".join(reader.lines), system, tuple(reader.paragraphs))


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
    above: list[float] = field(default_factory=list)  # the ranks of the § or articles whose end is not yet known
    paragraphs: list[Paragraph] = field(default_factory=list)
    unit: Paragraph | None = None  # the paragraph that is being read

    def write(self, text: str) -> None:
        for line in wrap_paragraph(text):
            self.lines.append(line)
            self.at += len(line) + 1

    def add_heading(self, heading: LawHeading) -> None:
        if self.unit is not None and not self.unit.title and self.unit.body == self.at and heading.level is None:
            self.write(heading.text)  # the title of a paragraph whose heading has only a number
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
    return LawHeading(plain)


def _is_unmarked_heading(text: str, system: LegalSystem) -> bool:
    """Return whether a line is a division's label without `#`, such as `Pododdíl 1`."""
    match = system.label.fullmatch(text) if len(text) < _LINE_LETTERS else None
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


def _split_blocks(markdown: str) -> list[tuple[int, str]]:
    """Return the blocks of a Markdown text, each with its heading depth and its text without Markdown's marks."""
    blocks: list[tuple[int, list[str]]] = [(0, [])]
    for raw in markdown.split("\n"):
        line = raw.strip()
        heading, row = _HEADING.fullmatch(line), line.startswith("|")
        if heading:
            blocks += [(len(heading[1]), [heading[2].rstrip("#")]), (0, [])]
            continue
        if not line or row or _NUMBERED.match(raw):
            blocks.append((0, []))
        if row and not _RULE.fullmatch(line):
            cells = [_strip_marks(cell) for cell in line.strip("|").split("|")]
            blocks[-1][1].append("; ".join(cell for cell in cells if cell))
        elif line and not row and line != "[image omitted]":
            blocks[-1][1].append(line.removeprefix(":   "))
    return [(depth, text) for depth, lines in blocks if (text := _strip_marks(" ".join(lines)))]


def _strip_marks(text: str) -> str:
    text = _ITEM.sub("", text.strip(), count=1) if text[:2].strip() in {"-", "*", "+"} else text
    return " ".join(_MARKS.sub("", text).replace("\xad", "").split())


def wrap_paragraph(text: str) -> list[str]:
    """Return a paragraph in lines that fit the page; lines are shorter if many letters are capitals."""
    wide = sum(character.isupper() for character in text)
    width = _LINE_LETTERS if 4 * wide < len(text) else _LINE_LETTERS * 2 // 3
    lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=True) or [""]
    for at, line in enumerate(lines[:-1]):
        head, space, last = line.rpartition(" ")
        if line.endswith("-") and space:
            lines[at] = head
            lines[at + 1 :] = wrap_paragraph(" ".join([last, *lines[at + 1 :]]))
            break
    return lines
