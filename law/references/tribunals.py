"""Decisions known by the number of their case: the Employment Appeal Tribunal, and the Court of Justice.

The tribunal's judgments have had a neutral citation (`[2021] EAT 12`) since 2021 only. Before, they were cited by the
number of the appeal, `UKEAT/0123/20/LA`, whose last letters say who heard it and belong to no one reading; or by the
pages of the two series that report employment law, the ICR and the IRLR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from exhibit.law.references.stretch import Stretch, stretch

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
