"""What a document says of itself on its first pages, by rule: title, kind, parties, date."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import unquote

from exhibit.evidence import Document
from exhibit.law.casing import tidy, title_case
from exhibit.law.dates import MONTH
from exhibit.law.editions import read_edition
from exhibit.law.names import without_ending
from exhibit.law.opening import date_of, kind_of, parties_of
from exhibit.law.structure.lines import Line, read_opening

_NEAR = 6000  # characters: two pages, in which a document says what it is and between whom
_LONGEST_TITLE = 120  # characters: what is longer is a sentence
_MARGIN = 60
"""A shorter line did not end for want of room: the next one stands by itself."""


@dataclass(frozen=True)
class Profile:
    """What a document says of itself on its first pages."""

    title: str = ""
    kind: str = ""
    """contract, nda, merger agreement, privacy policy, legislation, rules, practice direction, court guide …"""
    parties: tuple[str, ...] = ()
    date: str = ""


def read_profile(document: Document) -> Profile:
    """Return the title, kind, parties and date; what is not said is empty, but the title: there the file's name."""
    edition = read_edition(document.text)
    if edition is not None:
        return Profile(title=edition.title, kind="legislation", date=edition.dated)
    lines = read_opening(document, _NEAR)
    text = _paragraphs(lines)
    name = _named(document.filename)
    kind = _kind(text, document, name)
    title = _TITLES.get(kind, _contract_title)(text, name)
    parties = tuple(_named_parties(text, title)) if kind in AGREED else ()
    return Profile(title=title or name, kind=kind, parties=parties, date=_date(text, kind))


def _named_parties(text: str, title: str) -> list[str]:
    """Return the parties but for roles: the Reseller of a Reseller Agreement is nobody's name."""
    return [name for name in parties_of(text) if name.casefold() not in title.casefold()]


def _paragraphs(lines: list[Line]) -> str:
    """Return the lines as paragraphs, so that a sentence is not cut at the margin."""
    pieces: list[str] = []
    for line in lines:
        pieces.append("\n" if line.fresh or len(line.before) < _MARGIN else " ")
        pieces.append(line.text)
    return "".join(pieces).strip("\ufeff\u200b \n")


_EXHIBIT = re.compile(r"^.*(?:^|[\W_])EX-?\d{1,3}(?:\.\d+)*[-_ ]+(?=\D)", re.IGNORECASE)


def _named(filename: str) -> str:
    """Return what a file's name says: of a filing `…_EX-10.1_Reseller Agreement` the last part."""
    stem = without_ending(unquote(PurePath(filename).name).split("||")[0])
    return tidy(_EXHIBIT.sub("", stem).replace("_", " "))


# ---------------------------------------------------------------- the kind

AGREED = frozenset({"contract", "nda", "merger agreement"})
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("rules", re.compile(
        r"\A(?:part \d{1,3} ?[a-z]? ?[-–—:]|(?:.{0,300}\n){0,4}?.{0,20}\bcontents of this part\b|"
        r"(?:.{0,120}\n){0,3}?(?:.{0,60}\brules (?:of|19|20)|.{0,40}procedure rules))", re.I)),
    ("practice direction", re.compile(
        r"\A(?:.{0,160}\n){0,4}?.{0,40}\b(?:practice direction|cyfarwyddyd ymarfer)", re.I)),
    ("court guide", re.compile(r"\A[^.;]{0,400}?\b(?:court|bench|chancery|division|tribunal)s?\s+guide\b", re.I)),
    ("judgment", re.compile(
        r"\A(?:.{0,120}\n){0,6}?.{0,60}(?:\[\d{4}\] (?:EWHC|EWCA|UKSC|UKPC|UKHL)|neutral citation)", re.I)),
    ("legislation", re.compile(
        r"\A(?:.{0,200}\n){0,12}?.{0,120}(?:\bbe it enacted\b|\bstatutory instruments?\b|\bact (?:18|19|20)\d\d\b|"
        r"\bpublic law \d|"
        r"\b(?:regulation|directive|decision) \(?(?:EU|EC|EEC)\)?|\b(?:regulations|order) (?:19|20)\d\d\b)", re.I)),
)  # fmt: skip
_PRIVACY = re.compile(r"\bprivacy (?:policy|statement|notice)\b", re.IGNORECASE)
_PERSONAL = re.compile(
    r"\b(?:personal(?:ly identifiable)? (?:information|data)|your (?:information|privacy|data)|cookies)\b",
    re.IGNORECASE,
)
_TERMS = re.compile(r"\b(?:terms (?:of (?:service|use)|and conditions)|conditions of (?:sale|use))\b", re.IGNORECASE)
_CONFIDENTIAL = re.compile(r"non-? ?disclosure|confidential|\bnda\b|secrecy", re.IGNORECASE)
_MERGER = re.compile(
    r"\bmerger\b|plan of reorgani[sz]ation|business combination|\bcombination agreement|\btransaction agreement",
    re.IGNORECASE,
)


def _kind(text: str, document: Document, name: str) -> str:
    """Return what sort of document it is, by its first lines, its own name, and what it speaks of."""
    called = kind_of(text)
    if _MERGER.search(called) or re.search(r"\bagreement and plan of merger\b", text[:1500], re.IGNORECASE):
        return "merger agreement"
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return kind
    if _CONFIDENTIAL.search(called) or (not called and _CONFIDENTIAL.search(name)):
        return "nda"
    if _PRIVACY.search(text[:500]) or (len(_PERSONAL.findall(document.text[: 4 * _NEAR])) >= 6 and not called):
        return "privacy policy"
    if called or parties_of(text) or re.search(r"\b(?:agreement|contract|deed|lease)\b", name, re.IGNORECASE):
        return "contract"
    if _TERMS.search(text[:500]):
        return "terms"
    return ""


# ---------------------------------------------------------------- the title


def _contract_title(text: str, name: str) -> str:
    words = re.sub(r"^exhibits?\s+[\d.]+\s+", "", kind_of(text), flags=re.IGNORECASE).split()
    title = " ".join(words)
    sound = 2 <= len(words) <= 16 and len(title) <= _LONGEST_TITLE and title[-1] not in ",;:"
    return title if sound else name


def _first_line(text: str, _: str) -> str:
    """Return the first line that names a part or a direction, `Part 36 - Offers to settle`."""
    line = re.search(
        r"^(?:Document: *)?((?:pre-action )?(?:practice direction|cyfarwyddyd ymarfer|part \d).*)$",
        text[:2000],
        re.I | re.M,
    )
    line = line or re.search(r"^(.{3,160})$", text, re.M)
    return _shortened(line[1]) if line else ""


def _guide(text: str, _: str) -> str:
    opening = " ".join(text[:800].split())
    match = re.search(
        r"\b(?:The )?(?:(?!The\b)(?:[A-Z][\w’'-]*|&|and|of|for|the) ){1,9}Guide\b(?: (?:19|20)\d\d)?", opening
    )
    return match[0] if match else ""


def _law(text: str, _: str) -> str:
    match = re.search(
        r"^.{0,140}\b(?:act|regulations|order|rules|code) (?:18|19|20)\d\d\b|"
        r"^.{0,40}\b(?:regulation|directive|decision) \(?(?:EU|EC|EEC)\)?.{0,100}",
        text[:3000], re.I | re.M,
    )  # fmt: skip
    return _shortened(match[0]) if match else _first_line(text, "")


def _policy(text: str, name: str) -> str:
    """Return `… Privacy Policy`: the line that says so, else the service's name, which is the file's."""
    line = re.search(r"^.{0,50}\bprivacy (?:policy|statement|notice)\W*$", text[:600], re.I | re.M)
    if line and len(line[0].split()) > 2 and not re.match(r"(?:this|our|the|your)\b", line[0], re.I):
        return _shortened(line[0])
    return name if _PRIVACY.search(name) else f"{re.sub(r' ?[0-9]$', '', name)} Privacy Policy"


def _shortened(line: str) -> str:
    line = _SPACED.sub(r"\1", " ".join(line.split()).strip(" .:-–—"))
    letters = [character.isupper() for character in line if character.isalpha()]
    calm = title_case(line) if 2 * sum(letters) > len(letters) else line
    calm = _DIRECTION.sub(lambda match: match[0].upper(), calm)
    return calm if len(calm) <= _LONGEST_TITLE else calm[: calm.rfind(" ", 0, _LONGEST_TITLE)].rstrip(" ,;:-–—")


_SPACED = re.compile(r"(?<=\bdirection )(\d+) (?=[a-z]\b)", re.IGNORECASE)
"""`Practice Direction 7 A` is 7A."""
_DIRECTION = re.compile(r"(?<=Direction )\d+[a-z]{1,2}\b")
_TITLES: dict[str, Callable[[str, str], str]] = {
    "practice direction": _first_line,
    "rules": _first_line,
    "court guide": _guide,
    "judgment": _first_line,
    "legislation": _law,
    "privacy policy": _policy,
}

# ---------------------------------------------------------------- the date

_DAY_OF = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? day of ({MONTH}),? ((?:19|20)\d\d)\b", re.IGNORECASE)
_STATED = re.compile(
    rf"\b(?:dated|as of|effective|updated|revised|modified|issued|date)\b[^.\n]{{0,30}}?"
    rf"({MONTH} \d{{1,2}}, ?\d{{4}}|\d{{1,2}} {MONTH},? \d{{4}})",
    re.IGNORECASE,
)
_MONTHLY = re.compile(rf"\b{MONTH} (?:19|20)\d\d\b")


def _date(text: str, kind: str) -> str:
    """Return the document's own date as it is written: the first full one, or the one that `dated` leads to."""
    if kind in {"practice direction", "rules"}:
        return ""  # the dates in them are those of other laws
    if kind in {"court guide", "judgment"}:
        month = _MONTHLY.search(text[:800])
        return date_of(text[:800]) or (month[0] if month else "")
    day = _DAY_OF.search(text[:3000])
    stated = _STATED.search(text[:4000])
    return (
        date_of(text) or (f"{day[1]} {day[2].title()} {day[3]}" if day else "") or (tidy(stated[1]) if stated else "")
    )
