"""Provisions of Acts, regulations, orders and rules other than the Civil Procedure Rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from exhibit.law.references.instruments import CODES, Instrument, Instruments
from exhibit.law.references.numbers import read_numbers
from exhibit.law.references.reference import Path
from exhibit.law.references.stretch import Stretch, stretch

_UNITS = {
    "section": r"[Ss]ections?|SECTIONS?|ss?\.?(?=\s?\d)|§§?",
    "regulation": r"[Rr]egulations?|[Rr]egs?\.?(?=\s?\d)",
    "article": r"[Aa]rticles?|[Aa]rts?\.?(?=\s?\d)",
    "rule": r"[Rr]ules?|rr?\.?(?=\s?\d)",
    "sch": r"[Ss]chedules?|[Ss]chs?\.?(?=\s?\d)",
    "part": r"[Pp]arts?|PARTS?|Pts?\.?(?=\s?\d)",
    "chapter": r"[Cc]hapters?",
    "para": r"[Pp]aragraphs?|[Pp]aras?\.?(?=\s?\d)",
}
_HEAD = re.compile(
    r"(?<![\w.])(?:"
    + "|".join(f"(?P<{unit}>{pattern})" for unit, pattern in _UNITS.items())
    + r")[^\S\n]*+(?:\n[^\S\n]*+)?(?=\d|[IVX]{1,9}\b)"
)
_ROMAN = re.compile(r"[IVX]{1,6}[A-Z]?\b")
_OWN = {"section": ("act", "measure"), "regulation": ("regulations",), "article": ("order",), "rule": ("rules",)}
"""What a unit is the ordinary one of: such a provision needs no word before its number."""
_LARGE = frozenset({"sch", "part", "chapter"})
_APART = re.compile(r"\n\s*\n|•|\bc\. ?\d")
_OF = re.compile(r"(?:,?\s+|(?<=\)))(?:of|to|in)\s+(?:the\s+|that\s+|those\s+|this\s+|same\s+)*")
_THEN = re.compile(r",?\s+")
_CHAIN = re.compile(r",?\s*(?:(?:of|to|in)\s+(?:the\s+)?)?")
_LIST = re.compile(r"\s*+(?:[,;]\s*+)?(?:(?:and|or|and/or|to)\s*+)?(?:under\s+)?")
_AFTER_NAME = re.compile(
    r"\d{0,2}(?:[^\S\n]*+(?:\n[^\S\n]*+)?\([^()\n]{1,60}\))?(?:,|:|[^\S\n]*+[-–—])?"
    r"[^\S\n]*+(?:\n[^\S\n]*+)?(?:\(|(?:at|in|under)\s+)?"
)
_OTHER_RULES = re.compile(
    r"(?:\b(?P<code>FPR|CrimPR|CrPR|IR)(?:\s+20\d\d)?,?|(?P<name>Insolvency|Family Procedure|Criminal Procedure|"
    r"Court of Protection|Tribunal Procedure|Non-Contentious Probate))\s*$"
)
_CODE_ALONE = re.compile(r"\b(?P<code>FPR|CrimPR|CrPR)[^\S\n]*(?=\d{1,2}\.\d)")
_NEAR = 400
"""How far back the Act may be that a bare `section 33` is of."""


class _Head(NamedTuple):
    start: int
    number: int
    """Where the first number stands."""
    end: int
    unit: str
    paths: tuple[Path, ...]


def find_statutes(text: str) -> Iterator[Stretch]:
    """Yield provisions with the instrument they are of, and instruments that are named as a whole."""
    instruments = Instruments(text)
    heads = list(_heads(text))
    by_start = {head.start: head for head in heads}
    owners: dict[int, tuple[Instrument, int] | None] = {}
    used: set[int] = set()
    outer = {o.start for head in heads if (o := _outer(text, head, by_start))}
    for head in reversed(heads):  # "section 33 and section 35 of the Act": the later one knows
        owner = owners[head.start] = _owner(text, head, instruments, by_start, owners)
        if owner is None:
            continue
        instrument, end = owner
        used.add(instrument.start)
        if head.start in outer:
            continue  # "paragraph 6 of Schedule 18" is one reference
        paths = list(_paths(head, instrument, by_start, text)) if instrument.name else []
        yield stretch("statute", instrument.name, paths, head.start, end)
    for match in _CODE_ALONE.finditer(text):
        numbers = read_numbers(text, match.end(), plural=True)
        if numbers:
            yield stretch("statute", CODES[match["code"]], numbers.paths, match.start(), numbers.end)
    for instrument in instruments.named:
        if instrument.start not in used:
            yield stretch("statute", instrument.name, [()], instrument.start, instrument.end)


def _heads(text: str) -> Iterator[_Head]:
    for match in _HEAD.finditer(text):
        unit = match.lastgroup or ""
        written = match.group().strip().rstrip(".").lower()
        roman = _ROMAN.match(text, match.end())
        if roman:
            if unit in {"part", "chapter", "sch"}:
                yield _Head(match.start(), roman.start(), roman.end(), unit, ((roman.group(),),))
            continue
        plural = (written.endswith("s") and written != "s") or written == "§§"
        numbers = read_numbers(text, match.end(), plural=plural)
        if numbers:
            yield _Head(match.start(), match.end(), numbers.end, unit, numbers.paths)


def _owner(
    text: str,
    head: _Head,
    instruments: Instruments,
    by_start: dict[int, _Head],
    owners: dict[int, tuple[Instrument, int] | None],
) -> tuple[Instrument, int] | None:
    """Return the instrument that a provision is of, and where the whole reference ends."""
    others = _OTHER_RULES.search(text, head.start - 30, head.start)
    if others and head.unit in {"rule", "part"}:
        name = CODES[others["code"]] if others["code"] else f"{others['name'].lower()} rules"
        return Instrument(others.start(), head.end, name), head.end
    if following := _outer(text, head, by_start):
        return owners.get(following.start)
    for pattern, joined in ((_OF, True), (_THEN, False)):
        gap = pattern.match(text, head.end)
        instrument = instruments.at(gap.end(), joined=joined) if gap else None
        if instrument and (head.unit != "rule" or instrument.sort not in {"act", "order", "regulations"}):
            return instrument, instrument.end
    listed = _LIST.match(text, head.end)
    beside = by_start.get(listed.end()) if listed else None
    if beside and beside.unit == head.unit and (owner := owners.get(beside.start)):
        return owner[0], head.end
    return _owner_before(text, head, instruments)


def _owner_before(text: str, head: _Head, instruments: Instruments) -> tuple[Instrument, int] | None:
    """Return the instrument named before a provision: `Limitation Act 1980, s 33`, or at a distance for a section."""
    for instrument in reversed(instruments.named):
        gap = _AFTER_NAME.match(text, instrument.end)
        if instrument.end <= head.start and gap and gap.end() == head.start:
            fits = head.unit not in _OWN or instrument.sort in _OWN[head.unit]
            return (instrument, head.end) if fits else None
    undotted = "." not in text[head.number : head.end]
    if head.unit == "section" and undotted and not _OF.match(text, head.end):
        near = instruments.last_act(head.start, within=_NEAR)
        # a footnote gives an Act by its chapter: "1950 c. 27; section 26 was repealed by the Arbitration Act 1996"
        return (near, head.end) if near and not _APART.search(text, near.end, head.start) else None
    return None


def _outer(text: str, head: _Head, by_start: dict[int, _Head]) -> _Head | None:
    """Return the Schedule, Part or Chapter that a provision is in, where that follows it."""
    chain = _CHAIN.match(text, head.end)
    following = by_start.get(chain.end()) if chain else None
    return following if following and following.unit in _LARGE and following.unit != head.unit else None


def _paths(head: _Head, instrument: Instrument, by_start: dict[int, _Head], text: str) -> Iterator[Path]:
    """Yield the places; `paragraph 6 of Schedule 18` begins with the Schedule."""
    outer = _outer(text, head, by_start)
    prefix: Path = next(iter(_paths(outer, instrument, by_start, text))) if outer else ()
    for path in head.paths:
        plain = head.unit in {"section", "regulation", "article", "rule"} or (head.unit == "para" and prefix)
        yield (*prefix, *path) if plain else (*prefix, f"{head.unit} {path[0]}", *path[1:])
