"""Reads a document's title, kind, parties and date from its first pages, by rules."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import unquote

from exhibit.evidence import Document
from exhibit.law.casing import calm_heading, tidy
from exhibit.law.editions import read_edition
from exhibit.law.figures import MONTH
from exhibit.law.names import without_ending
from exhibit.law.opening import date_of, kind_of, parties_of
from exhibit.law.structure.lines import Line, read_opening

_EXHIBIT = re.compile(r"(?i)^.*(?:^|[\W_])EX-?\d{1,3}(?:\.\d+)*[-_ ]+(?=\D)")
_PRIVACY = re.compile(r"(?i)\bprivacy (?:policy|statement|notice)\b")
_PERSONAL = re.compile(
    r"(?i)\b(?:personal(?:ly identifiable)? (?:information|data)|your (?:information|privacy|data)|cookies)\b"
)
_TERMS = re.compile(r"(?i)\b(?:terms (?:of (?:service|use)|and conditions)|conditions of (?:sale|use))\b")
_CONFIDENTIAL = re.compile(r"(?i)non-? ?disclosure|confidential|\bnda\b|secrecy")
_MERGER = re.compile(
    r"(?i)\bmerger\b|plan of reorgani[sz]ation|business combination|\bcombination agreement|"
    r"\btransaction agreement"
)
# `Practice Direction 7 A` is 7A.
_SPACED = re.compile(r"(?i)(?<=\bdirection )(\d+) (?=[a-z]\b)")
_DIRECTION = re.compile(r"(?<=Direction )\d+[a-z]{1,2}\b")
_DAY_OF = re.compile(rf"(?i)\b(\d{{1,2}})(?:st|nd|rd|th)? day of ({MONTH}),? ((?:19|20)\d\d)\b")
_STATED = re.compile(
    r"(?i)\b(?:dated|as of|effective|updated|revised|modified|issued|date)\b[^.\n]{0,30}?"
    rf"({MONTH} \d{{1,2}}, ?\d{{4}}|\d{{1,2}} {MONTH},? \d{{4}})"
)
_MONTHLY = re.compile(rf"\b{MONTH} (?:19|20)\d\d\b")
_AGREED = re.compile(r"(?i)\b(?:agreement|contract|deed|lease)\b")
_PLAN = re.compile(r"(?i)\bagreement and plan of merger\b")
_PART_LINE = re.compile(
    r"(?im)^(?:Document: *)?((?:pre-action )?(?:practice direction|cyfarwyddyd ymarfer|part \d).*)$"
)
_ANY_LINE = re.compile(r"(?m)^(.{3,160})$")
_GUIDE = re.compile(r"\b(?:The )?(?:(?!The\b)(?:[A-Z][\w’'-]*|&|and|of|for|the) ){1,9}Guide\b(?: (?:19|20)\d\d)?")
_LAW = re.compile(
    r"(?im)^.{0,140}\b(?:act|regulations|order|rules|code) (?:18|19|20)\d\d\b|"
    r"^.{0,40}\b(?:regulation|directive|decision) \(?(?:EU|EC|EEC)\)?.{0,100}"
)
_POLICY_LINE = re.compile(r"(?im)^.{0,50}\bprivacy (?:policy|statement|notice)\W*$")
_POLICY_PROSE = re.compile(r"(?i)(?:this|our|the|your)\b")
# Patterns for the kind of a document by its first lines; the first match counts.
_KINDS: dict[str, re.Pattern[str]] = {
    "rules": re.compile(
        r"(?i)\A(?:part \d{1,3} ?[a-z]? ?[-–—:]|(?:.{0,300}\n){0,4}?.{0,20}\bcontents of this part\b|"
        r"(?:.{0,120}\n){0,3}?(?:.{0,60}\brules (?:of|19|20)|.{0,40}procedure rules))"
    ),
    "practice direction": re.compile(r"(?i)\A(?:.{0,160}\n){0,4}?.{0,40}\b(?:practice direction|cyfarwyddyd ymarfer)"),
    "court guide": re.compile(r"(?i)\A[^.;]{0,400}?\b(?:court|bench|chancery|division|tribunal)s?\s+guide\b"),
    "judgment": re.compile(
        r"(?i)\A(?:.{0,120}\n){0,6}?.{0,60}(?:\[\d{4}\] (?:EWHC|EWCA|UKSC|UKPC|UKHL)|neutral citation)"
    ),
    "legislation": re.compile(
        r"(?i)\A(?:.{0,200}\n){0,12}?.{0,120}(?:\bbe it enacted\b|\bstatutory instruments?\b|\bact (?:18|19|"
        r"20)\d\d\b|"
        r"\bpublic law \d|"
        r"\b(?:regulation|directive|decision) \(?(?:EU|EC|EEC)\)?|\b(?:regulations|order) (?:19|20)\d\d\b)"
    ),
}


# ---------------------------------------------------------------- the profile

_PROFILE_NEAR = 6000  # characters: two pages, which state the kind of the document and its parties
_LONGEST_TITLE = 120  # characters: a longer line is a sentence
_MARGIN = 60
"""Characters of a full line: after a shorter line a new paragraph begins."""


@dataclass(frozen=True)
class Profile:
    """The title, kind, parties and date of a document, from its first pages."""

    title: str = ""
    kind: str = ""
    """contract, nda, merger agreement, privacy policy, legislation, rules, practice direction, court guide …"""
    parties: tuple[str, ...] = ()
    date: str = ""


def read_profile(document: Document) -> Profile:
    """Return a document's title, kind, parties and date; a missing value is empty, a missing title is the file's
    name.
    """
    edition = read_edition(document.text)
    if edition is not None:
        return Profile(title=edition.title, kind="legislation", date=edition.dated)
    lines = read_opening(document, _PROFILE_NEAR)
    text = join_paragraphs(lines)
    name = find_file_title(document.filename)
    kind = _find_kind(text, document, name)
    title = title_of(text, kind, name)
    # without roles: the Reseller of a Reseller Agreement is not a name
    named = parties_of(text) if kind in AGREED else ()
    parties = tuple(party for party in named if party.casefold() not in title.casefold())
    return Profile(title=title, kind=kind, parties=parties, date=find_own_date(text, kind))


def join_paragraphs(lines: list[Line]) -> str:
    """Join lines into paragraphs.

    Lines of one paragraph are joined by a space, and paragraphs by a line break. A paragraph ends after a
    short line, and after a line that ends a sentence or a list item.
    """
    pieces: list[str] = []
    for line in lines:
        pieces.append("\n" if line.fresh or len(line.before) < _MARGIN else " ")
        pieces.append(line.text)
    return "".join(pieces).strip("\ufeff\u200b \n")


def find_file_title(filename: str) -> str:
    """Return the title in a file's name: `Reseller Agreement` for the filing `…_EX-10.1_Reseller Agreement.pdf`."""
    stem = without_ending(unquote(PurePath(filename).name).split("||")[0])
    return tidy(_EXHIBIT.sub("", stem).replace("_", " "))


# ---------------------------------------------------------------- the kind

AGREED = frozenset({"contract", "nda", "merger agreement"})


def _find_kind(text: str, document: Document, name: str) -> str:
    """Return the kind of a document, by its first lines, its file's name, and its topics."""
    called = kind_of(text)
    if _MERGER.search(called) or _PLAN.search(text[:1500]):
        return "merger agreement"
    if kind := next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), ""):
        return kind
    if _CONFIDENTIAL.search(called) or (not called and _CONFIDENTIAL.search(name)):
        return "nda"
    personal = _PERSONAL.findall(document.text[: 4 * _PROFILE_NEAR])
    if _PRIVACY.search(text[:500]) or (len(personal) >= 6 and not called):
        return "privacy policy"
    if called or parties_of(text) or _AGREED.search(name):
        return "contract"
    if _TERMS.search(text[:500]):
        return "terms"
    return ""


# ---------------------------------------------------------------- the title


def title_of(text: str, kind: str, name: str) -> str:
    """Return the title that a document's text states, by the rules for its kind; `name` if the text states none."""
    return _TITLES.get(kind, _find_contract_title)(text, name) or name


def _find_contract_title(text: str, name: str) -> str:
    words = re.sub(r"^exhibits?\s+[\d.]+\s+", "", kind_of(text), flags=re.IGNORECASE).split()
    title = " ".join(words)
    sound = 2 <= len(words) <= 16 and len(title) <= _LONGEST_TITLE and title[-1] not in ",;:"
    return title if sound else name


def _find_first_line(text: str, _: str) -> str:
    """Return the line that names a Part or practice direction, `Part 36 - Offers to settle`; else the first line."""
    line = _PART_LINE.search(text[:2000]) or _ANY_LINE.search(text)
    return _shorten_line(line[1]) if line else ""


def _guide(text: str, _: str) -> str:
    opening = " ".join(text[:800].split())
    match = _GUIDE.search(opening)
    return match[0] if match else ""


def _find_law_title(text: str, _: str) -> str:
    match = _LAW.search(text[:3000])
    return _shorten_line(match[0]) if match else _find_first_line(text, "")


def _find_policy_title(text: str, name: str) -> str:
    """Return a privacy policy's title: the line that states it, else the file's name with `Privacy Policy` added."""
    line = _POLICY_LINE.search(text[:600])
    if line and len(line[0].split()) > 2 and not _POLICY_PROSE.match(line[0]):
        return _shorten_line(line[0])
    return name if _PRIVACY.search(name) else f"{re.sub(r' ?[0-9]$', '', name)} Privacy Policy"


def _shorten_line(line: str) -> str:
    line = _SPACED.sub(r"\1", " ".join(line.split()).strip(" .:-–—"))
    calm = _DIRECTION.sub(lambda match: match[0].upper(), calm_heading(line))
    return calm if len(calm) <= _LONGEST_TITLE else calm[: calm.rfind(" ", 0, _LONGEST_TITLE)].rstrip(" ,;:-–—")


_TITLES: dict[str, Callable[[str, str], str]] = {
    "practice direction": _find_first_line,
    "rules": _find_first_line,
    "court guide": _guide,
    "judgment": _find_first_line,
    "legislation": _find_law_title,
    "privacy policy": _find_policy_title,
}

# ---------------------------------------------------------------- the date


def find_own_date(text: str, kind: str) -> str:
    """Return the date of the document itself as it is written; empty if there is none.

    This is the first full date near the start, else a date after a word such as `dated`. For a court guide or a
    judgment, a month with a year is enough. For rules and practice directions the result is always empty,
    because their dates are dates of other laws.
    """
    if kind in {"practice direction", "rules"}:
        return ""  # the dates in these documents are dates of other laws
    if kind in {"court guide", "judgment"}:
        month = _MONTHLY.search(text[:800])
        return date_of(text[:800]) or (month[0] if month else "")
    day = _DAY_OF.search(text[:3000])
    stated = _STATED.search(text[:4000])
    return (
        date_of(text) or (f"{day[1]} {day[2].title()} {day[3]}" if day else "") or (tidy(stated[1]) if stated else "")
    )
