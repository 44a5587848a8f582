"""Amendments of contracts: the day of effect, and the contract of a corpus that an amendment changes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from os.path import commonprefix

from exhibit.law.names import normalise_name
from exhibit.law.values import find_dates

_OPENING_CHARS = 3_000  # a document names the amended contract and the day within these
_CHARS_BEFORE_DAY = 200  # the words before a date that say whose date it is
_SUFFIX = re.compile(
    r"(?i)[\W_]+(?:(?:first|second|third|fourth|fifth|\d+(?:st|nd|rd|th))[\W_]+)?(?:amend|addend|variation|restate)"
)
"""Matches the end of an amendment's file name, behind the contract's: ` - Amendment No. 1`, `_second_amendment`."""
_MIN_SCORE = 3  # evidence that links an amendment to its contract: title and party, date and party, or title and date
_ISSUER_CHARS = 12  # characters that the file names of one issuer share: `GluMobileInc`

_ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_THIS = re.compile(
    rf"(?i)\bthis\s+(?:(?:{_ORDINALS})\s+)?amendment\b|\bagree\s+to\s+(?:modify|amend)\s+the\s+agreement\b"
)
_HEADING = re.compile(r"(?im)^[^\n]{0,60}\bamend(?:ment|\.)(?!\s+no\.?\s*\d+\s+to\s+(?:the\s+)?form)")
_RESTATED = re.compile(r"(?i)(?:(?<!\s)\s+)?(?:(?:first|second|third|fourth)\s+)?amended\s+(?:and|&)\s+restated\s+")
_OWN_DAY = re.compile(r"(?i)\b(?:is|are|be)\s+(?:hereby\s+)?(?:made|entered|effective|executed|dated)\b[^.;]{0,80}$")
_DATED = re.compile(r"(?i)\b(?:dated|as\s+of|effective|on|of)\b[^.;]{0,30}$")
_MENTION = re.compile(r"(?i)\b(agreement|amendment)\b")


@dataclass(frozen=True)
class Amendment:
    """The opening of a document that amends a contract."""

    opening: str
    day: date | None
    """The day from which the amendment is in force; None if it does not say."""
    contract_days: frozenset[str] = frozenset()
    """The other days that the opening names, usually the day of the contract."""


@dataclass(frozen=True)
class Agreement:
    """A contract or an amendment, with the names by which an amendment can refer to a contract."""

    filename: str
    title: str
    parties: tuple[str, ...]
    date: str
    amendment: Amendment | None = None


def read_amendment(text: str, title: str) -> Amendment | None:
    """Return the facts of an amendment; None if the heading and the first sentences amend no other document."""
    opening = text[:_OPENING_CHARS]
    if not (_RESTATED.match(title) or (_THIS.search(opening) and _HEADING.search(opening))):
        return None
    day = _find_own_day(opening)
    days = {value.key for value in find_dates(opening)} - {day.isoformat() if day else ""}
    return Amendment(opening, day, frozenset(days))


def _find_own_day(opening: str) -> date | None:
    """Return the day of the amendment itself, not of the contract that it names; None if no such day is stated."""
    for value in find_dates(opening):
        before = " ".join(opening[max(0, value.span.start - _CHARS_BEFORE_DAY) : value.span.start].split())
        mentions = _MENTION.findall(before)
        of_contract = mentions and mentions[-1].lower() == "agreement"
        if _OWN_DAY.search(before) or (not of_contract and _DATED.search(before)):
            return date.fromisoformat(value.key)
    return None


def link_families(agreements: Sequence[Agreement]) -> dict[str, str]:
    """Return the file name of each amendment's contract; amendments of one absent contract have the first of them."""
    contracts = [agreement for agreement in agreements if agreement.amendment is None]
    linked: dict[str, str] = {}
    alone: list[tuple[Agreement, Amendment]] = []
    for agreement in agreements:
        if agreement.amendment is None:
            continue
        contract = _find_contract(agreement.amendment, agreement.filename, contracts)
        if contract is None:
            alone.append((agreement, agreement.amendment))
        else:
            linked[agreement.filename] = contract.filename
    for at, (agreement, amendment) in enumerate(alone):
        issuer = normalise_name(agreement.filename)[:_ISSUER_CHARS]
        for other, earlier in alone[:at]:
            same = normalise_name(other.filename)[:_ISSUER_CHARS] == issuer
            if same and amendment.contract_days & earlier.contract_days:
                family = linked.setdefault(other.filename, other.filename)
                linked[agreement.filename] = family
                break
    return linked


def _find_contract(amendment: Amendment, filename: str, contracts: Sequence[Agreement]) -> Agreement | None:
    """Return the contract that an amendment changes; None if this is not certain."""
    opening = f" {normalise_name(amendment.opening)} "
    scored: list[tuple[int, int, Agreement]] = []
    for contract in contracts:
        days = {value.key for value in find_dates(contract.date)}
        if amendment.day and any(date.fromisoformat(day) > amendment.day for day in days):
            continue  # no document amends a later contract
        title = normalise_name(_RESTATED.sub("", contract.title))
        titled = " " in title and f" {title} " in opening
        parties = sum(f" {normalise_name(party)} " in opening for party in contract.parties)
        score = 2 * titled + min(parties, 2) + 2 * bool(days & amendment.contract_days)
        score += _MIN_SCORE * _is_named_after(filename, contract.filename)
        shared = len(commonprefix([filename, contract.filename]))  # noqa: RUF071 - characters, not folders
        scored.append((score, shared, contract))
    scored.sort(key=lambda entry: entry[:2], reverse=True)
    if not scored or scored[0][0] < _MIN_SCORE or (len(scored) > 1 and scored[0][:2] == scored[1][:2]):
        return None
    return scored[0][2]


def _is_named_after(filename: str, contract: str) -> bool:
    """Return whether a file name is a contract's name plus a word for an amendment: `lease - Amendment 1.pdf`."""
    stem = contract.rpartition(".")[0] or contract
    name = filename.rpartition(".")[0] or filename
    return name.startswith(stem) and _SUFFIX.match(name, len(stem)) is not None
