"""Instruments known by their number: `SI 2002/618`, `SSI 2011/141`, `SR 2010/123`, `2014 asp 14`.

A number in brackets after the instrument's name says nothing new, and is no reference of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from exhibit.law.references.numbers import read_numbers
from exhibit.law.references.stretch import Stretch, stretch

_SERIES = {
    "SI": "si",
    "SSI": "ssi",
    "SR": "nisr",
    "WSI": "wsi",
    "ASP": "asp",
    "ANAW": "anaw",
    "ASC": "asc",
    "NIA": "nia",
}
_INSTRUMENT = re.compile(
    r"(?<![\w.])(?P<series>W\.?S\.?I\.?|S\.?S\.?I\.?|S\.?I\.?|S\.?R\.?)\s{0,3}(?:\(NI\)\s{0,3})?"
    r"(?P<year>(?:19|20)\d\d)\s?(?:/\s?|,?\s?[Nn]o\.?\s?)(?P<number>\d{1,4})(?![\w/])"
    r"(?:\s{0,3}\((?:[NWCLS]|N\.?I|Cy)\.?\s?\d{1,3}\))*"
)
_ACT = re.compile(r"(?<!\w)(?P<year>(?:19|20)\d\d)\s{1,3}(?P<series>asp|anaw|asc)\s{1,3}(?P<number>\d{1,3})(?!\w)")
_NAMED_BEFORE = re.compile(r"\0\d{0,2}\s{0,3}[(,]\s{0,3}$")
"""What was read already stands before it: the instrument's own name."""
_IN_BRACKETS = re.compile(
    r"\0\d{0,2}\s{0,3}\(\s{0,3}(?:asp|anaw|asc|nawm|c\.?)\s{0,3}\d{1,3}(?:\s{0,3}\([NW]\.?I?\.?\))?\s{0,3}\)"
)
_UNIT = (
    r"(?<![\w.])(?P<unit>[Rr]egulations?|[Rr]egs?\.?|[Aa]rticles?|[Aa]rts?\.?|[Rr]ules?|rr?\.?|[Ss]ections?|ss?\.?)"
    r"\s{0,3}(?=\d)"
)
_HEAD = re.compile(_UNIT)
_OF = re.compile(r",?\s{1,3}(?:(?:of|in)\s{1,3}(?:the\s{1,3})?)?")
_AFTER = re.compile(r",?\s{1,3}")


def find_numbered(text: str) -> Iterator[Stretch]:
    """Yield instruments by number, with the provision before or after them; read after the names are."""
    for match in _IN_BRACKETS.finditer(text):
        yield stretch("statute", "", [], match.start() + 1, match.end())
    instruments = [(match, _source(match)) for pattern in (_INSTRUMENT, _ACT) for match in pattern.finditer(text)]
    before = {end: (match.start(), numbers) for match, numbers, end in _heads(text)}
    for match, source in instruments:
        if _NAMED_BEFORE.search(text, match.start() - 12, match.start()):
            yield stretch("statute", "", [], *match.span())
        elif match.start() in before:
            start, paths = before[match.start()]
            yield stretch("statute", source, paths, start, match.end())
        else:
            paths, end = _following(text, match.end())
            yield stretch("statute", source, paths, match.start(), end)


def _source(match: re.Match[str]) -> str:
    series = _SERIES[match["series"].replace(".", "").upper()]
    return f"{series} {match['year']}/{int(match['number'])}"


def _heads(text: str) -> Iterator[tuple[re.Match[str], tuple[tuple[str, ...], ...], int]]:
    """Yield provisions with their numbers, and where the instrument would begin."""
    for match in _HEAD.finditer(text):
        numbers = read_numbers(text, match.end(), plural=match["unit"].rstrip(".").endswith("s"))
        gap = _OF.match(text, numbers.end) if numbers else None
        if numbers and gap:
            yield match, numbers.paths, gap.end()


def _following(text: str, end: int) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Return the provision after an instrument, `SI 2002/618, reg 3`, or the instrument as a whole."""
    gap = _AFTER.match(text, end)
    head = _HEAD.match(text, gap.end()) if gap else None
    numbers = read_numbers(text, head.end(), plural=False) if head else None
    return (numbers.paths, numbers.end) if numbers else (((),), end)
