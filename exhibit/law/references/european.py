"""Finds references to the law of the European Union: acts by number or name, articles, recitals and annexes."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from exhibit.law.references.reference import Mention, Named, NumberedUnit, make_mention, read_units

_BODY = r"(?:EU|EC|EEC|ECSC|Euratom)"
_ACT = re.compile(rf"""(?x)(?<!\w)(?P<maker>(?:Council|Commission)\s{{1,3}})?
    (?P<manner>(?:Delegated|Implementing|Framework)\s{{1,3}})?
    (?P<sort>Regulation|Directive|Decision)s?\s{{1,3}}(?P<body>\({_BODY}(?:,\s?{_BODY}){{0,2}}\)\s{{0,3}})?
    (?P<no>[Nn]os?\.?\s{{0,3}})?(?P<first>\d{{1,4}})/(?P<second>\d{{1,4}})(?!\d)
    (?P<suffix>/(?:EU|EC|EEC|ECSC|Euratom|JHA|CFSP)\b)?(?![/\w])""")
_ANOTHER = re.compile(
    r"(?:,\s{1,3}|,?\s{1,3}and\s{1,3})(?:[Nn]o\.?\s{0,3})?(?P<first>\d{1,4})/(?P<second>\d{1,4})(?!\d)"
    r"(?:/(?:EU|EC|EEC|ECSC|Euratom|JHA|CFSP)\b)?(?![/\w])"
)
# Acts with a short name; the version retained in UK law is a separate instrument.
_NAMES: dict[str, str] = {
    "uk gdpr": r"UK\s{1,3}GDPR|UK\s{1,3}General\s{1,3}Data\s{1,3}Protection\s{1,3}Regulation",
    "eu regulation 2016/679": r"(?:EU\s{1,3})?GDPR|General\s{1,3}Data\s{1,3}Protection\s{1,3}Regulation",
    "eu directive 1995/46": r"Data\s{1,3}Protection\s{1,3}Directive",
    "eu regulation 2012/1215": (
        r"Brussels\s{1,3}I(?:a|\s{1,3}(?:bis|[Rr]ecast))(?:\s{1,3}Regulation)?|"
        r"[Rr]ecast\s{1,3}Brussels\s{1,3}I?\s{0,3}Regulation"
    ),
    "eu regulation 2001/44": r"Brussels\s{1,3}I(?:\s{1,3}Regulation)?(?![a-z]|\s{1,3}(?:bis|[Rr]ecast))",
    "eu regulation 2007/864": r"Rome\s{1,3}II(?:\s{1,3}Regulation)?",
    "eu regulation 2008/593": r"Rome\s{1,3}I(?:\s{1,3}Regulation)?",
    "eu directive 2003/88": r"Working\s{1,3}Time\s{1,3}Directive",
    "eu directive 2001/23": r"Acquired\s{1,3}Rights\s{1,3}Directive",
    "tfeu": r"TFEU|Treaty\s{1,3}on\s{1,3}the\s{1,3}Functioning\s{1,3}of\s{1,3}the\s{1,3}European\s{1,3}Union",
    "teu": r"TEU|Treaty\s{1,3}on\s{1,3}European\s{1,3}Union",
    "eu charter": r"(?:EU\s{1,3})?Charter\s{1,3}of\s{1,3}Fundamental\s{1,3}Rights|EU\s{1,3}Charter|CFR(?:EU)?",
    "echr": (
        r"ECHR|European\s{1,3}Convention\s{1,3}(?:on|for)\s{1,3}"
        r"(?:the\s{1,3}Protection\s{1,3}of\s{1,3})?Human\s{1,3}Rights"
    ),
}
_NAMED = re.compile(
    rf"(?<![\w-])(?:{'|'.join(f'(?P<n{at}>{name})' for at, name in enumerate(_NAMES.values()))})(?![\w-])"
)
_POINT = re.compile(r"[Pp]oint\s{1,3}\(([a-z]{1,3})\)\s{1,3}of\s{1,3}")
_PROVISION = re.compile(
    rf"(?:{_POINT.pattern})?(?<!\w)(?P<unit>[Aa]rticles?|[Aa]rts?\.?(?=\s{{0,3}}\d)|[Rr]ecitals?|"
    r"[Aa]nnex(?:es)?)\s{0,3}(?=[\dIVX])"
)
_OF = re.compile(r",?\s{1,3}(?:of|to|in|under)\s{1,3}(?:(?:the|that|this)\s{1,3})?|,?\s{1,3}")
_AGAIN = re.compile(r"(?:the|that|this)\s{1,3}(?P<sort>Regulation|Directive|Decision)\b(?!\s{0,3}[(\d])")
_OF_AGAIN = re.compile(rf",?\s{{1,3}}(?:of|to|in|under)\s{{1,3}}{_AGAIN.pattern}")
_LIST = re.compile(r",?\s{1,3}(?:and|or)\s{1,3}|,\s{1,3}")
_ALIAS = re.compile(r"\s{0,3}\((?:[Tt]he\s{1,3})?['\"“‘]?(?:the\s{1,3})?")
_AFTER = re.compile(r"(?:\s{1,3}\([^()\n]{1,60}\))?(?:,|:|\s{0,3}[-–—])?\s{0,3}(?:\(|(?:at|in|under)\s{1,3})?")
_OLDEST, _NEWEST = 1952, 2099  # years of acts: the first acts are those of the Coal and Steel Community
_YEAR_FIRST_FROM = 2015  # the first year of regulations with the year before the number; in `No 44/2001` it is last
_MAX_EARLIER_ACTS = 100  # most earlier acts to which `the Directive` may refer; limits the time for a hostile text


def find_european(text: str) -> Iterator[Mention]:
    named = (Named(*match.span(), [*_NAMES][int(str(match.lastgroup)[1:])]) for match in _NAMED.finditer(text))
    acts = sorted([*_find_numbered(text), *named])
    by_start = {act.start: act for act in acts}
    units = list(read_units(text, _PROVISION, roman=("annex",)))
    owners: dict[int, Named] = {}
    # an act may have another name in brackets after it: `Regulation (EU) 2016/679 (GDPR)`
    used = {b.start for a, b in pairwise(acts) if a.name == b.name and _ALIAS.fullmatch(text, a.end, b.start)}
    for unit in reversed(units):  # in "Article 3 and Article 5 of the Directive" the later article names the act
        owner, end = _find_owner(text, unit, acts, by_start) or (None, unit.end)
        if owner is None:
            beside = _LIST.match(text, unit.end)
            owner = owners.get(beside.end()) if beside else None
        if owner is None:
            continue
        owners[unit.start] = owner
        if not _AGAIN.search(text, unit.end, end):
            used.add(owner.start)  # "the Directive" is another mention; "of Directive 95/46/EC" is part of this one
        point = _POINT.match(text, unit.start)
        paths = [(*path, point[1]) if point else path for path in unit.paths]
        yield make_mention("statute", owner.name, paths, unit.start, end)
    for act in acts:
        yield make_mention("statute", act.name, [] if act.start in used else [()], act.start, act.end)


def _find_owner(
    text: str, unit: NumberedUnit, acts: list[Named], by_start: dict[int, Named]
) -> tuple[Named, int] | None:
    before = bisect_left(acts, unit.start, key=lambda act: act.start)
    gap = _OF.match(text, unit.end)
    if gap and (act := by_start.get(gap.end())):
        return act, act.end
    again = _OF_AGAIN.match(text, unit.end)
    if again:
        sort = again["sort"].lower()
        near = reversed(acts[max(0, before - _MAX_EARLIER_ACTS) : before])
        last = next((act for act in near if _sort(act) == sort), None)
        return (last, again.end()) if last else None
    for act in reversed(acts[max(0, before - 2) : before]):  # another name may come between, in brackets
        after = _AFTER.match(text, act.end)
        if after and after.end() == unit.start:
            return act, unit.end
    return None


def _sort(act: Named) -> str:
    return "regulation" if act.name == "uk gdpr" else act.name.split()[1] if " " in act.name else ""


def _find_numbered(text: str) -> Iterator[Named]:
    for match in _ACT.finditer(text):
        sort, known = match["sort"].lower(), bool(match["body"] or match["suffix"] or match["maker"])
        start, number = match.start(), match
        while source := _name_eu_source(sort, number["first"], number["second"], no=bool(match["no"]), known=known):
            yield Named(start, number.end(), source)
            another = _ANOTHER.match(text, number.end())
            if another is None:
                break
            start, number = another.start("first"), another


def _name_eu_source(sort: str, first: str, second: str, *, no: bool, known: bool) -> str | None:
    """Return an EU act's name, such as `eu regulation 2016/679`; None if the act is not clearly from the EU."""
    if sort == "decision" and not known:
        return None
    year, number = _parse_year(first), second
    if sort != "directive" and (no or (sort == "regulation" and not (year and year >= _YEAR_FIRST_FROM))):
        year, number = _parse_year(second), first
    if year is None or (not known and not no and len(first) < 2):
        return None
    return f"eu {sort} {year}/{int(number)}"


def _parse_year(digits: str) -> int | None:
    year = int(digits) + (1900 if len(digits) == 2 else 0)
    return year if len(digits) in (2, 4) and _OLDEST <= year <= _NEWEST else None
