"""Versions of laws from a folder or a Git repository, with questions whose gold is known by construction.

exhibit convert statutes --source FOLDER --out datasets_out/statutes
"""

from __future__ import annotations

import difflib
import hashlib
import re
import textwrap
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property, partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

from exhibit.converters import Benchmark, DatasetInfo, Item, Label, Licence, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.law.language import LegalSystem, Level, load_systems
from exhibit.law.provisions import LawName, find_provisions, label_key, make_law_name
from exhibit.law.values import write_day
from exhibit.runtime.command import parse_positive
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import fit_name
from exhibit.storage.atomic import list_files, list_left_out
from exhibit.storage.programs import GitRepository, is_git_repository, open_repository

INFO = DatasetInfo(
    name="statutes",
    title="Versions of laws on PDFs",
    benchmark="Laws in Markdown with their versions",
    summary="""Laws in all their versions, one PDF per version, with questions in the law's language: what a provision
        says, or said on a day; which provision has a heading; what changed; where a reference leads. Some
        questions have no answer.""",
    expects="a folder with LAW/DATE.md (or LAW.md), or a Git repository of laws in Markdown, bare or not",
    licence=Licence(
        id="other",
        name="texts of laws (usually free of copyright)",
        redistributable=False,
        note="Texts of laws are free in most countries; a collection of them may have a separate licence.",
    ),
    url="https://github.com/legalize-dev",
    version="as given",
    tags=("legal", "legislation", "temporal"),
    annotations=("machine-generated",),
    questions="""Made by rule in the law's own language, in several wordings. `labels.kind` names the kind of question:
        `says` (what a provision says in the last version), `said` (what it said on a day), `governs` (which provision
        has a heading), `changed` (whether it changed between two days), `leads` (where a reference leads), `repealed`
        (a day after the repeal) and `before` (a day before the law); the last two kinds are impossible.""",
    limits="""
        - A version ends on the day before the next version in the source. A question without a day means the last one.
        - The same § of every other version is a near miss: `labels.other_versions` lists them.
        - The answer to a question on a change quotes at most 60 of the added and of the removed words.""",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--from", type=_parse_day, metavar="DATE", help="leave out versions that ended before this day")
    most = "questions of each kind on each law, at most (default: 6)"
    parser.add_argument("--questions", type=parse_positive, default=6, metavar="N", help=most)
    parser.add_argument("--as-of", type=_parse_day, metavar="DATE", help="convert the versions in force on this day")


def _parse_day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a day; write it as 2018-07-01") from error


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Make a document of each version of each law, and questions about them."""
    since, as_of = (date.fromisoformat(day) if day else None for day in (vars(options)["from"], options.as_of))
    versions = read_versions(source, tally, since=since, as_of=as_of)
    laws: dict[str, list[Law]] = defaultdict(list)
    digests: defaultdict[str, Any] = defaultdict(hashlib.sha256)
    for version in versions:
        digests[version.law].update(f"{version.start}\n{version.markdown}\n".encode())
        law = read_law(version)
        if law.paragraphs:
            laws[version.law].append(law)
        else:
            tally.leave_out("file without a § or an article", version.source, item=version.item)
    if not laws:
        raise SourceError(f"{source}: no § or article in any of {len(versions)} files; are these laws in Markdown?")
    names = {key: _name(key, editions[-1]) for key, editions in laws.items()}
    ids: set[int] = set()
    rows: list[RawRow] = []
    for key in laws:
        rows += QuestionMaker(key, laws, names, options.questions, ids).rows()
    documents = [_make_document(law) for editions in laws.values() for law in editions]
    return Benchmark(documents, rows, {key: digest.hexdigest() for key, digest in digests.items()})


def _make_document(law: Law) -> RawDocument:
    days = {name: value for name, value in law.version.days.items() if value}
    title = f"{law.full_title} ({law.dated})" if law.dated else law.full_title
    labels = (("law", law.version.law), *days.items())
    source, items = law.fields.get("source", ""), (law.version.item,)
    return RawDocument(law.filename, title, text=law.text, source=source, items=items, labels=labels)


def _name(key: str, law: Law) -> LawName:
    """Return the names by which references cite a law: its codes, which are abbreviations, and its title."""
    codes = [law.fields.get(name, "") for name in ("official_code", "jurabk", "abbreviation", "short_title")]
    if not any(codes):  # without an abbreviation, use the title
        full = make_law_name(law.title)
        return LawName(key, full.codes[:1], full.title)
    named = law.title.partition(" (")[0] if law.fields.get("jurabk") else law.title
    title = " ".join(named.split()[1:]) if law.fields.get("official_code") else named
    return LawName(key, tuple(dict.fromkeys(filter(None, codes))), title)


# ---------------------------------------------------------------- files

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_IN_FORCE = re.compile(r'^(?:effectiveness_date|effective_date|last_updated):\s*"?(\d{4}-\d{2}-\d{2})', re.MULTILINE)
_READ_ME = frozenset({"readme.md", "license.md", "contributing.md", "changelog.md"})
HEADER_CHARS = 4000
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
        return Item("files", self.source)

    @property
    def days(self) -> dict[str, str | None]:
        days = {"effective_from": self.start, "effective_to": self.end}
        return {name: day.isoformat() if day else None for name, day in days.items()}


def read_versions(source: Path, tally: Tally, *, since: date | None = None, as_of: date | None = None) -> list[Version]:
    """Return the versions of all laws that were in force on or after `since`, or on `as_of`, sorted by law and day."""
    if is_git_repository(source):
        with open_repository(source) as repository:
            versions = list(_read_history(repository, tally))
    else:
        versions = list(_read_folder(source, tally))
    if not versions:
        raise SourceError(f"{source}: no laws; expected LAW/DATE.md, LAW.md or a Git repository of such files")
    names = choose_unique_titles({v.law: [v.law.rpartition("/")[2], v.law.replace("/", "-")] for v in versions})
    versions = [replace(version, law=names[version.law].replace("/", "-")) for version in versions]
    versions.sort(key=lambda version: (version.law, version.start or date.min))
    kept = []
    latest = max(day for day in (since, as_of, date.min) if day)
    for version, following in zip_longest(versions, versions[1:]):
        following = following if following and following.law == version.law else None
        end = following.start - timedelta(days=1) if following and following.start else None
        begun = as_of is None or version.start is None or version.start <= as_of
        if following and following.start == version.start:
            tally.leave_out(SAME_DAY, version.source, item=version.item)
        elif begun and (end is None or end >= latest):
            kept.append(replace(version, end=end))
        else:
            tally.leave_out(OUT_OF_RANGE, version.source, item=version.item)
    if not kept:
        none = (
            f"none of its {len(versions)} versions was in force at the dates of --from and --as-of; choose other dates"
        )
        raise SourceError(f"{source}: {none}")
    return kept


def _is_law(name: str) -> bool:
    return name.endswith(".md") and name.rpartition("/")[2].lower() not in _READ_ME


def _read_version(
    law: str, name: str, read: Callable[[], bytes], tally: Tally, *, dated: str = "", committed: str = ""
) -> Iterator[Version]:
    """Yield the version in a file; its first day comes from the file's name, its header, or its commit."""
    version = Version(law, "", name)
    problem = ""
    try:
        text = read().decode("utf-8-sig")
        stated = _IN_FORCE.search(text[:HEADER_CHARS])
        day = dated or (stated[1] if stated else committed)
        version = Version(law, text, name, date.fromisoformat(day) if day else None)
    except (OSError, SourceError):
        problem = "the file cannot be read"
    except UnicodeDecodeError:
        problem = "the file is not in UTF-8"
    except ValueError:
        problem = "the date in its name or header does not exist"
    if problem or not version.markdown.strip():
        tally.fault(problem or "the file is empty", name, item=version.item)
    else:
        tally.take([version.item])
        yield version


def _read_folder(folder: Path, tally: Tally) -> Iterator[Version]:
    for path, why in list_left_out(folder):
        if _is_law(path.name):
            name = path.relative_to(folder).as_posix()
            tally.fault(f"a {why}", name, item=Item("files", name))
    for path in list_files(folder):
        if _is_law(path.name):
            file, match = path.relative_to(folder), _DATED.fullmatch(path.name)
            # `LAW/DATE.md` is named by its folder; any other file is named by itself
            law = file.parent if match and path.parent != folder else file.with_suffix("")
            read, dated = path.read_bytes, match[1] if match else ""
            yield from _read_version(law.as_posix(), file.as_posix(), read, tally, dated=dated)


def _read_history(repository: GitRepository, tally: Tally) -> Iterator[Version]:
    """Yield the law files that each commit wrote; a version's day is in the file's header, else in the commit."""
    form = "--format=%x01%H %as"
    log = repository.run("log", "--reverse", "--diff-filter=AM", "--no-renames", "-z", "--name-status", form)
    for entry in log.decode("utf-8", "surrogateescape").split("\x01")[1:]:
        head, *words = entry.split("\x00")
        commit, _, day = head.strip().partition(" ")
        for path in filter(_is_law, words[1::2]):
            law, read = path.removesuffix(".md"), partial(repository.run, "cat-file", "blob", f"{commit}:{path}")
            yield from _read_version(law, f"{commit[:10]}:{path}", read, tally, committed=day)


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


@dataclass(frozen=True)
class Paragraph:
    """A § or an article: its label and title, and its offsets in the law's text."""

    label: str
    title: str
    quoted: bool  # whether it is a § that an article quotes, which belongs to another law
    start: int
    end: int
    words: str  # without its label and title, as one line


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

    def quote(self, paragraph: Paragraph) -> Quote:
        """Return a paragraph as gold, with the first and last day of the version as labels."""
        span = (paragraph.start, paragraph.end)
        labels = (("paragraph", paragraph.label), *self.version.days.items())
        return Quote(self.filename, self.text[slice(*span)], (span,), labels)

    def find_paragraph(self, label: str) -> Paragraph | None:
        """Return the § with this label; None unless this version has exactly one such §."""
        return self._by_label.get(label_key(label))

    @cached_property
    def _by_label(self) -> dict[tuple[str, str], Paragraph]:
        counts = Counter(label_key(paragraph.label) for paragraph in self.unquoted)
        return {key: paragraph for paragraph in self.unquoted if counts[key := label_key(paragraph.label)] == 1}

    @cached_property
    def unquoted(self) -> list[Paragraph]:
        """The paragraphs (§) of the law itself, without the paragraphs that an article quotes."""
        return [paragraph for paragraph in self.paragraphs if not paragraph.quoted]

    @cached_property
    def live(self) -> list[Paragraph]:
        """The paragraphs that are long enough and not marked as repealed."""
        gone = set(self.system.data.get("repealed", "").split())
        return [
            paragraph
            for paragraph in self.unquoted
            if len(paragraph.words) >= _MIN_WORDS_CHARS
            and gone.isdisjoint(_WORD.findall(f"{paragraph.title} {paragraph.words[:_MIN_WORDS_CHARS]}".lower()))
        ]


def read_law(version: Version) -> Law:
    header = _HEADER.match(version.markdown)
    fields: dict[str, str] = dict(_FIELD.findall(header[1])) if header else {}
    blocks = _split_blocks(version.markdown[header.end() :] if header else version.markdown)
    system = _choose_system(fields, blocks)
    title = next((text for depth, text in blocks if depth == 1), "") or fields.get("title") or fields.get("Title", "")
    full_title, dated = fields.get("full_citation") or title, ""
    if version.start is not None:
        end = write_day(version.end, system) if version.end else ""
        dated = system.data["ended" if end else "version"].format(start=write_day(version.start, system), end=end)
    text, paragraphs = _lay_out([text for text in (full_title, dated) if text], blocks, system)
    return Law(version, fields, title, full_title, dated, text, system, paragraphs)


def _lay_out(
    opening: Sequence[str], blocks: Sequence[tuple[int, str]], system: LegalSystem
) -> tuple[str, tuple[Paragraph, ...]]:
    """Return the printed text of a law, and its § or articles; each ends where the next one or a part begins."""
    lines = [line for text in opening for line in wrap_paragraph(text)]
    at = sum(len(line) + 1 for line in lines)
    heads: list[tuple[Paragraph, int]] = []  # each with the offset of its words; the label of a larger part is empty
    above: list[float] = []  # the ranks of the § or articles to which the next one may belong
    for depth, block in blocks:
        start, is_heading = at, depth > 0 or _is_unmarked_heading(block, system)
        text = _PLACEHOLDER.sub("", block) if is_heading else block
        wrapped = wrap_paragraph(text)
        lines += wrapped
        at += sum(len(line) + 1 for line in wrapped)
        if not is_heading:
            continue
        level, label, title = _read_label(text, system)
        last, body = heads[-1] if heads else (None, 0)
        if level is None and last and last.label and not last.title and body == start:
            heads[-1] = replace(last, title=text), at  # the title below a heading that has only a number
            continue
        unit = level is not None and level.unit
        if level is not None:
            above = [other for other in above if other < level.rank] if unit else []
        heads.append((Paragraph(label if unit else "", title, bool(above), start, start, ""), at))
        above += [level.rank] if level is not None and unit else []
    text = "\n".join(lines)
    ends = [*(head.start - 1 for head, _ in heads[1:]), at - 1]
    return text, tuple(
        replace(head, end=end, words=" ".join(text[body:end].split()))
        for (head, body), end in zip(heads, ends, strict=False)
        if head.label
    )


def _read_label(heading: str, system: LegalSystem) -> tuple[Level | None, str, str]:
    """Return the level, label and title of the division that a heading opens; without a label, the level is None."""
    match = system.label.match(heading)
    if match is not None and (match["number"] or match["before"] or (not heading[match.end() :] and heading.isupper())):
        level, title = system.by_word[match["word"].lower()], heading[match.end() :].strip(" -–—:.")
        if level.text or not title or not title[0].islower():
            return level, match.group().strip(" \xa0.:-–—"), title
    return None, "", ""


def _is_unmarked_heading(text: str, system: LegalSystem) -> bool:
    """Return whether a line is a division's label without `#`, such as `Pododdíl 1`."""
    match = system.label.fullmatch(text) if len(text) < _LINE_LETTERS else None
    level = system.by_word[match["word"].lower()] if match and (match["number"] or match["before"]) else None
    return level is not None and not level.unit and not level.text and level.rank > 1


def _choose_system(fields: dict[str, str], blocks: list[tuple[int, str]]) -> LegalSystem:
    """Return the legal system of the country in the header, else the one whose stop words are the most frequent."""
    words = re.findall(r"[^\W\d_]+", " ".join(text for _, text in blocks[:400]).lower())
    legal = [system for system in load_systems() if system.units]
    country = fields.get("country", "")
    return max(legal, key=lambda s: (country in s.country.split(), sum(word in s.glue for word in words)))


def _split_blocks(markdown: str) -> list[tuple[int, str]]:
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


# ---------------------------------------------------------------- questions

_MAX_CHANGED_WORDS = 60  # most words of a change that an answer quotes
# the text after a reference to a § of the same law; other words may name another law
_ENDS = re.compile(r"\s*(?:[.,;)]|$)")


Gold = Sequence[tuple[Law, Paragraph]]


@dataclass
class QuestionMaker:
    """Makes the questions on one law in all its versions."""

    key: str
    laws: Mapping[str, Sequence[Law]]
    names: Mapping[str, LawName]
    most: int  # most questions of each kind
    ids: set[int]  # of all questions of the bundle

    def __post_init__(self) -> None:
        self.editions = self.laws[self.key]
        self.last = self.editions[-1]
        self.system = self.last.system
        self.steps = [(old, new) for old, new in pairwise(self.editions) if new.version.start]

    def rows(self) -> Iterator[RawRow]:
        """Yield all questions by kind; one kind asks what a provision states, another whether it has changed."""
        for kind in (self._says, self._said, self._governs, self._changed, self._leads, self._repealed, self._before):
            yield from kind()

    def _says(self) -> Iterator[RawRow]:
        for paragraph in self._choose("says", self.last.live):
            yield self._make_row("says", paragraph, paragraph.words, [(self.last, paragraph)])

    def _said(self) -> Iterator[RawRow]:
        dated = [edition for edition in self.editions if edition.version.start]
        for at, edition in enumerate(dated):
            share = self.most // len(dated) + (at < self.most % len(dated))
            for paragraph in self._choose(f"said {edition.version.start}", edition.live)[:share]:
                day = _choose_day(edition, paragraph.label)
                yield self._make_row("said", paragraph, paragraph.words, [(edition, paragraph)], as_of=day)

    def _governs(self) -> Iterator[RawRow]:
        titles = Counter(paragraph.title.casefold() for paragraph in self.last.unquoted)
        alone = [p for p in self.last.live if p.title and titles[p.title.casefold()] == 1]
        for paragraph in self._choose("governs", alone):
            yield self._make_row("governs", paragraph, paragraph.label, [(self.last, paragraph)], title=paragraph.title)

    def _changed(self) -> Iterator[RawRow]:
        pairs: dict[str, list[tuple[tuple[Law, Paragraph], tuple[Law, Paragraph]]]] = {"changed": [], "same": []}
        for old, new in self.steps:
            for before in old.live if old.version.start else ():
                if after := new.find_paragraph(before.label):
                    kind = "changed" if before.words != after.words else "same"
                    pairs[kind].append(((old, before), (new, after)))
        for kind, most in (("changed", self.most - self.most // 3), ("same", self.most // 3)):
            pairs[kind].sort(key=lambda pair: _order(kind, pair[0][0].filename, pair[0][1].label))
            for pair in pairs[kind][:most]:
                (old, before), (new, after) = pair
                answer = self._describe_difference(before.words, after.words)
                as_of, until = _choose_day(old, before.label), _choose_day(new, before.label)
                yield self._make_row("changed", before, answer, pair, as_of=as_of, until=until)

    def _leads(self) -> Iterator[RawRow]:
        references = {source: other for source in self.last.live if (other := self._find_reference(source))}
        for paragraph in self._choose("leads", list(references)):
            words, edition, target = references[paragraph]
            answer = f"{target.label}: {target.words}"
            yield self._make_row("leads", paragraph, answer, [(edition, target)], words=words)

    def _repealed(self) -> Iterator[RawRow]:
        gone = []
        for old, new in self.steps:
            still = {label_key(paragraph.label) for paragraph in new.paragraphs}
            gone += [(new, paragraph) for paragraph in old.live if label_key(paragraph.label) not in still]
        gone.sort(key=lambda pair: _order("repealed", pair[0].filename, pair[1].label))
        for edition, paragraph in gone[: self.most]:
            day = _choose_day(edition, paragraph.label)
            yield self._make_row("repealed", paragraph, "", [], about=edition, as_of=day)

    def _before(self) -> Iterator[RawRow]:
        first = self.editions[0]
        start = first.version.start
        for at, paragraph in enumerate(self._choose("before", first.live)[: max(1, self.most // 3)] if start else ()):
            day = (start or date.min) - timedelta(days=365 * (at + 1) + 30)
            yield self._make_row("before", paragraph, "", [], about=first, as_of=day)

    def _make_row(
        self, kind: str, paragraph: Paragraph, answer: str, gold: Gold, *, about: Law | None = None,
        as_of: date | None = None, until: date | None = None, **named: str,
    ) -> RawRow:  # fmt: skip
        system, unit, key = self.system, paragraph.label, self.key
        day = as_of.isoformat() if as_of else None
        templates = system.data["questions"]["said" if kind in {"repealed", "before"} else kind]
        at = _order(key, kind, unit, day or "", named.get("words", ""))
        law = next(iter(self.names[key].codes), self.last.full_title)
        named |= {name: write_day(value, system) for name, value in (("date", as_of), ("date2", until)) if value}
        question = templates[at % len(templates)].format(unit=unit, law=law, name=self.last.full_title, **named)
        while at in self.ids:
            at += 1
        self.ids.add(at)
        labels: dict[str, Label] = {"kind": kind, "law": key, "paragraph": unit, "language": system.language}
        labels |= {"question_language": system.language, "as_of": day, "other_versions": self._list_near_misses(gold)}
        quotes = tuple(edition.quote(part) for edition, part in gold)
        filename = (about or gold[0][0]).filename
        place = f"{key} {unit} ({kind})"
        return RawRow(at, question, answer, quotes, filename, is_impossible=not gold, labels=labels, place=place)

    def _list_near_misses(self, gold: Gold) -> str:
        """Return the locations of the gold § in other versions of the law, which are wrong answers."""
        given = {edition.filename for edition, _ in gold}
        return " ".join(
            f"{edition.filename}#{paragraph.start}-{paragraph.end}"
            for edition in (self.laws[gold[0][0].version.law] if gold else ())
            if edition.filename not in given and (paragraph := edition.find_paragraph(gold[0][1].label))
        )

    def _choose(self, kind: str, paragraphs: Sequence[Paragraph]) -> list[Paragraph]:
        """Return a sample of a law's paragraphs, which is evenly distributed, and the same on every machine."""
        return sorted(paragraphs, key=lambda paragraph: _order(kind, self.key, paragraph.label))[: self.most]

    def _find_reference(self, paragraph: Paragraph) -> tuple[str, Law, Paragraph] | None:
        words = paragraph.words
        for reference in find_provisions(words, self.system, list(self.names.values())):
            if reference.law is None and not _ENDS.match(words, reference.span.end):
                continue
            editions = self.laws.get(reference.law or self.key, [])
            target = editions[-1].find_paragraph(reference.label) if editions else None
            if target is not None and target is not paragraph and target in editions[-1].live:
                return words[slice(*reference.span)], editions[-1], target
        return None

    def _describe_difference(self, old: str, new: str) -> str:
        texts = self.system.data["questions"]
        if old == new:
            return str(texts["no"])
        before, after = old.split(), new.split()
        edits = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
        removed = _quote_pieces(before[a:b] for tag, a, b, _, _ in edits if tag != "equal")
        added = _quote_pieces(after[a:b] for tag, _, _, a, b in edits if tag != "equal")
        return str(texts["yes"]).format(added=added or "–", removed=removed or "–")


def _choose_day(law: Law, label: str) -> date:
    """Return a day on which the version is in force; if there are more than two, it is not the first or the last."""
    start, end = law.version.start or date.min, law.version.end
    length = (end - start).days if end else 700
    after = 1 + _order("day", law.filename, label) % max(1, length - 1) if length else 0
    return start + timedelta(days=after)


def _quote_pieces(pieces: Iterable[Sequence[str]]) -> str:
    """Join fragments of a text with commas, each in quotation marks; show at most 60 words in total."""
    room = _MAX_CHANGED_WORDS
    shown = []
    for piece in pieces:
        if piece and room > 0:
            shown.append(f"„{' '.join(piece[:room])}{' …' if len(piece) > room else ''}“")
            room -= len(piece)
    return ", ".join(shown)


def _order(*parts: str) -> int:
    return int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:8], 16)  # the same on every machine
