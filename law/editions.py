"""A law as a document: its name, the days of its version, and its paragraphs, read from its own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from exhibit.evidence import Span
from exhibit.law.days import find_days
from exhibit.law.provisions import LawName
from exhibit.law.system import System, system_of, systems

_OPENING = 12  # lines in which a law says what it is
_LONGEST = 200  # characters of its name
_NEAR, _FIRST = 60_000, 4
"""Characters in which a law's first paragraphs stand, and how many of them are looked at."""
_TITLE = 110  # characters of a paragraph's heading
_SHORT = re.compile(r"\(([^()]{2,16})\)$")
"""A law's abbreviation at the end of its title: `Bürgerliches Gesetzbuch (BGB)`."""


@dataclass(frozen=True)
class Edition:
    """A version of a law, by what it says of itself."""

    title: str
    dated: str = ""
    """The days of its version, as they are written."""

    @property
    def days(self) -> tuple[date | None, date | None]:
        """The first and the last day on which it is in force; None where that is not said."""
        days = find_days(self.dated)
        return (days[0] if days else None), (days[1] if len(days) > 1 else None)

    def holds(self, day: date) -> bool:
        """Return whether it is the law of a day."""
        start, end = self.days
        return (start is None or start <= day) and (end is None or day <= end)


def read_edition(text: str) -> Edition | None:
    """Return what a document says of itself where it is a law of a known system; None for all others."""
    system = system_of(text)
    if not system.units or not _counts_up(units(text[:_NEAR], system)):
        return None
    lines = [line.strip() for line in text.lstrip("\ufeff\n ").split("\n", _OPENING)[:_OPENING]]
    at = next((at for at, line in enumerate(lines) if _dated().match(line)), None)
    title = " ".join(lines[:at] if at else lines[:1])
    return Edition(title[:_LONGEST], lines[at] if at is not None else "")


def _counts_up(found: list[Unit]) -> bool:
    """Whether paragraphs are a law's own: they begin with the first and go on; those that a judgment cites do not."""
    numbers = [int(match[0]) for unit in found[:_FIRST] if (match := re.search(r"\d+", unit.label))]
    roman = [unit for unit in found[:_FIRST] if re.search(r" [IVX]+$", unit.label)]
    return bool(roman) or (bool(numbers) and numbers[0] == 1 and numbers == sorted(numbers))


@cache
def _dated() -> re.Pattern[str]:
    """How a version says from when to when it is in force, in any of the systems."""
    patterns = {system.data[key] for system in systems() for key in ("ended", "version") if key in system.data}
    forms = (
        re.escape(p).replace(r"\{start\}", r"[\w. /]{6,20}").replace(r"\{end\}", r"[\w. /]{6,20}") for p in patterns
    )
    return re.compile(rf"(?:{'|'.join(sorted(forms, key=len, reverse=True))})$")


_DATE = r"(?:\d{4}-\d\d-\d\d|\d{1,2}\.?\s?(?:\d{1,2}\.|[^\W\d]+)\s?\d{4}|[^\W\d]+ \d{1,2}, \d{4})"
_VERSION = re.compile(
    r"\b(?:version|text in force|wording|znění|znenie|Fassung|redação|versão|rédaction)\b[^.;()\n\d]{0,30}"
    rf"{_DATE}(?:\s(?:to|until|do|bis|até|au)\s{_DATE})?",
    re.IGNORECASE,
)


def without_version(text: str) -> str:
    """Return an answer without what says which version of a law it stands on: `(Text in force from 1 July 2018)`."""
    return _VERSION.sub(" ", text)


def law_name(title: str) -> LawName:
    """Return the names by which references and questions know a law, from its title."""
    short = _SHORT.search(title)
    codes = [short[1]] if short else []
    plain = title[: short.start()].strip() if short else title
    for system in systems():
        match = re.search(rf"(?<![\w/]){system.data['code']}", title) if "code" in system.data else None
        if match:
            codes.append(match[0])
            plain = title[match.end() :].strip(" ,") or plain
            break
    return LawName(title, (*codes, *english_names(codes)), plain)


def english_names(codes: Sequence[str]) -> tuple[str, ...]:
    """Return what English calls the law of a number or an abbreviation, with its country and without."""
    for system in systems():
        for name in (system.data.get("english", {}).get(code) for code in codes):
            if name:
                return f"{system.data['adjective']} {name}", name
    return ()


@dataclass(frozen=True)
class Unit:
    """A § or an article of a law's text."""

    label: str
    title: str
    span: Span


def units(text: str, system: System) -> list[Unit]:
    """Return the paragraphs of a law in order, each to where the next or a larger part begins."""
    heads = []
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
        Unit(label, rest or _below(text, end), Span(start, following))
        for (start, end, level, label, rest), following in zip(heads, ends, strict=True)
        if level.unit
    ]


def _below(text: str, at: int) -> str:
    """Return the line below a paragraph's number where it reads as its heading."""
    line = text[at + 1 : at + 2 + _TITLE].split("\n", 1)[0].strip()
    return line if line and line[0].isupper() and line[-1] not in ".,;:" and len(line) < _TITLE else ""
