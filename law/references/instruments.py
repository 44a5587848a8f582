"""Acts, regulations, orders and rules by name, in full or in short."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_SORTS = r"(?:Acts?|Regulations|Order|Rules|Measure)"
_YEARS = r"(?:1[2-9]\d\d|20\d\d)"
_ENDING = re.compile(
    rf"(?<![\w-])(?P<sort>{_SORTS}|ACT|REGULATIONS|ORDER|RULES)(?P<place>\s{{1,3}}\((?:Northern\s{{1,3}}Ireland|NI|N\.I\.)\))?"
    rf"\s+(?P<year>{_YEARS})(?=\d{{0,2}}(?!\d))"
)
"""A footnote's number is often glued to the year: `Senior Courts Act 19811`."""
_TOKEN = re.compile(
    r"(?P<bracket>\([^()\n]{2,80}\))\s*$|(?P<word>[A-Z][\w'’&-]*|&)\s*$|(?P<small>\b(?:of|and|for|in|to|on|by|with|at|etc\.?))\s*$"
    rf"|(?P<comma>,)\s*$|(?P<inner>{_SORTS}\s+{_YEARS})\s*$"
)
_NOT_NAMES = frozenset(
    """see under in by and the of for pursuant section sections s ss part parts chapter schedule regulation article rule
    whether where when if as per to this that an a any cpr pd""".split()
)
_REACH = 160  # characters: the longest title of an Act that is cited has fewer
_BY_YEAR = re.compile(rf"\b[Tt]he\s+(?P<year>{_YEARS})\s+(?P<sort>Act|Regulations|Order|Rules|Measure)\b")
_SHORT = re.compile(
    rf"(?:(?P<year>{_YEARS})\s+)?(?P<name>(?:(?:[A-Z][\w'’-]*|\([A-Z][^()\n]{{1,60}}\)|of|and|for),?\s+)*?)(?P<sort>Acts?|"
    rf"Regulations|Order|Rules|Measure)(?:\s+(?P<after>{_YEARS}))?\b"
)
_ABBREVIATED = re.compile(rf"(?P<name>(?!SI\b)[A-Z]{{2,6}}|[A-Z][A-Za-z]{{1,8}}[A-Z])\s+(?P<year>{_YEARS})\b(?!/)")
CODES = {
    "FPR": "family procedure rules",
    "CrimPR": "criminal procedure rules",
    "CrPR": "criminal procedure rules",
    "IR": "insolvency rules",
}
_OURS = frozenset({"rules", "civil procedure rules", "civil procedure rules 1998"})
_DEFINED_AFTER = re.compile(
    r"\d{0,2}\s{0,9}\(\s{0,9}(?:(?:in this \w{1,40}|hereafter|hereinafter|together),?\s{0,9})?"
    r"['\"“‘]?(?:[Tt]he\s{1,9})?([^'\"”’()\n]{2,40})['\"”’]?\s{0,9}\)"
)
_DEFINED_BEFORE = re.compile(r"['\"“‘](?:the\s+)?([^'\"”’()\n]{2,40})['\"”’]\s+means\s+(?:the\s+)?$", re.IGNORECASE)


class Instrument(NamedTuple):
    """An instrument as it is named at a place."""

    start: int
    end: int
    name: str
    """Small letters, year last: `limitation act 1980`."""

    @property
    def sort(self) -> str:
        """`act`, `regulations`, `order`, `rules` or `measure`."""
        return re.sub(r" ?\d{4}$", "", self.name).rpartition(" ")[2]


class Instruments:
    """The instruments of a text: those named with a year, and what their short names stand for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.named = _longest([named for match in _ENDING.finditer(text) if (named := _named(text, match))])
        self.by_start = {named.start: named for named in self.named}
        self._defined: dict[str, str] = {}
        for named in self.named:
            self._define(named)
        self._mentions = sorted([*self.named, *self._by_year()])

    def _by_year(self) -> list[Instrument]:
        """Return where `the 1996 Act` stands, which `the Act` after it means."""
        return [
            Instrument(*match.span(), self._full(match["sort"].lower(), match["year"], match.start()))
            for match in _BY_YEAR.finditer(self.text)
        ]

    def _full(self, sort: str, year: str, before: int) -> str:
        """Return the full name of an instrument of that year: as defined, as named last, or as named at all."""
        if defined := self._defined.get(f"{year} {sort}"):
            return defined
        same = [named for named in self.named if named.sort == sort and named.name.endswith(year)]
        earlier = [named for named in same if named.end <= before]
        return (earlier[-1:] or same[:1] or [Instrument(0, 0, f"{sort} {year}")])[0].name

    def _define(self, named: Instrument) -> None:
        after = _DEFINED_AFTER.match(self.text, named.end)
        before = _DEFINED_BEFORE.search(self.text[max(0, named.start - 60) : named.start])
        for match in (after, before):
            if match:
                self._defined.setdefault(_plain(match[1]), named.name)

    def at(self, start: int, *, joined: bool) -> Instrument | None:
        """Return the instrument named at a place; a short name needs `of` before it (`joined`)."""
        if named := self.by_start.get(start):
            return named
        if match := _ABBREVIATED.match(self.text, start):
            return Instrument(start, match.end(), f"{match['name'].lower()} {match['year']}")
        for code, name in CODES.items():
            if re.compile(rf"{code}\b").match(self.text, start):
                return Instrument(start, start + len(code), name)
        return self._short(start) if joined else None

    def _short(self, start: int) -> Instrument | None:
        """Return what `1996 Act`, `Act` or `Insolvency Rules` stands for here, with no name if that is not known."""
        match = _SHORT.match(self.text, start)
        if match is None:
            return None
        plain, sort = _plain(match.group()), match["sort"].lower()
        if plain in _OURS and plain not in self._defined:
            return None
        if match["name"].strip():
            name = self._defined.get(plain, plain)
        elif match["year"]:
            name = self._full(sort, match["year"], start)
        else:
            name = self._defined.get(plain) or self._last(start, sort)
        return Instrument(start, match.end(), name)

    def _last(self, before: int, sort: str) -> str:
        return next((m.name for m in reversed(self._mentions) if m.end <= before and m.sort == sort), "")

    def last_act(self, before: int, *, within: int) -> Instrument | None:
        """Return the Act named last before a place, if that is near."""
        acts = [mention for mention in self._mentions if mention.end <= before and mention.sort == "act"]
        return acts[-1] if acts and before - acts[-1].end <= within else None


def _longest(named: list[Instrument]) -> list[Instrument]:
    """Return the instruments whose name is not part of the next one's."""
    starts: list[float] = [later.start for later in named[1:]]
    return [one for one, following in zip(named, [*starts, math.inf], strict=False) if one.end <= following]


def _named(text: str, ending: re.Match[str]) -> Instrument | None:
    """Return the instrument whose name ends here, read backwards word by word; None for the Civil Procedure Rules."""
    start = ending.start()
    listed = False
    floor = max(0, start - _REACH)
    while token := _TOKEN.search(text[floor:start]):
        if token["word"] and token["word"].lower().rstrip("'’s") in _NOT_NAMES:
            break
        if token["comma"] and not listed:
            break  # "Legal Aid, Sentencing and Punishment …" is one name, "In London, Senior Courts Act" is not
        if token["inner"] and text[start] != "(":
            break  # orders are named after Acts: "Access to Justice Act 1999 (Destination of Appeals) Order 2016"
        listed = listed or token["small"] == "and"
        start = floor + token.start()
    start += len(re.match(r"(?:(?:of|and|for|in|to|on|by|with)\b|[,\s])*", text[start : ending.start()])[0])  # type: ignore[index]
    words = text[start : ending.start()].strip()
    # Acts of Northern Ireland have its name after the sort, Orders before it: one place for both
    place = " (Northern Ireland)" if ending["place"] else ""
    name = _plain(f"{words}{place} {ending['sort']} {ending['year']}")
    if not words or name == "civil procedure rules 1998":
        return None
    return Instrument(start, ending.end(), re.sub(r"\bacts (?=\d{4}$)", "act ", name))


def _plain(name: str) -> str:
    words = re.sub(r"['’]", "", " ".join(name.split())).lower().replace("&", "and").replace(",", "")
    return re.sub(r"^the ", "", re.sub(r"\((?:ni|n\.i\.)\)", "(northern ireland)", words)).strip()
