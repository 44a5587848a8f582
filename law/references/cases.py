"""Decisions: neutral citations such as `[2024] EWCA Civ 123`, and those known by the number of their case."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exhibit.law.references.reference import Stretch, stretch

_COURTS = """UKSC UKHL UKPC EWCA EWHC EWFC EWCOP EWCC EWCR UKUT UKFTT EAT UKIAT UKAITUR UKSIAC UKIPTrib CAT
UKGD CSIH CSOH HCJAC HCJT HCJ SAC ScotSC UT NICA NIQB NIKB NICh NICC NIFam NIMag NIMaster NICty
NICoroner""".split()
_DIVIDED = frozenset({"EWCA", "SAC"})
"""Courts whose division stands before the number, the Sheriff Appeal Court's in brackets; elsewhere it follows."""
_SHERIFFS = """ABE AIR ALL ARB AYR BAN CAM DNF DUM DUN EDIN ELG FAL FOR GLA GRE
HAM INV JED KIL KIR KLK LAN LER LIV OBA PAI PER PET POR SEL STI STO STR TAI WIC"""
"""Towns whose sheriffs' judgments are numbered for themselves; `[2019] SC 12` is a page of a law report."""
_BY_NAME = {court.upper(): court for court in _COURTS}
_DIVISIONS = {
    name.upper(): name
    for name in """Ch QB KB Admin Comm Pat TCC Fam IPEC Admlty Costs SCCO Mercantile CommLC Cases B T1 T2 T3 AAC IAC LC
    TC GRC HESC PC SEC WPAFCC Ftpr""".split()
}
_CITATION = re.compile(
    rf"""\[(?P<year>(?:19|20)\d\d)\]\s+
    (?:(?P<court>{"|".join(sorted(_COURTS, key=len, reverse=True))})|SC\s+(?P<town>{"|".join(_SHERIFFS.split())}))
    (?:\s+\(?(?P<before>Civ|Crim)\b\.?\)?)?\s+(?P<number>\d{{1,5}})(?![\d_])(?:\s{{0,2}}\((?P<after>[A-Za-z0-9]{{1,10}})\))?""",
    re.VERBOSE | re.IGNORECASE,
)


def find_cases(text: str) -> Iterator[Stretch]:
    """Yield every neutral citation; law reports such as [1974] AC 133 are none."""
    for match in _CITATION.finditer(text):
        court = _BY_NAME[match["court"].upper()] if match["court"] else f"SC {match['town'].upper()}"
        after = match["after"] or ""
        # "[2022] EWFC 9 (b) the second point": a division of one letter is a capital
        division = None if after == after.lower() and len(after) == 1 else _DIVISIONS.get(after.upper())
        end = match.end() if division or not match["after"] else match.end("number")
        if court in _DIVIDED:
            source = _divided(court, match["before"])
            end = match.end("number")
        else:
            source = f"{court} ({division})" if division else court
        yield stretch("case", source, [(match["year"], str(int(match["number"])))], match.start(), end)


def _divided(court: str, division: str | None) -> str:
    if not division:
        return court
    return f"{court} ({division.capitalize()})" if court == "SAC" else f"{court} {division.capitalize()}"


# ---------------------------------------------------------------- decisions known by the number of their case

_APPEAL = re.compile(
    r"(?<![\w/])(?P<court>UKEATPAS|UKEATPA|UKEATS|UKEAT|EAT)\s?/\s?(?P<number>\d{1,4})\s?/\s?(?P<year>\d{4}|\d\d)"
    r"(?:\s?/\s?[A-Z]{2,4})?(?![\w/])"
)
_BAILII = re.compile(
    r"\[(?:19|20)\d\d\]\s{1,3}(?P<court>UKEATPA|UKEATS|UKEAT)\s{1,3}(?P<number>\d{4})_(?P<year>\d\d)(?:_\d{4})?(?!\w)"
)
_SINCE_2020 = re.compile(r"(?<![\w-])EA-(?P<year>20\d\d)-(?P<scottish>SCO-)?(?P<number>\d{6})(?:-[A-Z]{2,4})?(?![\w-])")
_REPORTED = re.compile(r"\[(?P<year>(?:19|20)\d\d)\]\s{1,3}(?P<series>ICR|IRLR)\s{1,3}(?P<number>\d{1,4})(?!\w)")
_LUXEMBOURG = re.compile(
    r"(?<!\w)(?:Joined\s{1,3})?Cases?\s{1,3}(?P<first>[CTF][-‐‑–]\d{1,4}/\d\d(?!\d))"
    r"(?P<more>(?:(?:,\s{0,3}|\s{1,3}(?:and|to)\s{1,3})[CTF][-‐‑–]\d{1,4}/\d\d(?!\d)){0,9})"
)
_NUMBER = re.compile(r"([CTF])[-‐‑–](\d{1,4}/\d\d)")


def find_tribunals(text: str) -> Iterator[Stretch]:
    """Yield appeals to the Employment Appeal Tribunal, employment law reports, and cases of the Court of Justice."""
    for pattern in (_APPEAL, _BAILII):
        for match in pattern.finditer(text):
            court = "UKEAT" if match["court"] == "EAT" else match["court"]
            path = (f"{int(match['number']):04}", match["year"][-2:])
            yield stretch("case", court, [path], *match.span())
    for match in _SINCE_2020.finditer(text):
        yield stretch("case", "EA", [(match["year"], (match["scottish"] or "") + match["number"])], *match.span())
    for match in _REPORTED.finditer(text):
        yield stretch("case", match["series"], [(match["year"], str(int(match["number"])))], *match.span())
    for match in _LUXEMBOURG.finditer(text):
        yield stretch("case", "CJEU", _NUMBER.findall(match.group()), *match.span())
