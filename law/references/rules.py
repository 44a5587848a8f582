"""The Civil Procedure Rules, practice directions and court guides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from exhibit.law.references.numbers import Numbers, read_numbers
from exhibit.law.references.reference import Path, Stretch, stretch

_CPR = r"(?:CPR|C\.P\.R\.|Civil\s+Procedure\s+Rules?(?:\s{1,9}1998)?)"
_RULE = re.compile(
    rf"""(?<![\w.])(?:(?P<cpr>{_CPR}),?\s{{0,9}}(?:\(?(?P<of>Parts?|Pts?\.?|[Rr]ules?|rr?\.?))?
    |(?P<unit>(?:PART|[Pp]art)[Ss]?|Pts?\.?|(?:RULE|[Rr]ule)[Ss]?|rr?\.?))[^\S\n]{{0,9}}\n?[^\S\n]{{0,9}}(?=\d)""",
    re.VERBOSE,
)
_ITS_PARTS = re.compile(rf"\s+(?:of|in)\s+(?:the\s+|these\s+)?(?:{_CPR}|Rules\b)")
_OTHER_PARTS = re.compile(
    r"\s+(?:of|OF)\s+(?:\d|the\b|this\b|that\b|those\b|an?\b|[Ss]chedule|[A-Z\0])|,?\s+to\s+(?:the\s+)?(?:Schedule|Act\b)"
)
_SCHEDULE = re.compile(r"(?:Schedule|Sch\.?|Annex|Appendix|Chapter|Volume)\s+\w{1,3},?\s*$")
_HIGHEST = 99  # of a Part: the Rules have 89, and a larger number is of something else


def find_rules(text: str) -> Iterator[Stretch]:
    """Yield Parts and rules: a Part of something else, a bare number and a rule of other rules are none."""
    for match in _RULE.finditer(text):
        unit = (match["of"] or match["unit"] or "").lower().rstrip(".")
        whole = unit in {"part", "parts", "pt", "pts"}
        numbers = read_numbers(text, match.end(), plural=unit in {"parts", "rules", "rr", "pts"})
        if numbers is None or not _is_rule(text, match, numbers, whole):
            continue
        yield stretch("rule", "CPR", numbers.paths, match.start(), numbers.end)


def _is_rule(text: str, match: re.Match[str], numbers: Numbers, whole: bool) -> bool:
    first = numbers.paths[0]
    if match["cpr"]:
        return True
    if int(re.sub(r"\D", "", first[0])) > _HIGHEST or _SCHEDULE.search(text, match.start() - 40, match.start()):
        return False
    if whole:
        return bool(_ITS_PARTS.match(text, numbers.end)) or not _OTHER_PARTS.match(text, numbers.end)
    # Part 11 has one rule, 11; any other has a point: "rule 28" of an arbitration institute is not ours
    return "." in text[match.end() : numbers.end] or (first[0] == "11" and len(first) > 1)


# ---------------------------------------------------------------- practice directions

_NAME = r"(?:CPR\s*)?(?:[Pp]ractice\s+[Dd]irections?|PRACTICE\s+DIRECTIONS?|PDs?|CPRPD)"
_HEAD = re.compile(rf"(?<![A-Za-z]){_NAME}\s*(?:No\.?\s*)?(?=\d)")
_UNIT = (
    r"(?P<unit>[Pp]aragraphs?|PARAGRAPHS?|[Pp]aras?\.?|§§?|(?:[Ss]ub-?)?[Ss]ections?|"
    r"[Aa]nnex(?:es)?|ANNEX|[Aa]ppendi(?:x|ces)|APPENDIX)"
)
_INSIDE = re.compile(rf"(?<!\w){_UNIT}\s*(?=[\dA-Z])")
_AFTER = re.compile(rf"[,:]?\s*\(?(?:(?:at|in)\s+)?{_UNIT}\s*(?=[\dA-Z])")
_OF = re.compile(rf"\s+(?:of|to|in)\s+(?:the\s+)?(?={_NAME}\s*\d)|\s+(?=PD\s?\d)")
_LAST = re.compile(
    r"\s+(?:of|to|in)\s+(?:the|that)\s+(?:[Pp]ractice\s+[Dd]irection|PD)\b(?!\s*(?:\d|supplement|to\b|accomp))"
)


def find_directions(text: str) -> Iterator[Stretch]:
    """Yield practice directions by number; `paragraph 2.1 of the Practice Direction` is the last one named."""
    heads = [(m.start(), n) for m in _HEAD.finditer(text) if (n := _numbers(text, m))]
    open_heads = dict(heads)
    taken: set[int] = set()
    for match in _INSIDE.finditer(text):
        inside = _read_inside(text, match)
        if inside is None:
            continue
        paths, end = inside
        of, last = _OF.match(text, end), _LAST.match(text, end)
        if of and of.end() in open_heads:
            numbers = open_heads.pop(of.end())
            taken.add(match.start())
            yield stretch("direction", numbers.paths[0][0], paths, match.start(), numbers.end)
        elif last and (named := [n.paths[-1][0] for start, n in heads if start < match.start()]):
            yield stretch("direction", named[-1], paths, match.start(), last.end())
    for start, numbers in open_heads.items():
        yield from _with_what_follows(text, start, numbers, taken)


def _with_what_follows(text: str, start: int, numbers: Numbers, taken: set[int]) -> Iterator[Stretch]:
    """Yield directions from their head on; a paragraph after several belongs to the last."""
    for number, *inside in numbers.paths[:-1]:
        yield stretch("direction", number, [tuple(inside)], start, numbers.end)
    number, *rest = numbers.paths[-1]
    after = None if rest else _AFTER.match(text, numbers.end)
    read = _read_inside(text, after) if after and after.start("unit") not in taken else None
    paths, end = read or ([tuple(rest)], numbers.end)
    yield stretch("direction", number, paths, start, end)


def _numbers(text: str, head: re.Match[str]) -> Numbers | None:
    plural = head.group().strip().lower().endswith("s")
    return read_numbers(text, head.end(), plural=plural, single=not plural)


def _read_inside(text: str, match: re.Match[str]) -> tuple[list[Path], int] | None:
    """Return what a unit such as `paragraphs` or `Annex` names, and where it ends."""
    unit = match["unit"].lower()
    kind = "annex " if unit.startswith("annex") else "appendix " if unit.startswith("append") else ""
    plural = unit.rstrip(".").endswith(("s", "§§"))
    numbers = read_numbers(text, match.end(), plural=plural, lettered=bool(kind))
    return ([(kind + path[0], *path[1:]) for path in numbers.paths], numbers.end) if numbers else None


# ---------------------------------------------------------------- court guides

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
_GUIDE_NAME = re.compile(
    r"""(?<!\w)(?:(?:(?:[A-Z][a-z]+(?:['’]?s|s['’])?|TCC|KBD?|QBD?|IPEC|SCCO)\s+(?:and\s+)?){1,6}Guide(?:\s+20\d\d)?\b
    |CCG\b)""",
    re.VERBOSE,
)
_LEAD = re.compile(r"(?:(?:the|see|under|in|this|that|of|per|by|and|both|wales|business|property|courts|judiciary) )+")
_GUIDE_UNIT = re.compile(
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
        Guide(match.start(), match.end(), name)
        for match in _GUIDE_NAME.finditer(text)
        if (name := guide_name(match.group()))
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
    for match in _GUIDE_UNIT.finditer(text):
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
