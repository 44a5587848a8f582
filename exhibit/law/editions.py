"""Laws as documents, and references to laws."""

import re
from dataclasses import dataclass
from datetime import date
from functools import cache

from exhibit.evidence import Span
from exhibit.law.language import LegalSystem, load_systems, system_of
from exhibit.law.values import find_days

# A law's abbreviation at the end of its title: `Bürgerliches Gesetzbuch (BGB)`.
_ABBREVIATION = re.compile(r"\(([^()]{2,16})\)$")
_DATE = r"(?:\d{4}-\d\d-\d\d|\d{1,2}\.?\s?(?:\d{1,2}\.|[^\W\d]+)\s?\d{4}|[^\W\d]+ \d{1,2}, \d{4})"
_VERSION = re.compile(
    r"(?i)\b(?:version|text in force|wording|znění|znenie|Fassung|redação|versão|rédaction)\b[^.;()\n\d]{0,30}"
    rf"{_DATE}(?:\s(?:to|until|do|bis|até|au)\s{_DATE})?"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_OPENING_LINES = 12  # lines at the start of a law that state its name
_MAX_NAME_CHARS = 200  # characters of a law's name
_OPENING_CHARS, _FIRST_UNITS = 60_000, 4  # characters with a law's first paragraphs; the number of these examined
_MAX_TITLE_CHARS = 110  # characters of a paragraph's heading


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
    if not system.units or not _counts_up(find_units(text[:_OPENING_CHARS], system)):
        return None
    lines = [line.strip() for line in text.lstrip("\ufeff\n ").split("\n", _OPENING_LINES)[:_OPENING_LINES]]
    at = next((at for at, line in enumerate(lines) if _compile_dated().match(line)), None)
    title = " ".join(lines[:at] if at else lines[:1])
    return Edition(title[:_MAX_NAME_CHARS], lines[at] if at is not None else "")


def _counts_up(found: "list[Unit]") -> bool:
    """Return whether units are numbered as in a law: upwards from 1, or with Roman numbers."""
    numbers = [int(match[0]) for unit in found[:_FIRST_UNITS] if (match := re.search(r"\d+", unit.label))]
    roman = [unit for unit in found[:_FIRST_UNITS] if re.search(r" [IVX]+$", unit.label)]
    return bool(roman) or (bool(numbers) and numbers[0] == 1 and numbers == sorted(numbers))


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


@dataclass(frozen=True)
class Unit:
    label: str
    title: str
    span: Span


def find_units(text: str, system: LegalSystem) -> list[Unit]:
    """Return the units (§ or articles) of a law in order; each ends where the next unit or a larger part begins."""
    heads = []
    if not system.units:
        return []  # English laws: the system has no word that cites a part of them
    for match in re.finditer(r"^.+$", text, re.MULTILINE):
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
    line = text[at + 1 : at + 2 + _MAX_TITLE_CHARS].split("\n", 1)[0].strip()
    return line if line and line[0].isupper() and line[-1] not in ".,;:" and len(line) < _MAX_TITLE_CHARS else ""


_MIN_STEM_LETTERS, _MAX_ENDING_LETTERS = 4, 3
"""The least number of letters that the cases of a word share, and the most letters of its ending: `občanský`,
`občanského`.
"""
_MAX_WORDS_TO_LAW = 4  # words between a provision and the title of its law, such as `des` or `zákona č. …, o`


@dataclass(frozen=True)
class LawName:
    key: str
    codes: tuple[str, ...]  # names that mean only this law, as written: `89/2012 Sb.`, `BGB`
    title: str = ""

    def find_end(self, text: str, *, near: int = _MAX_WORDS_TO_LAW) -> int:
        for code in self.codes:
            at = text.find(code)
            while at >= 0:
                end = at + len(code)
                if not text[at - 1 : at].isalnum() and not text[end : end + 1].isalnum():
                    return end
                at = text.find(code, end)
        wanted = [word for word in _WORD.findall(self.title) if len(word) > 2]
        given = [match for match in _WORD.finditer(text) if len(match[0]) > 2]
        for at in range(min(near, len(given) - len(wanted) + 1)) if wanted else ():
            if all(_are_inflected(match[0], word) for match, word in zip(given[at:], wanted, strict=False)):
                return given[at + len(wanted) - 1].end()
        return 0


def _are_inflected(one: str, other: str) -> bool:
    """Return whether two words may be forms of one word: they differ only at the end, like `zákoník` and `zákoníku`."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return len(long) - len(short) <= _MAX_ENDING_LETTERS and long.startswith(
        short[: max(_MIN_STEM_LETTERS, len(short) - _MAX_ENDING_LETTERS)]
    )


@cache
def label_key(label: str) -> tuple[str, str]:
    """Return a key that is equal for all labels of one unit (`Art. 5`, `Artigo 5º`), but not for `§ 5` and `§ 5a`."""
    word, _, number = label.replace("\xa0", " ").partition(" ")
    return "§" if word.startswith("§") else word[:1].casefold(), re.sub(r"[ºª°.\s]|(?<=\d)er$", "", number).casefold()
