"""Where the official registers keep what a reference names: addresses, made from the reference alone."""

from __future__ import annotations

import re

from exhibit.law.references import Reference

_COURTS = {
    "UKSC": "uksc",
    "UKPC": "ukpc",
    "EWCA Civ": "ewca/civ",
    "EWCA Crim": "ewca/crim",
    "EWFC": "ewfc",
    "EWFC (B)": "ewfc/b",
    "EWCOP": "ewcop",
    "EWCOP (T1)": "ewcop/t1",
    "EWCOP (T2)": "ewcop/t2",
    "EWCOP (T3)": "ewcop/t3",
    "EWCC": "ewcc",
    "EWCR": "ewcr",
    "EAT": "eat",
    "UKIPTrib": "ukiptrib",
}
_DIVIDED = {
    "EWHC": "Admin Admlty Ch Comm Costs Fam IPEC KB Mercantile Pat QB SCCO TCC",
    "UKUT": "AAC IAC LC TCC",
    "UKFTT": "GRC TC PC",
}
COURTS = _COURTS | {
    f"{court} ({division})": f"{court}/{division}".lower()
    for court, divisions in _DIVIDED.items()
    for division in divisions.split()
}
"""Courts whose judgments Find Case Law has, and the beginning of their addresses there."""
COMPLETE_FROM = 2023
"""Find Case Law has received every judgment since it opened in April 2022; of what is older it has a part."""

_SERIES = {"si": "uksi", "eu regulation": "eur", "eu directive": "eudr", "eu decision": "eudn"}
_NUMBERED = re.compile(r"(?P<series>si|ssi|nisr|wsi|asp|anaw|asc|nia|eu \w+) (?P<year>\d{4})/(?P<number>\d+)")
_LAST_EUROPEAN = 2020
"""What the European Union made after the end of 2020 is no law of the United Kingdom, and not in its register."""
_UNITS = {"act": "section", "measure": "section", "regulations": "regulation", "order": "article", "rules": "rule"}
_TITLED = re.compile(r"(?P<name>.+) (?P<sort>act|regulations|order|rules|measure) \d{4}")
_ANY_UNIT = ("regulation", "article", "rule")
_INSIDE = {"sch": "schedule", "part": "part", "chapter": "chapter", "annex": "annex"}


def case_path(reference: Reference) -> str | None:
    """Return the path of a judgment, `ewca/civ/2024/123`; None where Find Case Law has none of that court."""
    court = COURTS.get(reference.source)
    return f"{court}/{reference.path[0]}/{reference.path[1]}" if court else None


def instrument_path(source: str) -> str | None:
    """Return the path of an instrument that is known by its number, `uksi/2002/618`; None for one known by its name."""
    if source == "uk gdpr":
        return "eur/2016/679"
    match = _NUMBERED.fullmatch(source)
    if match is None or not is_covered(source):
        return None
    return f"{_SERIES.get(match['series'], match['series'])}/{match['year']}/{match['number']}"


def is_covered(source: str) -> bool:
    """Return whether the register of legislation has such instruments at all, as far as the name tells."""
    match = _NUMBERED.fullmatch(source)
    if match:
        return not match["series"].startswith("eu ") or int(match["year"]) <= _LAST_EUROPEAN
    return source == "uk gdpr" or _TITLED.fullmatch(source) is not None


def provision_paths(reference: Reference) -> list[str]:
    """Return the paths that a provision may have in its instrument, `section/33/1`; none for what has no address."""
    if not reference.path:
        return []
    first, *rest = reference.path
    word, _, number = first.partition(" ")
    if number:
        return _large(word, number, rest)
    units = (_unit(reference.source),) if _unit(reference.source) else _ANY_UNIT
    if units == ("article",) and reference.source.startswith(("eu ", "uk gdpr")):
        return [f"article/{first}"]  # what an article holds is numbered without addresses of its own
    return ["/".join([unit, first, *rest]) for unit in units]


def _large(word: str, number: str, rest: list[str]) -> list[str]:
    """Return the path of a Schedule, a Part, a Chapter or an Annex; recitals have none."""
    if word not in _INSIDE:
        return []
    path = f"{_INSIDE[word]}/{number}"
    if word == "sch" and rest and " " not in rest[0]:
        path = "/".join([path, "paragraph", *rest])
    elif rest and " " in rest[0]:
        inner = rest[0].split(" ", 1)
        more = _large(inner[0], inner[1], rest[1:])
        return [f"{path}/{more[0]}"] if more else []
    return [path]


def _unit(source: str) -> str:
    """Return what a provision of an instrument is called, as its name tells; nothing where that is not known."""
    if source.startswith("eu ") or source == "uk gdpr":
        return "article"
    if source.startswith(("asp ", "anaw ", "asc ", "nia ")):
        return "section"
    match = _TITLED.fullmatch(source)
    return _UNITS[match["sort"]] if match else ""
