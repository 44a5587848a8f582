"""Instruments known by their number, `SI 2002/618`, and the law of the European Union."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from exhibit.law.references.numbers import read_numbers
from exhibit.law.references.reference import Path, Stretch, stretch

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


# ---------------------------------------------------------------- the European Union

_BODY = r"(?:EU|EC|EEC|ECSC|Euratom)"
_EU_ACT = re.compile(
    rf"""(?<!\w)(?P<maker>(?:Council|Commission)\s{{1,3}})?(?P<manner>(?:Delegated|Implementing|Framework)\s{{1,3}})?
    (?P<sort>Regulation|Directive|Decision)s?\s{{1,3}}(?P<body>\({_BODY}(?:,\s?{_BODY}){{0,2}}\)\s{{0,3}})?
    (?P<no>[Nn]os?\.?\s{{0,3}})?(?P<first>\d{{1,4}})/(?P<second>\d{{1,4}})(?!\d)
    (?P<suffix>/(?:EU|EC|EEC|ECSC|Euratom|JHA|CFSP)\b)?(?![/\w])""",
    re.VERBOSE,
)
_ANOTHER = re.compile(
    r"(?:,\s{1,3}|,?\s{1,3}and\s{1,3})(?:[Nn]o\.?\s{0,3})?(?P<first>\d{1,4})/(?P<second>\d{1,4})(?!\d)"
    r"(?:/(?:EU|EC|EEC|ECSC|Euratom|JHA|CFSP)\b)?(?![/\w])"
)
_CELEX = re.compile(
    r"(?<!\w)(?:CELEX(?:\s{1,3}|:\s{0,3}))?3(?P<year>(?:19|20)\d\d)(?P<sort>[RLDF])(?P<number>\d{4})(?!\w)"
)
_CELEX_SORTS = {"R": "regulation", "L": "directive", "D": "decision", "F": "decision"}
_OLDEST, _NEWEST = 1952, 2099
"""The first acts are those of the Coal and Steel Community."""
_YEAR_FIRST_FROM = 2015
"""Regulations have been numbered year first since 2015; before, `No 44/2001` had the year last."""
_NAMES = {
    "uk gdpr": r"UK\s{1,3}GDPR|UK\s{1,3}General\s{1,3}Data\s{1,3}Protection\s{1,3}Regulation",
    "eu regulation 2016/679": r"(?:EU\s{1,3})?GDPR|General\s{1,3}Data\s{1,3}Protection\s{1,3}Regulation",
    "eu directive 1995/46": r"Data\s{1,3}Protection\s{1,3}Directive",
    "eu regulation 2012/1215": r"Brussels\s{1,3}I(?:a|\s{1,3}(?:bis|[Rr]ecast))(?:\s{1,3}Regulation)?|"
    r"[Rr]ecast\s{1,3}Brussels\s{1,3}I?\s{0,3}Regulation",
    "eu regulation 2001/44": r"Brussels\s{1,3}I(?:\s{1,3}Regulation)?(?![a-z]|\s{1,3}(?:bis|[Rr]ecast))",
    "eu regulation 2007/864": r"Rome\s{1,3}II(?:\s{1,3}Regulation)?",
    "eu regulation 2008/593": r"Rome\s{1,3}I(?:\s{1,3}Regulation)?",
    "eu directive 2003/88": r"Working\s{1,3}Time\s{1,3}Directive",
    "eu directive 2001/23": r"Acquired\s{1,3}Rights\s{1,3}Directive",
    "tfeu": r"TFEU|Treaty\s{1,3}on\s{1,3}the\s{1,3}Functioning\s{1,3}of\s{1,3}the\s{1,3}European\s{1,3}Union",
    "teu": r"TEU|Treaty\s{1,3}on\s{1,3}European\s{1,3}Union",
    "eu charter": r"(?:EU\s{1,3})?Charter\s{1,3}of\s{1,3}Fundamental\s{1,3}Rights|EU\s{1,3}Charter|CFR(?:EU)?",
    "echr": r"ECHR|European\s{1,3}Convention\s{1,3}(?:on|for)\s{1,3}(?:the\s{1,3}Protection\s{1,3}of\s{1,3})?Human"
    r"\s{1,3}Rights",
}
"""Acts that are known by a name; the version that is UK law is an instrument of its own."""
_NAMED = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"(?P<n{place}>{form})" for place, form in enumerate(_NAMES.values())) + r")(?![\w-])"
)
_EU_UNIT = r"(?P<unit>[Aa]rticles?|[Aa]rts?\.?(?=\s{0,3}\d)|[Rr]ecitals?|[Aa]nnex(?:es)?)"
_EU_HEAD = re.compile(
    rf"(?:[Pp]oint\s{{1,3}}\((?P<point>[a-z]{{1,3}})\)\s{{1,3}}of\s{{1,3}})?(?<!\w){_EU_UNIT}\s{{0,3}}(?=[\dIVX])"
)
_ROMAN = re.compile(r"[IVX]{1,6}[A-Z]?\b")
_EU_OF = re.compile(r",?\s{1,3}(?:of|to|in|under)\s{1,3}(?:(?:the|that|this)\s{1,3})?|,?\s{1,3}")
_AGAIN = re.compile(r"(?:the|that|this)\s{1,3}(?P<sort>Regulation|Directive|Decision)\b(?!\s{0,3}[(\d])")
_OF_AGAIN = re.compile(r",?\s{1,3}(?:of|to|in|under)\s{1,3}")
_LIST = re.compile(r",?\s{1,3}(?:and|or)\s{1,3}|,\s{1,3}")
_ALIAS = re.compile(r"\s{0,3}\((?:[Tt]he\s{1,3})?['\"“‘]?(?:the\s{1,3})?")
_EU_AFTER = re.compile(r"(?:\s{1,3}\([^()\n]{1,60}\))?(?:,|:|\s{0,3}[-–—])?\s{0,3}(?:\(|(?:at|in|under)\s{1,3})?")
_NEAR = 100
"""Acts back that `the Directive` may be found among: a bound on what a hostile text can cost."""


class _Act(NamedTuple):
    start: int
    end: int
    source: str


class _Head(NamedTuple):
    start: int
    end: int
    paths: tuple[Path, ...]


def find_european(text: str) -> Iterator[Stretch]:
    """Yield articles, recitals and annexes with the act they are of, and acts that are named as a whole."""
    acts = sorted([*_numbered(text), *_named(text)])
    by_start = {act.start: act for act in acts}
    heads = list(_eu_heads(text))
    at = {head.start: place for place, head in enumerate(heads)}
    owners: dict[int, _Act] = {}
    used = _aliases(text, acts)
    for head in reversed(heads):  # "Article 3 and Article 5 of the Directive": the later one knows
        owner, end = _owner(text, head, acts, by_start) or (None, head.end)
        if owner is None:
            beside = _LIST.match(text, head.end)
            following = at.get(beside.end()) if beside else None
            owner = owners.get(heads[following].start) if following is not None else None
        if owner is None:
            continue
        owners[head.start] = owner
        if not _AGAIN.search(text, head.end, end):
            used.add(owner.start)  # "the Directive" is another mention; "of Directive 95/46/EC" is this one
        yield stretch("statute", owner.source, head.paths, head.start, end)
    for act in acts:
        yield stretch("statute", act.source, [] if act.start in used else [()], act.start, act.end)


def _aliases(text: str, acts: list[_Act]) -> set[int]:
    """Return where an act's other name stands in brackets after it: `Regulation (EU) 2016/679 (GDPR)`."""
    return {b.start for a, b in pairwise(acts) if a.source == b.source and _ALIAS.fullmatch(text, a.end, b.start)}


def _owner(text: str, head: _Head, acts: list[_Act], by_start: dict[int, _Act]) -> tuple[_Act, int] | None:
    """Return the act that a provision is of, and where the whole reference ends."""
    before = bisect_left(acts, head.start, key=lambda act: act.start)
    gap = _EU_OF.match(text, head.end)
    if gap and (act := by_start.get(gap.end())):
        return act, act.end
    gap = _OF_AGAIN.match(text, head.end)
    again = _AGAIN.match(text, gap.end()) if gap else None
    if again:
        sort = again["sort"].lower()
        near = reversed(acts[max(0, before - _NEAR) : before])
        last = next((act for act in near if _sort(act) == sort), None)
        return (last, again.end()) if last else None
    for act in reversed(acts[max(0, before - 2) : before]):  # its other name may stand between, in brackets
        after = _EU_AFTER.match(text, act.end)
        if after and after.end() == head.start:
            return act, head.end
    return None


def _sort(act: _Act) -> str:
    """Return what an act is called later on: the GDPR is `the Regulation`."""
    return "regulation" if act.source == "uk gdpr" else act.source.split()[1] if " " in act.source else ""


def _eu_heads(text: str) -> Iterator[_Head]:
    for match in _EU_HEAD.finditer(text):
        unit = match["unit"].lower().rstrip(".")
        kind = "recital " if unit.startswith("recital") else "annex " if unit.startswith("annex") else ""
        roman = _ROMAN.match(text, match.end())
        if roman:
            if kind == "annex ":
                yield _Head(match.start(), roman.end(), ((f"annex {roman.group()}",),))
            continue
        numbers = read_numbers(text, match.end(), plural=unit.endswith("s"))
        if numbers is None:
            continue
        point = (match["point"],) if match["point"] else ()
        paths = tuple((kind + path[0], *path[1:], *point) for path in numbers.paths)
        yield _Head(match.start(), numbers.end, paths)


def _numbered(text: str) -> Iterator[_Act]:
    for match in _EU_ACT.finditer(text):
        sort, told = match["sort"].lower(), bool(match["body"] or match["suffix"] or match["maker"])
        source = _eu_source(sort, match["first"], match["second"], no=bool(match["no"]), told=told)
        if source is None:
            continue
        yield _Act(match.start(), match.end(), source)
        end = match.end()
        while another := _ANOTHER.match(text, end):
            more = _eu_source(sort, another["first"], another["second"], no=bool(match["no"]), told=told)
            if more is None:
                break
            yield _Act(another.start("first"), another.end(), more)
            end = another.end()
    for match in _CELEX.finditer(text):
        yield _Act(*match.span(), f"eu {_CELEX_SORTS[match['sort']]} {match['year']}/{int(match['number'])}")


def _eu_source(sort: str, first: str, second: str, *, no: bool, told: bool) -> str | None:
    """Return an act in one form, year first; None for what is no act, as `Decision 12/2019` of a board."""
    if sort == "decision" and not told:
        return None
    leading, trailing = _year(first), _year(second)
    if sort == "directive":
        year, number = leading, second
    elif no or (sort == "regulation" and not (leading and leading >= _YEAR_FIRST_FROM)):
        year, number = trailing, first
    else:
        year, number = leading, second
    if year is None or (not told and not no and len(first) < 2):
        return None
    return f"eu {sort} {year}/{int(number)}"


def _year(digits: str) -> int | None:
    """Return the year that four or two digits are; acts of this century write it in full."""
    year = int(digits) + (1900 if len(digits) == 2 else 0)
    return year if len(digits) in (2, 4) and _OLDEST <= year <= _NEWEST else None


def _named(text: str) -> Iterator[_Act]:
    sources = list(_NAMES)
    for match in _NAMED.finditer(text):
        yield _Act(*match.span(), sources[int((match.lastgroup or "n0")[1:])])
