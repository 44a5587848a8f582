"""Laws, their units, and the provisions that a text names: `§ 535 Abs. 1 BGB`, `Section 8.03(b)`, `Schedule 2`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from typing import NamedTuple

from exhibit.evidence import Document, Span
from exhibit.law.language import LegalSystem, load_systems, system_of
from exhibit.law.sentences import split_sentences
from exhibit.law.structure import read_structure
from exhibit.law.structure.headings import parse_roman
from exhibit.law.structure.tree import Section
from exhibit.law.values import find_days
from exhibit.schemas.parsing import read_beside

# ---------------------------------------------------------------- laws

# A law's abbreviation at the end of its title: `Bürgerliches Gesetzbuch (BGB)`.
_ABBREVIATION = re.compile(r"\(([^()]{2,16})\)$")
_DATE = r"(?:\d{4}-\d\d-\d\d|\d{1,2}\.?\s?(?:\d{1,2}\.|[^\W\d]+)\s?\d{4}|[^\W\d]+ \d{1,2}, \d{4})"
_VERSION = re.compile(
    r"(?i)\b(?:version|text in force|wording|znění|znenie|Fassung|redação|versão|rédaction)\b[^.;()\n\d]{0,30}"
    rf"{_DATE}(?:\s(?:to|until|do|bis|até|au)\s{_DATE})?"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_OPENING_LINES = 12  # lines at the start of a law that state its name
_MAX_LAW_NAME_CHARS = 200  # characters of a law's name
_OPENING_CHARS, _FIRST_UNITS = 60_000, 4  # where to search a law's first paragraphs, and how many to examine
_MAX_UNIT_TITLE_CHARS = 110  # characters of a paragraph's heading


@dataclass(frozen=True)
class Edition:
    title: str
    dated: str = ""  # the sentence with the first and last day of the version, as the text writes it

    @property
    def days(self) -> tuple[date | None, date | None]:
        """The first and the last day on which the version is in force; None if the text does not state them."""
        days = find_days(self.dated)
        return (days[0] if days else None), (days[1] if len(days) > 1 else None)

    def holds(self, day: date) -> bool:
        start, end = self.days
        return (start is None or start <= day) and (end is None or day <= end)


def read_edition(text: str) -> Edition | None:
    system = system_of(text)
    labels = [unit.label for unit in find_units(text[:_OPENING_CHARS], system)[:_FIRST_UNITS]]
    numbers = [int(match[0]) for label in labels if (match := re.search(r"\d+", label))]
    roman = any(re.search(r" [IVX]+$", label) for label in labels)
    if not roman and (numbers[:1] != [1] or numbers != sorted(numbers)):
        return None  # the units of a law are numbered upwards from 1, or with Roman numbers
    lines = [line.strip() for line in text.lstrip("\ufeff\n ").split("\n", _OPENING_LINES)[:_OPENING_LINES]]
    at = next((at for at, line in enumerate(lines) if _compile_dated().match(line)), None)
    title = " ".join(lines[:at] if at else lines[:1])
    return Edition(title[:_MAX_LAW_NAME_CHARS], lines[at] if at is not None else "")


@cache
def _compile_dated() -> re.Pattern[str]:
    """Return the pattern for the sentence with the first and last day of a version, in all legal systems."""
    patterns = {system.data[key] for system in load_systems() for key in ("ended", "version") if key in system.data}
    forms = (
        re.escape(p).replace(r"\{start\}", r"[\w. /]{6,20}").replace(r"\{end\}", r"[\w. /]{6,20}") for p in patterns
    )
    return re.compile(rf"(?:{'|'.join(sorted(forms, key=len, reverse=True))})$")


def without_version(text: str) -> str:
    return _VERSION.sub(" ", text)


def make_law_name(title: str) -> "LawName":
    short = _ABBREVIATION.search(title)
    codes = [short[1]] if short else []
    plain = title[: short.start()].strip() if short else title
    for system in load_systems():
        match = re.search(rf"(?<![\w/]){system.data['code']}", title) if "code" in system.data else None
        if match:
            codes.append(match[0])
            plain = title[match.end() :].strip(" ,") or plain
            break
    return LawName(title, tuple(codes), plain)


class Unit(NamedTuple):
    label: str
    title: str
    span: Span


def find_units(text: str, system: LegalSystem) -> list[Unit]:
    """Return the units (§ or articles) of a law in order; each ends where the next unit or a larger part begins."""
    heads = []
    # the English system defines no units
    for match in re.finditer(r"^.+$", text, re.MULTILINE) if system.units else ():
        found = system.label.match(match[0])
        if found is None or not (found["number"] or found["before"]):
            continue
        level, rest = system.by_word[found["word"].lower()], match[0][found.end() :].strip()
        if rest and not level.text and (rest[0].islower() or rest.split()[0] in system.follows or rest[0] in ",;)"):
            continue
        heads.append((match.start(), match.end(), level, found.group().strip(" \xa0.:-–—"), rest))
    ends = [*(head[0] for head in heads[1:]), len(text)][: len(heads)]
    return [
        Unit(label, rest or _read_heading_below(text, end), Span(start, following))
        for (start, end, level, label, rest), following in zip(heads, ends, strict=True)
        if level.unit
    ]


def _read_heading_below(text: str, at: int) -> str:
    line = text[at + 1 : at + 2 + _MAX_UNIT_TITLE_CHARS].split("\n", 1)[0].strip()
    return line if line and line[0].isupper() and line[-1] not in ".,;:" and len(line) < _MAX_UNIT_TITLE_CHARS else ""


_MIN_STEM_LETTERS, _MAX_ENDING_LETTERS = 4, 3
"""Forms of a word (`občanský`, `občanského`) share at least their first four letters; an ending has at most three."""
_MAX_WORDS_TO_LAW = 4  # words between a provision and the title of its law, such as `des` or `zákona č. …, o`


@dataclass(frozen=True)
class LawName:
    key: str
    codes: tuple[str, ...]  # names that mean only this law, as written: `89/2012 Sb.`, `BGB`
    title: str = ""

    def find_end(self, text: str, *, near: int = _MAX_WORDS_TO_LAW) -> int:
        for code in self.codes:
            if match := re.search(rf"(?<![^\W_]){re.escape(code)}(?![^\W_])", text):
                return match.end()
        wanted = [word for word in _WORD.findall(self.title) if len(word) > 2]
        given = [match for match in _WORD.finditer(text) if len(match[0]) > 2]
        for at in range(min(near, len(given) - len(wanted) + 1)) if wanted else ():
            if all(_are_inflected(match[0], word) for match, word in zip(given[at:], wanted, strict=False)):
                return given[at + len(wanted) - 1].end()
        return 0


def _are_inflected(word: str, other_word: str) -> bool:
    """Return whether two words differ only at the end, so that they may be forms of one word: `zákoník`, `zákoníku`."""
    short, long = sorted((word.casefold(), other_word.casefold()), key=len)
    return len(long) - len(short) <= _MAX_ENDING_LETTERS and long.startswith(
        short[: max(_MIN_STEM_LETTERS, len(short) - _MAX_ENDING_LETTERS)]
    )


@cache
def label_key(label: str) -> tuple[str, str]:
    """Return a key that all labels of a unit share, such as `Art. 5` and `Artigo 5º`; other units have other keys."""
    word, _, number = label.replace("\xa0", " ").partition(" ")
    return "§" if word.startswith("§") else word[:1].casefold(), re.sub(r"[ºª°.\s]|(?<=\d)er$", "", number).casefold()


# ---------------------------------------------------------------- names of provisions

_HEIGHTS = {"schedule": 0, "part": 1, "recital": 2, "article": 2, "unit": 3, "": 3}
"""The level of each unit; a unit without a level is part of another unit: a paragraph, a sentence, a letter."""
_LOWEST_HEIGHT = 4  # lower than every unit
_KINDS = {"schedule": "schedule", "article": "article", "paragraph": "unit", "section": "unit", "clause": "unit"}
"""The unit in this module for each kind of part in the files of legal systems."""
_MAX_RANGE_NUMBERS = 60  # most numbers of a list or a range; only the ends of a longer one are read
_MAX_CHARS_TO_LAW = 90  # characters after a provision in which its law is named
_MAX_NAME_CHARS = 400  # most characters of the name of a provision

_NUMBER = r"(?:\d{1,4}[a-z]{0,2}(?:[.\-–]\d{1,4}[a-z]{0,2}){0,4}|[IVXLC]{1,7}|[A-Z]|[a-z]{1,2})(?:\.?[ºª°])?(?!\w)"
_BRACKETS = r"(?:[ ]?\([0-9A-Za-z]{1,5}\)){0,5}"
_NEXT = re.compile(r"\s?(?P<range>bis|to|through|až|–|-)\s?|\s?(?:,|und|and|or|oder|sowie|a|&|/)\s?")
_LISTED = re.compile(rf"\d{{1,4}}[a-z]{{0,2}}(?:\.\d{{1,4}}[a-z]{{0,2}}){{0,4}}(?![\w.]\w|\w){_BRACKETS}")
_GLUE = re.compile(
    r"(?:[\s,;.()\[\]:–—-]|(?<!\w)(?:of|to|in|the|des|der|zum|zur|dem|im|from|under|pursuant|i\.?V\.?m\.?|iVm|ff?\.?|und|and|"
    r"od|vom|see|vgl\.|gemäß|nach|et seq\.?)(?!\w))+"
)
_OUTWARD = re.compile(r"\s*+,?\s*+(?:of|to|in|zu|zum|zur|des|der|k|ke)\s++(?:the\s++|this\s++)?")
_CLAUSE = re.compile(r",[ \xa0]([IVXLC]{1,7})(?!\w)")  # Portuguese: `art. 5º, XXXV`
_SLUG = re.compile(
    r"(?P<source>[^\W\d][^\d]{0,60}?|SR \d{3}(?:\.\d+)*)[\s\-/]{1,3}"
    r"(?P<number>\d{1,4}[a-z]{0,2}(?:\.\d{1,4}[a-z]{0,2}){0,3})"
    r"(?P<below>(?:-\d{1,3}){0,2})(?P<brackets>(?:\([0-9A-Za-z]{1,5}\)){0,4})"
)
_BARE = re.compile(
    r"(?P<number>\d{1,4}[a-z]{0,2}(?:\.\d{1,4}[a-z]{0,2}){1,4})(?P<brackets>(?:\([0-9A-Za-z]{1,5}\)){0,4})"
)


class ProvisionStep(NamedTuple):
    sort: str  # `schedule`, `part`, `recital`, `article`, `unit`, a lower part, or empty if there is no word
    word: str
    number: str


_Path = tuple[ProvisionStep, ...]


class NamedProvision(NamedTuple):
    label: str  # the name as it is written
    source: str
    path: _Path


@cache
def list_unit_sorts() -> dict[str, str]:
    sorts = {word: sort for sort, words in read_beside(__file__)["units"].items() for word in words.split()}
    for system in load_systems():
        for level in system.levels:
            kind = _KINDS.get(level.kind, "part")
            sorts |= {word: kind for word in level.words if word not in sorts and len(word) > 1}
        for sort, words in system.data.get("below", {}).items():
            known = sort if sort in ("paragraph", "sentence", "point", "letter") else "point"
            sorts |= {word.lower(): known for word in words.split() if word.lower() not in sorts and len(word) > 1}
    return dict(sorted(sorts.items(), key=lambda item: (-len(item[0]), item[0])))


@cache
def _make_unit_pattern(system: LegalSystem | None = None) -> re.Pattern[str]:
    """Return the pattern for a unit and its number, such as `Article 5`, in all languages or in a system's language."""
    words = list(list_unit_sorts())
    if system is not None:
        below = (word for words in system.data.get("below", {}).values() for word in words.split())
        words = sorted({*_list_unit_words(system), *map(str.lower, below)}, key=len, reverse=True)
    forms = "|".join(map(re.escape, words))
    return re.compile(rf"(?<![\w§])(?P<word>(?i:{forms}))[ \xa0]?(?P<number>{_NUMBER})(?P<brackets>{_BRACKETS})")


def _list_unit_words(system: LegalSystem) -> frozenset[str]:
    levels = (level for level in system.levels if level.unit or (not system.units and level.rank >= 4))
    return frozenset(form for level in levels for word in level.words for form in (word, word.replace("§", "§§", 1)))


def read_provisions(text: str, *, bare: bool = True) -> list[NamedProvision]:
    """Return the provisions that a short text names, in order; lists and ranges give a provision for each number."""
    if len(text) > _MAX_NAME_CHARS:
        return []
    plain = text.replace("\xa0", " ").replace("_", " ").strip()
    named = list(_read_worded(plain))
    if named or not bare:
        return named
    match = _BARE.fullmatch(plain) or _SLUG.fullmatch(plain.replace(":", " "))
    if match is None:
        return []
    fields = match.groupdict("")
    below = [ProvisionStep("paragraph", "", number) for number in fields.get("below", "").split("-") if number]
    path = (ProvisionStep("", "", fields["number"]), *_read_brackets(fields["brackets"]), *below)
    return [NamedProvision(text.strip(), fields.get("source", "").strip(" -"), path)]


class _Cited(NamedTuple):
    start: int
    end: int
    paths: list[_Path]


def _read_worded(text: str) -> Iterator[NamedProvision]:
    cited = _group_steps(text)
    ends = [*(citation.start for citation in cited[1:]), len(text)]
    after = [_find_source(text[citation.end : end]) for citation, end in zip(cited, ends, strict=False)]
    before = _find_source(text[: cited[0].start]) if cited else ""
    # "BGB § 535, GG Art. 5" names the law before its provision, "§ 535 und § 536 BGB" after the last one
    sources = [before, *after[:-1]] if before else after[::-1]
    for at in range(1, len(sources)):
        sources[at] = sources[at] or sources[at - 1]
    if not before:
        sources.reverse()
    for citation, source in zip(cited, sources, strict=True):
        for path in citation.paths:
            steps = (f"({step.number})" if step.sort == "bracket" else f" {step.word} {step.number}" for step in path)
            alone = len(cited) * len(citation.paths) == 1
            yield NamedProvision(text if alone else " ".join(f"{''.join(steps)} {source}".split()), source, path)


def _find_source(gap: str) -> str:
    """Return the name of the law in the text beside a cited provision: `BGB` for `of the BGB`; empty without one."""
    words = _GLUE.sub(" ", f" {gap} ").strip()
    return words if re.search(r"\w", words) else ""


def _group_steps(text: str, system: LegalSystem | None = None) -> list[_Cited]:
    """Return the provisions that a text cites.

    With a legal system, only the first provision of a list is returned: § 664 of `§§ 664 bis 670`.
    """
    cited: list[_Cited] = []
    for match in _make_unit_pattern(system).finditer(text):
        sort = list_unit_sorts()[match["word"].lower()]
        if match["number"].islower() and match["number"].isalpha() and sort not in ("letter", "point"):
            continue  # "Section a" has no number
        below = sort not in _HEIGHTS
        numbers, end = _read_number(text, match, sort) if system else _read_numbers(text, match, below=below)
        paths = [(ProvisionStep(sort, match["word"], number), *inside) for number, inside in numbers]
        # laws of the other systems do not nest units
        if cited and len(cited[-1].paths) == 1 and (below or system is None):
            outer = cited[-1].paths[0]
            if _goes_on(outer[-1], sort, text[cited[-1].end : match.start()]):
                paths = [tuple(sorted([*outer, *path], key=_rank_height)) for path in paths]
                cited[-1] = _Cited(cited[-1].start, end, paths)
                continue
        cited.append(_Cited(match.start(), end, paths))
    return cited


def _read_number(text: str, match: re.Match[str], sort: str) -> tuple[list[tuple[str, _Path]], int]:
    if clause := _CLAUSE.match(text, match.end()):
        return [(match["number"], (ProvisionStep("point", "", clause[1]),))], clause.end()
    end = match.end() + (sort == "letter" and text.startswith(")", match.end()))  # Czech: `písm. b)`
    return [(match["number"], _read_brackets(match["brackets"]))], end


def _rank_height(step: ProvisionStep) -> int:
    return _HEIGHTS.get(step.sort, _LOWEST_HEIGHT)


def _goes_on(last: ProvisionStep, sort: str, gap: str) -> bool:
    if not _GLUE.fullmatch(gap or " "):
        return False
    inner, outer = _HEIGHTS.get(sort, _LOWEST_HEIGHT), _rank_height(last)
    if _OUTWARD.fullmatch(gap):
        return inner < outer
    return (inner > outer or inner == _LOWEST_HEIGHT) and ";" not in gap and "und" not in gap and "and" not in gap


def _read_numbers(text: str, match: re.Match[str], *, below: bool) -> tuple[list[tuple[str, _Path]], int]:
    """Return the numbers after a word such as `Section` in a citation, and the offset of their end."""
    word, number, end = match["word"].lower(), match["number"], match.end()
    plural = word == "§§" or word in ("ss.", "arts.", "artt.") or (word.endswith("s") and word not in ("abs", "ss"))
    if plural and (ends := re.fullmatch(r"(\d+)[-–](\d+)", number)):
        return [(str(number), ()) for number in _list_range(int(ends[1]), int(ends[2]))], end
    plural = plural or below  # a lower part may be a list without a plural: "Abs. 1, 3"
    numbers = [(number.rstrip("ºª°"), _read_brackets(match["brackets"]))]
    while plural and (mark := _NEXT.match(text, end)) and (item := _LISTED.match(text, mark.end())):
        digits, _, brackets = item[0].partition("(")
        last = numbers[-1][0]
        if mark["range"] and last.isdigit() and digits.isdigit():
            numbers += [(str(number), ()) for number in _list_range(int(last), int(digits))[1:-1]]
        numbers.append((digits.strip(), _read_brackets(f"({brackets}" if brackets else "")))
        end = item.end()
    return numbers, end


def _list_range(low: int, high: int) -> list[int]:
    return list(range(low, high + 1)) if 0 < high - low < _MAX_RANGE_NUMBERS else [low, high]


def _read_brackets(brackets: str) -> _Path:
    return tuple(ProvisionStep("bracket", "", part) for part in re.findall(r"\(([^()]+)\)", brackets))


@dataclass(frozen=True)
class Provision:
    span: Span
    label: str  # the unit as the law's own heading writes it: `§ 2079`, `Art. 5`
    below: tuple[str, ...] = ()  # the numbers of the parts below the unit, outermost first: paragraph 1, letter b
    law: str | None = None  # the key of the law that the reference names; None if it names no known law


def find_provisions(text: str, system: LegalSystem, laws: Sequence[LawName] = ()) -> Iterator[Provision]:
    units = _list_unit_words(system)
    cited = [each for each in _group_steps(text, system) if each.paths[0][0].word.lower() in units]
    for citation, end in zip(cited, [*(each.start for each in cited[1:]), len(text)], strict=False):
        clause = re.split(r"[;:?!“”„]", text[citation.end : min(end, citation.end + _MAX_CHARS_TO_LAW)])[0]
        named = ((law.find_end(clause), law.key) for law in laws)
        length, law = max(((taken, key) for taken, key in named if taken), default=(0, None))
        unit, *below = citation.paths[0]
        label = f"{unit.word.replace('§§', '§')} {unit.number.rstrip('.')}"
        yield Provision(Span(citation.start, citation.end + length), label, tuple(s.number for s in below), law)


def list_number_forms(number: str) -> frozenset[str]:
    """Return the equivalent forms of a number: `ix` and `9` for `IX`, `8.03` and `8.3` for `8.03`."""
    plain = number.casefold().strip(" .()º°ª:-–—")
    forms = {plain, re.sub(r"(?<=\.)0+(?=\d)", "", plain)}
    if number.strip(" .()").isupper() and (value := parse_roman(plain)):
        forms.add(str(value))
    return frozenset(forms)


_LABEL = re.compile(r"(?P<word>\D{0,100}?)[ \xa0]*+(?P<number>[\divxlcIVXLC][\w.\-–]*+|[A-Za-z])[\W_]*+")
"""Matches a section's label, such as `Article IV`; no word for a kind of unit is longer than 100 characters."""
_RECITALS_SHARE = 0.5  # share of a document, from its start, that contains its recitals

_BARE_SORTS = ("unit", "article", "", "paragraph", "point")  # headings may be only numbers: `2.01 Rent`
# if so many headings have the word of a kind, such as `Article`, all headings of that kind are expected to have it
_MIN_WORDED_HEADINGS = 3


class ProvisionPlace(NamedTuple):
    spans: tuple[Span, ...]
    whole: bool = False


class _Labelled(NamedTuple):
    section: Section
    sort: str
    forms: frozenset[str]
    bracketed: bool


@dataclass
class ProvisionIndex:
    document: Document

    @cached_property
    def _sections(self) -> list[_Labelled]:
        labelled = []
        for section in read_structure(self.document).walk():
            if match := _LABEL.fullmatch(section.label):
                word = match["word"].strip(" (\xa0").lower()
                worded = word or not match["number"][0].isdigit()  # IV alone is a chapter, not section 4
                sort = list_unit_sorts().get(word, list_unit_sorts().get(f"{word}.", "part" if worded else ""))
                bracketed = section.label.strip().startswith("(")
                labelled.append(_Labelled(section, sort, list_number_forms(match["number"]), bracketed))
        return labelled

    def find(self, named: NamedProvision) -> list[ProvisionPlace]:
        places = (self._find_within(span, named.path[1:]) for span in self._find_top(named.path[0]))
        return [place for place in places if place.spans]

    def _find_top(self, step: ProvisionStep) -> list[Span]:
        forms = list_number_forms(step.number)
        if step.sort == "recital":
            return self._find_lines(
                rf"\(?{re.escape(step.number)}[.)]", r"\(?(?:\d{1,3}|[A-Z])[.)]", within=_RECITALS_SHARE
            )
        found = [entry for entry in self._sections if entry.forms & forms and not entry.bracketed]
        same = [entry for entry in found if entry.sort == step.sort != ""]
        if not step.sort:
            same = [entry for entry in found if entry.sort in ("unit", "article")]
        bare = [entry for entry in found if not entry.sort and step.sort in _BARE_SORTS]
        # if the headings of articles have this word, a bare number is a point of a list
        worded = sum(entry.sort == step.sort for entry in self._sections) >= _MIN_WORDED_HEADINGS
        if not same and worded and (lined := self._find_begun(step)):
            return lined
        parts = [entry for entry in found if step.sort in ("paragraph", "point") and entry.sort in ("unit", "article")]
        chosen = _keep_outermost(same or bare or parts)
        return [_find_own_span(entry.section) for entry in chosen] or self._find_begun(step)

    def _find_begun(self, step: ProvisionStep) -> list[Span]:
        """Return the ranges of text that begin with the word and number of `step`, such as a line `Article 5`."""
        words = "|".join(re.escape(word) for word, sort in list_unit_sorts().items() if sort == step.sort)
        word = rf"(?:{words})[ \xa0]*" if words else r"(?:§[ \xa0]?|[^\W\d]{1,12}\.?[ \xa0])?"
        lined = self._find_lines(rf"{word}{re.escape(step.number)}(?![\w]|\.\d)", rf"{word}\d{{1,4}}")
        if not lined and step.sort in ("unit", "article") and "." in step.number:
            lined = self._find_lines(rf"{re.escape(step.number)}(?![\w]|\.\d)", r"\d{1,3}\.\d{1,3}")
        return lined

    def _find_lines(self, begins: str, ends: str, *, within: float = 1.0) -> list[Span]:
        """Return the ranges from lines that match `begins` to the next line that matches `ends` or is a heading."""
        text = self.document.text
        limit = int(within * len(text))
        starts = [match.start() for match in re.finditer(rf"(?m)^[ \t#*]*(?:{begins})", text, re.IGNORECASE)]
        ahead = re.compile(rf"(?m)^[ \t#*]*(?:{ends})", re.IGNORECASE)
        spans = []
        for start in (start for start in starts if start <= limit):
            following = ahead.search(text, text.find("\n", start) + 1 or len(text))
            heads = [entry.section.title.start for entry in self._sections if not entry.bracketed and entry.sort]
            later = [head for head in heads if head > start] + ([following.start()] if following else [])
            spans.append(Span(start, min(later, default=len(text))))
        # the table of contents and the text both match; the longer range is the text
        longest = max((span.end - span.start for span in spans), default=0)
        return [span for span in spans if 4 * (span.end - span.start) > longest]

    def _find_within(self, span: Span, below: Sequence[ProvisionStep]) -> ProvisionPlace:
        part: Span | None = span
        for step in below:
            if part := self._find_part(span, step):
                span = part
            else:
                break
        return ProvisionPlace(self.document.cut_furniture(span), whole=part is None)

    def _find_part(self, span: Span, step: ProvisionStep) -> Span | None:
        text = self.document.text
        if step.sort == "sentence":
            words = text[slice(*span)]  # a label such as `a)` alone is not a sentence
            parts = [
                each
                for each in split_sentences(words)
                if re.search(r"\w{2}", re.sub(r"^\W*\w{1,4}\)", "", words[slice(*each)]))
            ]
            at = int(step.number) - 1 if step.number.isdigit() else -1
            return Span(span.start + parts[at].start, span.start + parts[at].end) if 0 <= at < len(parts) else None
        forms = list_number_forms(step.number)
        inside = [
            entry
            for entry in self._sections
            if span.start <= entry.section.title.start
            and entry.section.span.end <= span.end
            and entry.forms & forms
            and _find_own_span(entry.section) != span
        ]
        if inside:
            return _find_own_span(_keep_outermost(inside)[0].section)
        return _find_numbered_part(text, span, step.number)


def _find_own_span(section: Section) -> Span:
    """Return a section's span from its heading to its end, without the headings above it."""
    start = section.title.start if section.span.start <= section.title.start < section.span.end else section.span.start
    return Span(start, section.span.end)


def _keep_outermost(found: Sequence[_Labelled]) -> list[_Labelled]:
    """Return the sections of the highest level; if several have the same heading, only the longest is returned."""
    highest = min((entry.section.level for entry in found), default=0)
    longest: dict[str, _Labelled] = {}  # a shorter one is a line of the table of contents
    for entry in (entry for entry in found if entry.section.level == highest):
        other = longest.setdefault(entry.section.heading, entry)
        if entry.section.span.end - entry.section.span.start > other.section.span.end - other.section.span.start:
            longest[entry.section.heading] = entry
    return list(longest.values())


def _find_numbered_part(text: str, span: Span, number: str) -> Span | None:
    """Return the span of a numbered part: from `(b)` to the next such label, or from a line `2.` to the line `3.`."""
    escaped, bracketed = re.escape(number), r"\d{1,3}" if number.isdigit() else "[A-Za-z]{1,5}"
    listed = r"\d{1,3}[a-z]?" if number[0].isdigit() else "[A-Za-z]{1,2}"
    for begins, ends in (
        (rf"(?i)(?:^|(?<=[\s;:,.]))\({escaped}\)", rf"(?<=[\s;:,.])\({bracketed}\)"),
        (rf"(?m)^[ \t]*{escaped}[.)]\s", rf"(?m)^[ \t]*{listed}[.)]\s"),
    ):
        if start := re.compile(begins).search(text, *span):
            following = re.compile(ends).search(text, start.end(), span.end)
            return Span(start.start(), following.start() if following else span.end)
    return None
