"""Sections, chapters, annexes and appendices of court guides; a guide's name alone is a source, not a reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from exhibit.law.references.numbers import read_numbers
from exhibit.law.references.reference import Path
from exhibit.law.references.stretch import Stretch, stretch

_ALIASES = {
    "ccg": "commercial court",
    "tcc": "technology and construction court",
    "kb": "kings bench",
    "kbd": "kings bench",
    "qb": "kings bench",
    "qbd": "kings bench",
    "queens bench": "kings bench",
    "ipec": "intellectual property enterprise court",
    "scco": "senior courts costs office",
    "patents": "patents court",
    "commercial": "commercial court",
    "admiralty and commercial courts": "commercial court",
    "administrative": "administrative court",
}
_NAME = re.compile(
    r"""(?<!\w)(?:(?:(?:[A-Z][a-z]+(?:['’]?s|s['’])?|TCC|KBD?|QBD?|IPEC|SCCO)\s+(?:and\s+)?){1,6}Guide(?:\s+20\d\d)?\b
    |CCG\b)""",
    re.VERBOSE,
)
_LEAD = re.compile(r"(?:(?:the|see|under|in|this|that|of|per|by|and|both|wales|business|property|courts|judiciary) )+")
_UNIT = re.compile(
    r"""(?<!\w)(?P<unit>(?:[Ss]ub[-\s]?)?[Ss]ections?|[Pp]aragraphs?|[Pp]aras?\.?|[Cc]hapters?|§§?
    |(?:[Aa]nnex|ANNEX)(?:es)?|[Aa]ppendi(?:x|ces)|APPENDIX)\s*(?=[\dA-Z(])""",
    re.VERBOSE,
)
_TO_NAME = re.compile(r",?\s+(?P<of>(?:of|to|in)\s+)?(?:(?:the|this)\s+)?(?=[A-Z])")
_AFTER_NAME = re.compile(r"(?:\s*\([^()\n]{1,30}\))?[,:]?\s*(?:at\s+)?")
_NUMBER_ALONE = re.compile(r"(?:[A-Z]\.?\d+(?:\.\d+)*|\d{1,2}(?:\.\d{1,3})+)(?![\w%])")
_OF_SOMETHING = re.compile(
    r"\s+(?:of|to|in)\s+(?:(?:this|that|the|these|an?|its?|your|our)\s+)?(?:\0|[A-Za-z]+)(?<!\sthe)", re.IGNORECASE
)
_OF_GUIDE = re.compile(r"\s+(?:of|to|in)\s+(?:the|that|(?P<own>this))\s+[Gg]uide\b")


class Guide(NamedTuple):
    """A guide as it is named at a place."""

    start: int
    end: int
    name: str


class _Unit(NamedTuple):
    start: int
    end: int
    paths: list[Path]
    fixed: bool
    """Annexes and numbers with a letter: only guides have those, so they need not name theirs."""


def guide_name(text: str) -> str:
    """Return a guide's name in one form: `kings bench` for the King's Bench Division Guide 2025."""
    plain = re.sub(r"['’]", "", " ".join(text.split())).lower()
    plain = re.sub(r" ?guide(?: \d{4})?$", "", plain).replace(" division", "")
    plain = plain.rpartition(" the ")[2]
    lead = _LEAD.match(f"{plain} ")
    plain = plain[lead.end() :].strip() if lead else plain
    return _ALIASES.get(plain, plain)


def name_guides(text: str) -> list[Guide]:
    """Return every guide that a text names, in order."""
    return [
        Guide(match.start(), match.end(), name) for match in _NAME.finditer(text) if (name := guide_name(match.group()))
    ]


def find_guides(text: str) -> Iterator[Stretch]:
    """Yield places in guides; one that does not say in which guide is in the last one named."""
    named = name_guides(text)
    known: list[tuple[str, Path]] = []
    for unit in sorted(_units(text, named)):
        guide = _named_by(text, unit, named)
        if guide is None:
            guide = _understood(text, unit, named, known)
        if guide is not None:
            known += [(guide, path) for path in unit.paths]
            yield stretch("guide", guide, unit.paths, unit.start, unit.end)


def _named_by(text: str, unit: _Unit, named: list[Guide]) -> str | None:
    """Return the guide that stands beside a place, None when there is none; the one that it is `of` comes first."""
    joined = _TO_NAME.match(text, unit.end)
    after = next((guide.name for guide in named if joined and guide.start == joined.end()), None)
    if after and joined and joined["of"]:
        return after
    return next((guide.name for guide in named if _follows(text, guide, unit)), after)


def _understood(text: str, unit: _Unit, named: list[Guide], known: list[tuple[str, Path]]) -> str | None:
    """Return the guide that is meant without being named, None when the place is not in a guide.

    After "Circuit Commercial Court Guide section D7.1 … D13 of the CCG", section D7.2 is in the guide of D7.1.
    """
    last = next((guide.name for guide in reversed(named) if guide.end <= unit.start), None)
    if of_guide := _OF_GUIDE.match(text, unit.end):
        # a guide says its own name before any other's
        return named[0].name if of_guide["own"] and last else last or ""
    if not unit.fixed or _OF_SOMETHING.match(text, unit.end):
        return None
    near = [guide for guide, path in known if path[:2] == unit.paths[0][:2] and len(path) > 1]
    annexed = unit.paths[0][0].startswith(("annex", "appendix"))
    return near[-1] if near else last if last is not None else "" if annexed else None


def _follows(text: str, guide: Guide, unit: _Unit) -> bool:
    gap = _AFTER_NAME.match(text, guide.end)
    return gap is not None and guide.end <= unit.start <= gap.end()


def _units(text: str, named: list[Guide]) -> Iterator[_Unit]:
    for match in _UNIT.finditer(text):
        unit = match["unit"].lower()
        kind = "annex " if unit.startswith("annex") else "appendix " if unit.startswith("append") else ""
        plural = unit.rstrip(".").endswith(("s", "§§"))
        at = match.end() + (text[match.end()] == "(")  # "Annex (A)"
        numbers = read_numbers(text, at, plural=plural, lettered=True)
        # "Annexes 212" in a table of contents is a page
        if numbers is None or (kind and re.search(r"\d{3}|\n", text[match.start() : numbers.end])):
            continue
        written = text[at : numbers.end]
        dotted = bool(re.match(r"[A-Z]\.?\d|\d+\.\d", written)) and "para" not in unit
        paths = [(kind + path[0], *path[1:]) for path in numbers.paths]
        fixed = bool(kind) or dotted or bool(re.match(r"[A-Z]\.?\d", written))
        yield _Unit(match.start(), numbers.end + (at > match.end()), paths, fixed)
    for guide in named:
        gap = _AFTER_NAME.match(text, guide.end)
        number = _NUMBER_ALONE.match(text, gap.end()) if gap and "\n" not in gap.group() else None
        numbers = read_numbers(text, number.start(), plural=False, lettered=True) if number else None
        if number and numbers:
            yield _Unit(number.start(), numbers.end, list(numbers.paths), fixed=False)
