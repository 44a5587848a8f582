"""Finds references to the Civil Procedure Rules, practice directions, court guides, and decisions."""

import re
from collections.abc import Iterator

from exhibit.law.language import make_word_pattern
from exhibit.law.references.reference import (
    Mention,
    Named,
    NumberedUnit,
    Numbers,
    Path,
    make_mention,
    read_numbers,
    read_units,
)

# The Civil Procedure Rules.
_CPR = r"(?:CPR|C\.P\.R\.|Civil\s+Procedure\s+Rules?(?:\s{1,9}1998)?)"
_RULE = re.compile(rf"""(?x)(?<![\w.])(?:(?P<cpr>{_CPR}),?\s{{0,9}}(?:\(?(?P<of>Parts?|Pts?\.?|[Rr]ules?|rr?\.?))?
    |(?P<unit>(?:PART|[Pp]art)[Ss]?|Pts?\.?|(?:RULE|[Rr]ule)[Ss]?|rr?\.?))[^\S\n]{{0,9}}\n?[^\S\n]{{0,9}}(?=\d)""")
_ITS_PARTS = re.compile(rf"\s+(?:of|in)\s+(?:the\s+|these\s+)?(?:{_CPR}|Rules\b)")
_OTHER_PARTS = re.compile(
    r"\s+(?:of|OF)\s+(?:\d|the\b|this\b|that\b|those\b|an?\b|[Ss]chedule|[A-Z\0])|"
    r",?\s+to\s+(?:the\s+)?(?:Schedule|Act\b)"
)
_SCHEDULE = re.compile(r"(?:Schedule|Sch\.?|Annex|Appendix|Chapter|Volume)\s+\w{1,3},?\s*$")
# Practice directions.
_NAME = r"(?:CPR\s*)?(?:[Pp]ractice\s+[Dd]irections?|PRACTICE\s+DIRECTIONS?|PDs?|CPRPD)"
_HEAD = re.compile(rf"(?<![A-Za-z]){_NAME}\s*(?:No\.?\s*)?(?=\d)")
_UNIT = (
    r"(?P<unit>[Pp]aragraphs?|PARAGRAPHS?|[Pp]aras?\.?|§§?|(?:[Ss]ub-?)?[Ss]ections?|"
    r"[Aa]nnex(?:es)?|ANNEX|[Aa]ppendi(?:x|ces)|APPENDIX)"
)
_INSIDE = re.compile(rf"(?<!\w){_UNIT}\s*(?=[\dA-Z])")
_AFTER = re.compile(rf"[,:]?\s*\(?(?:(?:at|in)\s+)?(?={_UNIT}\s*[\dA-Z])")
_OF = re.compile(rf"\s+(?:of|to|in)\s+(?:the\s+)?(?={_NAME}\s*\d)|\s+(?=PD\s?\d)")
_LAST = re.compile(
    r"\s+(?:of|to|in)\s+(?:the|that)\s+(?:[Pp]ractice\s+[Dd]irection|PD)\b(?!\s*(?:\d|supplement|to\b|accomp))"
)
# Court guides.
_GUIDE_NAME = re.compile(r"""(?x)(?<!\w)
    (?:(?:(?:[A-Z][a-z]+(?:['’]?s|s['’])?|TCC|KBD?|QBD?|IPEC|SCCO)\s+(?:and\s+)?){1,6}Guide(?:\s+20\d\d)?\b
    |CCG\b)""")
_LEAD = re.compile(r"(?:(?:the|see|under|in|this|that|of|per|by|and|both|wales|business|property|courts|judiciary) )+")
_GUIDE_UNIT = re.compile(r"""(?x)(?<!\w)
    (?P<unit>(?:[Ss]ub[-\s]?)?[Ss]ections?|[Pp]aragraphs?|[Pp]aras?\.?|[Cc]hapters?|§§?
    |(?:[Aa]nnex|ANNEX)(?:es)?|[Aa]ppendi(?:x|ces)|APPENDIX)\s*(?=[\dA-Z(])""")
_TO_NAME = re.compile(r",?\s+(?P<of>(?:of|to|in)\s+)?(?:(?:the|this)\s+)?(?=[A-Z])")
_AFTER_NAME = re.compile(r"(?:\s*\([^()\n]{1,30}\))?[,:]?\s*(?:at\s+)?")
_WITH_LETTER = re.compile(r"[A-Z]\.?\d")
_WITH_POINT = re.compile(r"[A-Z]\.?\d|\d+\.\d")
_NUMBER_ALONE = re.compile(r"(?:[A-Z]\.?\d+(?:\.\d+)*|\d{1,2}(?:\.\d{1,3})+)(?![\w%])")
_OF_SOMETHING = re.compile(
    r"(?i)\s+(?:of|to|in)\s+(?:(?:this|that|the|these|an?|its?|your|our)\s+)?(?:\0|[A-Za-z]+)(?<!\sthe)"
)
_OF_GUIDE = re.compile(r"\s+(?:of|to|in)\s+(?:the|that|(?P<own>this))\s+[Gg]uide\b")
# Decisions.
_COURT_NAMES = """
UKSC UKHL UKPC EWCA EWHC EWFC EWCOP EWCC EWCR UKUT UKFTT EAT UKIAT UKAITUR UKSIAC UKIPTrib CAT UKGD CSIH CSOH HCJAC HCJT
HCJ SAC ScotSC UT NICA NIQB NIKB NICh NICC NIFam NIMag NIMaster NICty NICoroner ICR IRLR
""".split()  # ICR and IRLR report old employment cases, which have no neutral citation
# Towns whose sheriff courts number their own judgments; `[2019] SC 12` is a page of a law report.
_SHERIFFS = """
ABE AIR ALL ARB AYR BAN CAM DNF DUM DUN EDIN ELG FAL FOR GLA GRE HAM INV JED KIL KIR KLK LAN LER LIV OBA PAI PER PET POR
SEL STI STO STR TAI WIC
""".split()
_CITATION = re.compile(rf"""(?ix)\[(?P<year>(?:19|20)\d\d)\]\s+
    (?:(?P<court>{make_word_pattern(_COURT_NAMES)})|SC\s+(?P<town>{make_word_pattern(_SHERIFFS)}))
    (?:\s+\(?(?P<before>Civ|Crim)\b\.?\)?)?\s+(?P<number>\d{{1,5}})(?![\d_])
    (?:\s{{0,2}}\((?P<after>[A-Za-z0-9]{{1,10}})\))?""")
_APPEAL = re.compile(
    r"(?<![\w/])(?P<court>UKEATPAS|UKEATPA|UKEATS|UKEAT|EAT)\s?/\s?(?P<number>\d{1,4})\s?/\s?(?P<year>\d{4}|\d\d)"
    r"(?:\s?/\s?[A-Z]{2,4})?(?![\w/])"
)
_BAILII = re.compile(
    r"\[(?:19|20)\d\d\]\s{1,3}(?P<court>UKEATPA|UKEATS|UKEAT)\s{1,3}(?P<number>\d{4})_(?P<year>\d\d)(?:_\d{4})?(?!\w)"
)
_SINCE_2020 = re.compile(r"(?<![\w-])EA-(?P<year>20\d\d)-(?P<scottish>SCO-)?(?P<number>\d{6})(?:-[A-Z]{2,4})?(?![\w-])")
_LUXEMBOURG = re.compile(
    r"(?<!\w)(?:Joined\s{1,3})?Cases?\s{1,3}(?P<first>[CTF][-‐‑–]\d{1,4}/\d\d(?!\d))"
    r"(?P<more>(?:(?:,\s{0,3}|\s{1,3}(?:and|to)\s{1,3})[CTF][-‐‑–]\d{1,4}/\d\d(?!\d)){0,9})"
)
_NUMBER = re.compile(r"([CTF])[-‐‑–](\d{1,4}/\d\d)")
_DIVISION_NAMES = """
Ch QB KB Admin Comm Pat TCC Fam IPEC Admlty Costs SCCO Mercantile CommLC Cases B T1 T2 T3 AAC IAC LC TC GRC HESC PC SEC
WPAFCC Ftpr
""".split()
# Short names and earlier names of guides.
_ALIASES: dict[str, str] = {
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
_HIGHEST = 99  # the highest number of a Part: the Rules have 89 Parts, and a higher number belongs to other rules


def find_rules(text: str) -> Iterator[Mention]:
    for match in _RULE.finditer(text):
        unit = (match["of"] or match["unit"] or "").lower().rstrip(".")
        numbers = read_numbers(text, match.end(), plural=unit in {"parts", "rules", "rr", "pts"})
        if numbers and _is_rule(text, match, numbers, whole=unit.startswith("p")):
            yield make_mention("rule", "CPR", numbers.paths, match.start(), numbers.end)


def _is_rule(text: str, match: re.Match[str], numbers: Numbers, *, whole: bool) -> bool:
    first = numbers.paths[0]
    if match["cpr"]:
        return True
    if int(re.sub(r"\D", "", first[0])) > _HIGHEST or _SCHEDULE.search(text, match.start() - 40, match.start()):
        return False
    if whole:
        return bool(_ITS_PARTS.match(text, numbers.end)) or not _OTHER_PARTS.match(text, numbers.end)
    # only rule 11 has no point in its number: "rule 28" of an arbitration institute is not a rule of the CPR
    return "." in text[match.end() : numbers.end] or (first[0] == "11" and len(first) > 1)


def find_directions(text: str) -> Iterator[Mention]:
    """Yield practice directions; `paragraph 2.1 of the Practice Direction` refers to the last named direction."""
    heads: dict[int, Numbers] = {}
    for head in _HEAD.finditer(text):
        plural = head[0].strip().lower().endswith("s")
        if numbers := read_numbers(text, head.end(), plural=plural, single=not plural):
            heads[head.start()] = numbers
    units = {unit.start: unit for unit in read_units(text, _INSIDE)}
    alone = dict(heads)
    for unit in list(units.values()):
        of, last = _OF.match(text, unit.end), _LAST.match(text, unit.end)
        if of and (direction := alone.pop(of.end(), None)):
            del units[unit.start]
            yield make_mention("direction", direction.paths[0][0], unit.paths, unit.start, direction.end)
        elif last and (named := [n.paths[-1][0] for start, n in heads.items() if start < unit.start]):
            yield make_mention("direction", named[-1], unit.paths, unit.start, last.end())
    for start, numbers in alone.items():
        *others, (number, *inner_labels) = numbers.paths  # a list such as `PD 51Z and 57AC`
        for other, *inside in others:
            yield make_mention("direction", other, [tuple(inside)], start, numbers.end)
        after = None if inner_labels else _AFTER.match(text, numbers.end)
        following = units.get(after.end()) if after else None
        paths, end = (following.paths, following.end) if following else ((tuple(inner_labels),), numbers.end)
        yield make_mention("direction", number, paths, start, end)


def guide_name(text: str) -> str:
    """Return a guide's name in normal form: `kings bench` for the King's Bench Division Guide 2025."""
    plain = re.sub(r"['’]", "", " ".join(text.split())).lower()
    plain = re.sub(r" ?guide(?: \d{4})?$", "", plain).replace(" division", "")
    plain = plain.rpartition(" the ")[2]
    lead = _LEAD.match(f"{plain} ")
    plain = plain[lead.end() :].strip() if lead else plain
    return _ALIASES.get(plain, plain)


def name_guides(text: str) -> list[Named]:
    matches = _GUIDE_NAME.finditer(text)
    return [Named(*match.span(), name) for match in matches if (name := guide_name(match.group()))]


def find_guides(text: str) -> Iterator[Mention]:
    named = name_guides(text)
    starts = {guide.start: guide.name for guide in named}
    known: list[tuple[str, Path]] = []
    for unit in sorted(_find_units(text, named)):
        joined = _TO_NAME.match(text, unit.end)
        after = starts.get(joined.end()) if joined else None
        gaps = ((guide.name, _AFTER_NAME.match(text, guide.end)) for guide in named if guide.end <= unit.start)
        before = next((name for name, gap in gaps if gap and unit.start <= gap.end()), None)
        guide = after if joined and joined["of"] and after else before or after
        if guide is None:
            guide = _infer_guide(text, unit, named, known)
        if guide is not None:
            known += [(guide, path) for path in unit.paths]
            yield make_mention("guide", guide, unit.paths, unit.start, unit.end)


def _infer_guide(text: str, unit: NumberedUnit, named: list[Named], known: list[tuple[str, Path]]) -> str | None:
    last = next((guide.name for guide in reversed(named) if guide.end <= unit.start), None)
    if of_guide := _OF_GUIDE.match(text, unit.end):
        # a guide states its own name before the names of others
        return named[0].name if of_guide["own"] and last else last or ""
    written = text[unit.number : unit.end]
    annexed = unit.paths[0][0].startswith(("annex", "appendix"))
    # an annex or a number with a letter needs no guide's name, because only guides have them
    fixed = annexed or _WITH_LETTER.match(written) or ("para" not in unit.unit and _WITH_POINT.match(written))
    if not unit.unit or not fixed or _OF_SOMETHING.match(text, unit.end):
        return None
    near = [guide for guide, path in known if path[:2] == unit.paths[0][:2] and len(path) > 1]
    return near[-1] if near else last if last is not None else "" if annexed else None


def _find_units(text: str, named: list[Named]) -> Iterator[NumberedUnit]:
    for unit in read_units(text, _GUIDE_UNIT, lettered=True):
        # "Annexes 212" in a table of contents is a page number
        if not (unit.unit.startswith(("annex", "append")) and re.search(r"\d{3}|\n", text[unit.start : unit.end])):
            yield unit
    for guide in named:
        gap = _AFTER_NAME.match(text, guide.end)
        number = _NUMBER_ALONE.match(text, gap.end()) if gap and "\n" not in gap.group() else None
        numbers = read_numbers(text, number.start(), plural=False, lettered=True) if number else None
        if number and numbers:
            yield NumberedUnit(number.start(), number.start(), numbers.end, "", numbers.paths)


_COURTS = {court.upper(): court for court in _COURT_NAMES}
_DIVISIONS = {division.upper(): division for division in _DIVISION_NAMES}


def find_cases(text: str) -> Iterator[Mention]:
    """Yield the cases in neutral citations and employment law reports, but not in other reports ([1974] AC 133)."""
    for match in _CITATION.finditer(text):
        court = _COURTS[match["court"].upper()] if match["court"] else f"SC {match['town'].upper()}"
        before, after, end = (match["before"] or "").capitalize(), match["after"] or "", match.end("number")
        # "[2022] EWFC 9 (b) the second point": a division with a single letter must be a capital
        division = None if after == after.lower() and len(after) == 1 else _DIVISIONS.get(after.upper())
        if court == "EWCA":  # in this court and the Sheriff Appeal Court the division precedes the number
            source = f"EWCA {before}".strip()
        elif court == "SAC":
            source = f"SAC ({before})" if before else court
        else:
            source, end = (f"{court} ({division})", match.end()) if division else (court, end)
        yield make_mention("case", source, [(match["year"], str(int(match["number"])))], match.start(), end)


def find_tribunals(text: str) -> Iterator[Mention]:
    """Yield appeals to the Employment Appeal Tribunal and cases of the Court of Justice."""
    for match in (match for pattern in (_APPEAL, _BAILII) for match in pattern.finditer(text)):
        court = "UKEAT" if match["court"] == "EAT" else match["court"]
        path = (f"{int(match['number']):04}", match["year"][-2:])
        yield make_mention("case", court, [path], *match.span())
    for match in _SINCE_2020.finditer(text):
        yield make_mention("case", "EA", [(match["year"], (match["scottish"] or "") + match["number"])], *match.span())
    for match in _LUXEMBOURG.finditer(text):
        yield make_mention("case", "CJEU", _NUMBER.findall(match.group()), *match.span())
