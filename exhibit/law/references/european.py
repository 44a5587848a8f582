"""Finds the acts of the European Union that a text names, by number or by a short name."""

import re
from collections.abc import Iterator

from exhibit.law.references.reference import Named

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
_OLDEST, _NEWEST = 1952, 2099  # years of acts: the first acts are those of the Coal and Steel Community
_YEAR_FIRST_FROM = 2015  # the first year of regulations with the year before the number; in `No 44/2001` it is last


def find_european_acts(text: str) -> list[Named]:
    named = (Named(*match.span(), [*_NAMES][int(str(match.lastgroup)[1:])]) for match in _NAMED.finditer(text))
    return sorted([*_find_numbered(text), *named])


def is_european(name: str) -> bool:
    return name.startswith("eu ") or name in _NAMES


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
