"""Finds references to Acts, regulations, orders and rules, by full or short name or number, and to acts of the EU."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from exhibit.evidence import Span
from exhibit.law.references.reference import (
    Mention,
    Named,
    NumberedUnit,
    Path,
    blank_spans,
    is_same_source,
    make_mention,
    read_numbers,
    read_units,
)

_SORTS = r"(?:Acts?|Regulations|Order|Rules|Measure)"
_YEARS = r"(?:1[2-9]\d\d|20\d\d)"
# A footnote's number is often joined to the year: `Senior Courts Act 19811`.
_ENDING = re.compile(
    rf"(?<![\w-])(?P<sort>{_SORTS}|ACT|REGULATIONS|ORDER|RULES)(?P<place>\s{{1,3}}\((?:Northern\s{{1,3}}Ireland|NI|"
    r"N\.I\.)\))?"
    rf"\s+(?P<year>{_YEARS})(?=\d{{0,2}}(?!\d))"
)
_TOKEN = re.compile(
    r"(?P<bracket>\([^()\n]{2,80}\))\s*$|(?P<word>[A-Z][\w'’&-]*|&)\s*$|(?P<small>\b(?:of|and|for|in|to|on|by|"
    r"with|at|etc\.?))\s*$"
    rf"|(?P<comma>,)\s*$|(?P<inner>{_SORTS}\s+{_YEARS})\s*$"
)
_BY_YEAR = re.compile(rf"\b[Tt]he\s+(?P<year>{_YEARS})\s+(?P<sort>Act|Regulations|Order|Rules|Measure)\b")
_SHORT = re.compile(
    rf"(?:(?P<year>{_YEARS})\s+)?(?P<name>(?:(?:[A-Z][\w'’-]*|\([A-Z][^()\n]{{1,60}}\)|of|and|"
    r"for),?\s+)*?)(?P<sort>Acts?|"
    rf"Regulations|Order|Rules|Measure)(?:\s+(?P<after>{_YEARS}))?\b"
)
_ABBREVIATED = re.compile(rf"(?P<name>(?!SI\b)[A-Z]{{2,6}}|[A-Z][A-Za-z]{{1,8}}[A-Z])\s+(?P<year>{_YEARS})\b(?!/)")
# `point (f) of Article 6(1)` begins with the last part of the provision.
_POINT = re.compile(r"[Pp]oint\s{1,3}\(([a-z]{1,3})\)\s{1,3}of\s{1,3}")
_HEAD = re.compile(
    rf"(?:{_POINT.pattern})?"
    r"(?<![\w.])(?P<unit>[Ss]ections?|SECTIONS?|ss?\.?(?=\s?\d)|§§?|[Rr]egulations?|[Rr]egs?\.?(?=\s?\d)|[Aa]rticles?|"
    r"[Aa]rts?\.?(?=\s?\d)|[Rr]ules?|rr?\.?(?=\s?\d)|[Ss]chedules?|[Ss]chs?\.?(?=\s?\d)|[Pp]arts?|PARTS?|"
    r"Pts?\.?(?=\s?\d)|[Cc]hapters?|[Pp]aragraphs?|[Pp]aras?\.?(?=\s?\d)|[Rr]ecitals?|[Aa]nnex(?:es)?)"
    r"[^\S\n]*+(?:\n[^\S\n]*+)?(?=\d|[IVX]{1,9}\b)"
)
_APART = re.compile(r"\n\s*\n|•|\bc\. ?\d")
_OF = re.compile(r"(?:,?\s+|(?<=\)))(?:of|to|in|under)\s+(?:the\s+|that\s+|those\s+|this\s+|same\s+)*")
_AGAIN = re.compile(
    r"(?P<sort>Regulation|Directive|Decision)\b(?!\s{0,3}[(\d])"
)  # an act of the EU that was named before
# Another name of an act, in brackets after it: `Regulation (EU) 2016/679 (GDPR)`.
_ALIAS = re.compile(r"\s{0,3}\((?:[Tt]he\s{1,3})?['\"“‘]?(?:the\s{1,3})?")
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
_CODE = re.compile(r"(?:FPR|CrimPR|CrPR|IR)\b")
# Instruments known by their number.
_NUMBERED = re.compile(
    r"(?<![\w.])(?P<series>W\.?S\.?I\.?|S\.?S\.?I\.?|S\.?I\.?|S\.?R\.?)\s{0,3}(?:\(NI\)\s{0,3})?"
    r"(?P<year>(?:19|20)\d\d)\s?(?:/\s?|,?\s?[Nn]o\.?\s?)(?P<number>\d{1,4})(?![\w/])"
    r"(?:\s{0,3}\((?:[NWCLS]|N\.?I|Cy)\.?\s?\d{1,3}\))*"
)
_NUMBERED_ACT = re.compile(
    r"(?<!\w)(?P<year>(?:19|20)\d\d)\s{1,3}(?P<series>asp|anaw|asc)\s{1,3}(?P<number>\d{1,3})(?!\w)"
)
# The text between an instrument's name and its number: `County Courts Order 1991 (S.I. 1991/724)`.
_BEFORE_NUMBER = re.compile(r"\d{0,2}\s{0,3}[(,]\s{0,3}")
# Words that cannot begin a name.
_NOT_NAMES = frozenset(
    """
see under in by and the of for pursuant section sections s ss part parts chapter schedule regulation article rule
whether where when if as per to this that an a any cpr pd
""".split()
)
CODES: dict[str, str] = {
    "FPR": "family procedure rules",
    "CrimPR": "criminal procedure rules",
    "CrPR": "criminal procedure rules",
    "IR": "insolvency rules",
}
_UNIT_WORDS: dict[str, str] = {
    "section": "section sections s ss § §§",
    "regulation": "regulation regulations reg regs",
    "article": "article articles art arts",
    "rule": "rule rules r rr",
    "sch": "schedule schedules sch schs",
    "part": "part parts pt pts",
    "chapter": "chapter chapters",
    "para": "paragraph paragraphs para paras",
    "recital": "recital recitals",
    "annex": "annex annexes",
}
_NAME_CHARS = 160  # most characters of a name: the titles of cited Acts are shorter
_OURS = frozenset({"rules", "civil procedure rules", "civil procedure rules 1998"})
_UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
_OWN = {"section": ("act", "measure"), "regulation": ("regulations",), "article": ("order",), "rule": ("rules",)}
"""The kinds of instruments that are divided into each unit: Acts and Measures have sections, Orders have articles."""
_EUROPEAN = ("article", "recital", "annex")  # the units of an act of the EU; other instruments have only articles
_LARGE = frozenset({"sch", "part", "chapter"})
_MAX_CHARS_TO_ACT = 400  # greatest distance in characters from a bare `section 33` back to its Act

# Acts of the European Union.
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
_NAMES = {
    "uk gdpr": "UK (?:GDPR|General Data Protection Regulation)",
    "eu regulation 2016/679": "(?:EU )?GDPR|General Data Protection Regulation",
    "eu directive 1995/46": "Data Protection Directive",
    "eu regulation 2012/1215": ("Brussels I(?:a| bis| [Rr]ecast)(?: Regulation)?|[Rr]ecast Brussels (?:I )?Regulation"),
    "eu regulation 2001/44": "Brussels I(?: Regulation)?(?![a-z]| bis| [Rr]ecast)",
    "eu regulation 2007/864": "Rome II(?: Regulation)?",
    "eu regulation 2008/593": "Rome I(?: Regulation)?",
    "eu directive 2003/88": "Working Time Directive",
    "eu directive 2001/23": "Acquired Rights Directive",
    "tfeu": "TFEU|Treaty on the Functioning of the European Union",
    "teu": "TEU|Treaty on European Union",
    "eu charter": "(?:EU )?Charter of Fundamental Rights|EU Charter|CFR(?:EU)?",
    "echr": "ECHR|European Convention (?:on|for) (?:the Protection of )?Human Rights",
}
_NAMED = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(f"(?P<n{at}>{name})" for at, name in enumerate(_NAMES.values())).replace(" ", r"\s{1,3}")
    + r")(?![\w-])"
)
_OLDEST, _NEWEST = 1952, 2099  # years of acts: the first acts are those of the Coal and Steel Community
_YEAR_FIRST_FROM = 2015  # the first year of regulations with the year before the number; in `No 44/2001` it is last


def _find_numbered(text: str, names: Sequence[Named]) -> Iterator[tuple[Named, bool]]:
    """Yield each instrument that is cited by number, and whether the number directly follows the instrument's name."""
    for match in (match for pattern in (_NUMBERED, _NUMBERED_ACT) for match in pattern.finditer(text)):
        series = match["series"].replace(".", "").lower().replace("sr", "nisr")
        source = f"{series} {match['year']}/{int(match['number'])}"
        before = names[bisect(names, match.span()) - 1] if names and names[0].start < match.start() else None
        if before is None or before.end <= match.start():
            follows = before and _BEFORE_NUMBER.fullmatch(text, before.end, match.start())
            yield Named(*match.span(), before.name if before and follows else source), bool(follows)


def _is_european(name: str) -> bool:
    return name.startswith("eu ") or name in _NAMES


def _find_numbered_acts(text: str) -> Iterator[Named]:
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


def sort_of(name: str) -> str:
    if name.startswith("eu "):
        return name.split()[1]
    return "regulation" if name == "uk gdpr" else re.sub(r" ?\d{4}$", "", name).rpartition(" ")[2]


class _Statutes:
    """The instruments and the provisions that a text names, and the instrument to which each provision belongs."""

    def __init__(self, text: str) -> None:
        named = (Named(*match.span(), [*_NAMES][int(str(match.lastgroup)[1:])]) for match in _NAMED.finditer(text))
        acts = sorted([*_find_numbered_acts(text), *named])
        self.aliases = {
            b.start for a, b in pairwise(acts) if a.name == b.name and _ALIAS.fullmatch(text, a.end, b.start)
        }
        self.text = text = blank_spans(text, [Span(act.start, act.end) for act in acts])
        national = list(filter(None, (_read_instrument(text, match) for match in _ENDING.finditer(text))))
        # if names overlap, use the later name, which is longer
        self._national = [a for a, b in zip_longest(national, national[1:]) if b is None or a.end <= b.start]
        names = sorted([*acts, *self._national])
        numbered = list(_find_numbered(text, names))
        self.aliases |= {number.start for number, follows in numbered if follows}
        self.named = sorted([*names, *(number for number, _ in numbered)])
        self.by_start = {named.start: named for named in self.named}
        self.by_end = {gap.end(): named for named in self.named if (gap := _AFTER_NAME.match(text, named.end))}
        """The instruments by the position where a provision may follow: `GDPR art 17`."""
        dated = [
            Named(*match.span(), self._expand(f"{match['sort'].lower()} {match['year']}", match.start()))
            for match in _BY_YEAR.finditer(text)
        ]
        self._mentions = sorted([*self.named, *dated])
        units = read_units(text, _HEAD, roman=("part", "pt", "chapter", "sch", "annex"))
        self.units = {unit.start: unit._replace(unit=_UNITS[unit.unit]) for unit in units}
        self.owners: dict[int, tuple[Named, int] | None] = {}

    def find_at(self, start: int, *, joined: bool) -> Named | None:
        """Return the instrument that is named at a position; short names are recognised only after `of` (`joined`)."""
        if named := self.by_start.get(start):
            return named
        if match := _ABBREVIATED.match(self.text, start):
            return Named(start, match.end(), f"{match['name'].lower()} {match['year']}")
        if match := _CODE.match(self.text, start):
            return Named(start, match.end(), CODES[match[0]])
        if match := _AGAIN.match(self.text, start) if joined else None:
            last = self.find_last(start, match["sort"].lower())
            return Named(start, match.end(), last.name) if last else None
        match = _SHORT.match(self.text, start) if joined else None
        if match is None or (plain := _normalise_name(match.group())) in _OURS:
            return None
        sort = match["sort"].lower()
        if match["name"].strip() or match["year"]:
            short = plain if match["name"].strip() else f"{sort} {match['year']}"
            return Named(start, match.end(), self._expand(short, start))
        last = self.find_last(start, sort)
        return Named(start, match.end(), last.name if last else "")

    def _expand(self, short: str, start: int) -> str:
        """Return the full name for a short name such as `act 1980`.

        It is the last full name that fits and precedes the position or, if there is none, the first that fits.
        """
        same = [named for named in self._national if is_same_source("statute", short, named.name)]
        earlier = [named for named in same if named.end <= start]
        return (earlier[-1:] or same[:1] or [Named(0, 0, short)])[0].name

    def find_last(self, before: int, sort: str) -> Named | None:
        return next((m for m in reversed(self._mentions) if m.end <= before and sort_of(m.name) == sort), None)

    def find_owner(self, unit: NumberedUnit) -> tuple[Named, int] | None:
        others = _OTHER_RULES.search(self.text, unit.start - 30, unit.start)
        if others and unit.unit in {"rule", "part"}:
            name = CODES[others["code"]] if others["code"] else f"{others['name'].lower()} rules"
            return Named(others.start(), unit.end, name), unit.end
        if following := self.find_outer(unit):
            return self.owners.get(following.start)
        for gap, joined in ((_OF.match(self.text, unit.end), True), (_THEN.match(self.text, unit.end), False)):
            instrument = self.find_at(gap.end(), joined=joined) if gap else None
            if instrument and _can_have(instrument.name, unit.unit):
                return instrument, instrument.end
        listed = _LIST.match(self.text, unit.end)
        beside = self.units.get(listed.end()) if listed else None
        owner = self.owners.get(beside.start) if beside else None
        if beside and owner and (beside.unit == unit.unit or (_is_european(owner[0].name) and unit.unit in _EUROPEAN)):
            return owner[0], unit.end
        return self._find_owner_before(unit)

    def _find_owner_before(self, unit: NumberedUnit) -> tuple[Named, int] | None:
        if instrument := self.by_end.get(unit.start):
            numbered = "/" in instrument.name or instrument.name in _NAMES
            usual = unit.unit not in _OWN or numbered or sort_of(instrument.name) in _OWN[unit.unit]
            return (instrument, unit.end) if usual and _can_have(instrument.name, unit.unit) else None
        undotted = "." not in self.text[unit.number : unit.end]
        near = self.find_last(unit.start, "act") if unit.unit == "section" and undotted else None
        if near is None or unit.start - near.end > _MAX_CHARS_TO_ACT or _OF.match(self.text, unit.end):
            return None
        # a footnote cites an Act by its chapter: "1950 c. 27; section 26 was repealed by the Arbitration Act 1996"
        return None if _APART.search(self.text, near.end, unit.start) else (near, unit.end)

    def find_outer(self, unit: NumberedUnit) -> NumberedUnit | None:
        """Return the Schedule, Part or Chapter that is named after a provision and contains it."""
        chain = _CHAIN.match(self.text, unit.end)
        following = self.units.get(chain.end()) if chain else None
        if not chain or not following or following.unit not in _LARGE or following.unit == unit.unit:
            return None
        # "section 10, Schedule 2" cites two provisions of one Act
        listed = unit.unit in ("section", "regulation") and following.unit == "sch" and not chain[0].strip(" ,")
        return None if listed else following

    def list_paths(self, unit: NumberedUnit) -> Iterator[Path]:
        outer, point = self.find_outer(unit), _POINT.match(self.text, unit.start)
        prefix: Path = next(self.list_paths(outer)) if outer else ()
        for path in unit.paths:
            plain = unit.unit in _OWN or unit.unit in _EUROPEAN or (unit.unit == "para" and prefix)
            below = (*path[1:], point[1]) if point else path[1:]
            yield (*prefix, path[0] if plain else f"{unit.unit} {path[0]}", *below)


def _read_instrument(text: str, ending: re.Match[str]) -> Named | None:
    """Return the Act, Order or other instrument with its full name; None for the Civil Procedure Rules."""
    start = ending.start()
    listed = False
    floor = max(0, start - _NAME_CHARS)
    while token := _TOKEN.search(text[floor:start]):
        if token["word"] and token["word"].lower().rstrip("'’s") in _NOT_NAMES:
            break
        if token["comma"] and not listed:
            break  # "Legal Aid, Sentencing and Punishment …" is one name; "In London, Senior Courts Act" is not
        if token["inner"] and text[start] != "(":
            break  # orders contain the names of Acts: "Access to Justice Act 1999 (Destination of Appeals) Order 2016"
        listed = listed or token["small"] == "and"
        start = floor + token.start()
    start += len(re.match(r"(?:(?:of|and|for|in|to|on|by|with)\b|[,\s])*", text[start : ending.start()])[0])  # type: ignore[index]
    words = text[start : ending.start()].strip()
    # Acts have "Northern Ireland" after the word Act, Orders before the word Order: move both to the same position
    place = " (Northern Ireland)" if ending["place"] else ""
    name = _normalise_name(f"{words}{place} {ending['sort']} {ending['year']}")
    if not words or name == "civil procedure rules 1998":
        return None
    return Named(start, ending.end(), re.sub(r"\bacts (?=\d{4}$)", "act ", name))


def _normalise_name(name: str) -> str:
    words = re.sub(r"['’]", "", " ".join(name.split())).lower().replace("&", "and").replace(",", "")
    return re.sub(r"^the ", "", re.sub(r"\((?:ni|n\.i\.)\)", "(northern ireland)", words)).strip()


def find_statutes(text: str) -> Iterator[Mention]:
    statutes = _Statutes(text)
    used = statutes.aliases
    outer = {outer.start for unit in statutes.units.values() if (outer := statutes.find_outer(unit))}
    for unit in reversed(statutes.units.values()):
        # in "section 33 and section 35 of the Act" the later section names the Act
        owner = statutes.owners[unit.start] = statutes.find_owner(unit)
        if owner is None:
            continue
        instrument, end = owner
        used.add(instrument.start)
        if unit.start not in outer:  # "paragraph 6 of Schedule 18" is one reference
            paths = list(statutes.list_paths(unit)) if instrument.name else []
            yield make_mention("statute", instrument.name, paths, unit.start, end)
    for match in _CODE_ALONE.finditer(statutes.text):
        if numbers := read_numbers(statutes.text, match.end(), plural=True):
            yield make_mention("statute", CODES[match["code"]], numbers.paths, match.start(), numbers.end)
    for instrument in statutes.named:
        paths = [] if instrument.start in used else [()]
        yield make_mention("statute", instrument.name, paths, instrument.start, instrument.end)


def _can_have(name: str, unit: str) -> bool:
    """Return whether an instrument may have a unit of a kind: acts of the EU have no sections."""
    if _is_european(name):
        return unit in _EUROPEAN
    return unit not in {"recital", "annex"} and (unit != "rule" or sort_of(name) not in {"act", "order", "regulations"})
