"""Neutral citations: `[2024] EWCA Civ 123`, `[2024] EWHC 789 (Ch)`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from law.references.stretch import Stretch, stretch

_COURTS = """UKSC UKHL UKPC EWCA EWHC EWFC EWCOP EWCC EWCR UKUT UKFTT UKEAT EAT UKIAT UKAITUR UKSIAC UKIPTrib CAT
UKGD CSIH CSOH HCJAC HCJ SAC ScotSC NICA NIQB NIKB NICh NICC NIFam NIMag NICty""".split()
_DIVIDED = {"EWCA": ("Civ", "Crim")}
"""Courts whose division stands before the number; elsewhere it follows in brackets."""
_BY_NAME = {court.upper(): court for court in _COURTS}
_DIVISIONS = {
    name.upper(): name
    for name in """Ch QB KB Admin Comm Pat TCC Fam IPEC Admlty Costs SCCO Mercantile CommLC Cases B T1 T2 T3 AAC IAC LC
    TC GRC HESC PC SEC WPAFCC Ftpr""".split()
}
_CITATION = re.compile(
    rf"""\[(?P<year>(?:19|20)\d\d)\]\s+(?P<court>{"|".join(sorted(_COURTS, key=len, reverse=True))})
    (?:\s+(?P<before>Civ|Crim)\b\.?)?\s+(?P<number>\d{{1,5}})(?![\d_])(?:\s{{0,2}}\((?P<after>[A-Za-z0-9]{{1,10}})\))?""",
    re.VERBOSE | re.IGNORECASE,
)


def find_cases(text: str) -> Iterator[Stretch]:
    """Yield every neutral citation; law reports such as [1974] AC 133 are none."""
    for match in _CITATION.finditer(text):
        court = _BY_NAME[match["court"].upper()]
        division = _DIVISIONS.get((match["after"] or "").upper())
        end = match.end() if division or not match["after"] else match.end("number")
        if court in _DIVIDED:
            source = f"{court} {match['before'].capitalize()}" if match["before"] else court
            end = match.end("number")
        else:
            source = f"{court} ({division})" if division else court
        yield stretch("case", source, [(match["year"], str(int(match["number"])))], match.start(), end)
