"""Amendments of contracts: the amended contract, the day of effect, and the changed sections.

`Section 5.2 is hereby deleted in its entirety and replaced with …`, `The reference to "Ohio" in Section 8 is replaced
with "Utah"`: rules find the sentence that changes a section, and the replacing words that follow it.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise, takewhile
from typing import Generic, Literal, TypeVar

from exhibit.evidence import Span
from exhibit.law.names import normalise_name
from exhibit.law.values import find_values

ChangeKind = Literal["replaced", "words", "part", "deleted"]
Key = TypeVar("Key", bound=Hashable)

_OPENING = 3_000  # characters at the start in which a document names the amended contract and the day
_LONGEST = 4_000  # characters of the words that replace a section: longer ones include schedules
_AHEAD = 260  # characters after a change in which the replacing words begin
_BEFORE = 200  # characters before a section's number in which the sentence begins
_SUFFIX = re.compile(
    r"(?i)[\W_]+(?:(?:first|second|third|fourth|fifth|\d+(?:st|nd|rd|th))[\W_]+)?(?:amend|addend|variation|restate)"
)
"""Matches the end of an amendment's file name, behind the contract's: ` - Amendment No. 1`, `_second_amendment`."""
_ENOUGH = 3
"""Evidence that links an amendment to its contract: title and party, date and party, or title and date."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERED = re.compile(
    rf"(?i)\b(?:({'|'.join(_ORDINALS)})\s+amendment|amendment\s{{0,3}}(?:no\.?|number|#|n°)?\s{{0,3}}0?(\d{{1,2}}))\b"
)
_THIS = re.compile(
    rf"(?i)\bthis\s+(?:(?:{'|'.join(_ORDINALS)})\s+)?amendment\b|\bagree\s+to\s+(?:modify|amend)\s+the\s+agreement\b"
)
_HEADING = re.compile(r"(?im)^[^\n]{0,60}\bamend(?:ment|\.)(?!\s+no\.?\s*\d+\s+to\s+(?:the\s+)?form)")
_RESTATED = re.compile(r"(?i)(?:(?<!\s)\s+)?(?:(?:first|second|third|fourth)\s+)?amended\s+(?:and|&)\s+restated\s+")
_OWN_DAY = re.compile(r"(?i)\b(?:is|are|be)\s+(?:hereby\s+)?(?:made|entered|effective|executed|dated)\b[^.;]{0,80}$")
_DATED = re.compile(r"(?i)\b(?:dated|as\s+of|effective|on|of)\b[^.;]{0,30}$")
_MENTION = re.compile(r"(?i)\b(agreement|amendment)\b")

_NUMBER = r"\d{1,3}(?:\.\d{1,3}){0,4}(?:\s?\([A-Za-z0-9]{1,5}\)){0,4}"
_UNIT = rf"\b(?:sub-?)?(?:section|clause|article|paragraph)s?\s+(?P<number>{_NUMBER}|[IVXLC]{{1,6}}(?!\w))"
_VERB = (
    r"(?:amended|deleted|replaced|restated|removed|modified|changed|stricken|superseded|cancell?ed|substituted|revised)"
)
_PASSIVE = re.compile(
    rf"(?i){_UNIT}(?P<between>(?:[^.;:\n]|\.(?=\d)|\n(?!\s{{0,8}}\([a-z]{{1,4}}\)\s)){{0,120}}?)"
    rf"\b(?:is|are|shall\s+be|will\s+be)\s+(?:(?:hereby|further|also)\s+){{0,2}}{_VERB}\b"
)
_ACTIVE = re.compile(rf"(?i)\bagrees?\s+to\s+(?:remove|delete|replace|amend|restate|modify)\s+{_UNIT}")
_TITLED = re.compile(rf"(?i)\bamendment\s+(?:to|of)\s+{_UNIT}")
_LIST = re.compile(
    r"(?i)\bfollowing\s+(?:section|clause|article|paragraph|provision)s?\b[^.;:]{0,120}?\b(?:is|are|shall\s+be|will\s+be)"
    rf"\s+(?:(?:hereby|further|also)\s+){{0,2}}{_VERB}\b[^.;:]{{0,120}}:"
)
"""The sentence in front of a list of sections, of which each item has the words that replace one."""
_ITEM = re.compile(
    r"(?im)^[ \t]{0,8}(?:\(?[a-z\d]{1,4}[.)][ \t]{1,8}|[-–•][ \t]{1,8})?"
    rf"(?:{_UNIT}(?P<between>[^\n:;]{{0,100}}):"
    r"|(?P<bare>\d{1,3}(?:\.\d{1,3}){1,4})\.?(?=[ \t]))"
)
_ELSEWHERE = re.compile(
    r"(?i)\s*(?:of|in|to)\s+(?:the\s+)?(exhibit|schedule|annex|appendix|attachment|amendment)\s+(?:no\.?\s?|n°\s?|#\s?)?"
    r"(\d{1,3}|[A-Z]{1,2}(?!\w))"
)
_ALSO = re.compile(rf"(?:,|\band\b|&)\s+(?:sections?\s+)?({_NUMBER})", re.IGNORECASE)
_QUOTED = r"[\"“]([^\"“”]{1,300})[\"”]"
_WORDS = re.compile(
    rf"{_QUOTED}[^\"“”]{{0,120}}?\b(?:replac|substitut|insert|chang|read|with|by|to)[^\"“”:]{{0,40}}{_QUOTED}",
    re.IGNORECASE,
)
_PARTLY = re.compile(r"(?i)\b(?:sentence|paragraph|definition|reference|term|words?|phrase|portion|table|row|date)\b")
_WHOLLY = re.compile(r"(?i)\b(?:restated|replaced?|to\s+read|amended\s+to\s+be|substituted)\b")
_GONE = re.compile(r"(?i)\b(?:deleted|removed|stricken|cancell?ed)\b")
_END = re.compile(
    r"\n\s{0,8}(?:\d{1,2}|[A-Z])\.\s+(?=[A-Z\"“])|\n[^\n]{0,12}Source:"
    r"|\n\s{0,8}(?:\([a-z]{1,4}\)\s)?(?:IN WITNESS|Except as|No Other|All other|Any other|AGREED)\b"
    r"|\n\s{0,8}\d{1,2}\.\d{1,2}\.?\s(?:Section|Clause|Article|Exhibit|Schedule|Annex|Appendix)\b"
)
_SENTENCE = re.compile(r"[.;:]\s+(?=[A-Z\"“(\d])|\n\s{0,8}(?:\d{1,2}|[a-z]|[A-Z])\.\s+")
_TRAILING = re.compile(r"(?<!\s)\s+(?:\d{1,2}|[a-z])\.$")  # the number of the next item
_COLON = re.compile(r":\s{0,4}[\"“']?")


@dataclass(frozen=True)
class SectionChange:
    """A change of one section: the sentence that makes it, and the new words of the section."""

    section: str
    """The number as a heading writes it, without spaces: `9.1`, `2(c)`; `exhibit14/3.2` is no section of the body."""
    kind: ChangeKind
    """`replaced` and `deleted` change the whole section, `words` some words of it, `part` any other part."""
    span: Span
    new: Span
    """The words that replace the section; for other kinds the change itself."""
    old_words: str = ""
    new_words: str = ""

    def apply(self, text: str) -> str:
        """Return a section's text after this change, if the change only replaces some words (kind `words`).

        For any other kind of change, return the text unchanged.
        """
        if self.kind != "words":
            return text
        words = r"\s+".join(map(re.escape, self.old_words.split()))
        return re.sub(rf"(?<!\w){words}(?!\w)", lambda _: self.new_words, text)


@dataclass(frozen=True)
class Amendment:
    """A document that amends a contract."""

    opening: str
    day: date | None
    """The day from which the amendment is in force; None if it does not say."""
    number: int
    """The amendment's number among the amendments of a contract; 0 if it has none."""
    changes: tuple[SectionChange, ...]
    contract_days: frozenset[str] = frozenset()
    """The other days that the amendment's opening names, usually the day of the contract."""
    restates: bool = False
    """Whether the document is the contract itself, amended and restated."""


@dataclass(frozen=True)
class ContractName(Generic[Key]):
    """The names by which an amendment can refer to a contract."""

    key: Key
    filename: str
    title: str
    parties: tuple[str, ...]
    date: str


def is_amendment(text: str, title: str = "") -> bool:
    """Return whether a document amends another document: its heading and first sentences decide."""
    opening = text[:_OPENING]
    return bool(_RESTATED.match(title) or (_THIS.search(opening) and _HEADING.search(opening)))


def read_amendment(text: str, title: str = "") -> Amendment:
    """Return the day, the number and the changes of an amendment."""
    opening = text[:_OPENING]
    numbered = _NUMBERED.search(opening)
    number = 0
    if numbered:
        number = int(numbered[2]) if numbered[2] else _ORDINALS.index(numbered[1].lower()) + 1
    restates = _RESTATED.match(title) is not None
    day = _find_own_day(opening)
    days = {value.key for value in find_values(opening) if value.kind == "date"} - {day.isoformat() if day else ""}
    return Amendment(opening, day, number, () if restates else find_changes(text), frozenset(days), restates)


def _find_own_day(opening: str) -> date | None:
    """Return the day of the amendment itself, not of the contract that it names; None if no such day is stated."""
    for value in find_values(opening):
        if value.kind != "date":
            continue
        before = " ".join(opening[max(0, value.span.start - _BEFORE) : value.span.start].split())
        mentions = _MENTION.findall(before)
        of_contract = mentions and mentions[-1].lower() == "agreement"
        if _OWN_DAY.search(before) or (not of_contract and _DATED.search(before)):
            return date.fromisoformat(value.key)
    return None


def find_changes(text: str) -> tuple[SectionChange, ...]:
    """Return the changes that an amendment makes, in order."""
    found = sorted([*_PASSIVE.finditer(text), *_ACTIVE.finditer(text)], key=lambda match: match.start())
    listed = _find_listed(text, [match.start() for match in found])
    if not found and not listed:
        titled = _TITLED.search(text, 0, _OPENING)
        return (
            (SectionChange(_strip_number(titled["number"]), "part", Span(0, len(text)), Span(0, len(text))),)
            if titled
            else ()
        )
    changes = listed
    edges = [*(match.start() for match in found), len(text)]
    for match, (_, following) in zip(found, pairwise(edges), strict=True):
        changes += _read_change(text, match, _end_of(text, match.end(), following))
    return tuple(sorted(changes, key=lambda change: change.span))


def _end_of(text: str, start: int, following: int) -> int:
    """Return the offset where the text of a change ends.

    It ends at the next change (`following`), the next numbered item, a closing phrase or the length limit.
    """
    last = min(following, start + _LONGEST)
    stop = _END.search(text, start, last)
    return stop.start() if stop else last


def _find_listed(text: str, sentences: Sequence[int]) -> list[SectionChange]:
    """Return the changes that an amendment states as a list of sections: one change for each list item.

    A list begins with a sentence such as `The following Sections are amended and restated to read as follows:`.
    Each item has a section's number and its new words; an item of a list of deletions has only the number. An
    item that is a complete sentence is left out, because `find_changes` reads sentences itself.
    """
    changes: list[SectionChange] = []
    for lead in _LIST.finditer(text):
        wholly, gone = _WHOLLY.search(lead[0]), _GONE.search(lead[0])
        end = _end_of(text, lead.end(), len(text))
        if gone and not wholly:
            span = Span(lead.start(), end)
            numbers = dict.fromkeys(map(_strip_number, re.findall(_NUMBER, text[lead.end() : end])))
            changes += [SectionChange(number, "deleted", span, span) for number in numbers]
            continue
        items = list(_ITEM.finditer(text, lead.end(), end))
        edges = [*(item.start() for item in items), end]
        for item, (start, following) in zip(items, pairwise(edges), strict=True):
            if any(start <= sentence < following for sentence in sentences):
                continue
            first = item.start("bare") if item["bare"] else item.end()
            new = _strip_quotes(text, Span(first, following))
            kind: ChangeKind = "replaced" if wholly or new.start > first else "part"
            number = item["bare"] or _section_of(item)
            span = Span(start, start + len(text[start:following].rstrip()))
            changes.append(SectionChange(_strip_number(number), kind, span, new if kind == "replaced" else span))
    return changes


def _strip_quotes(text: str, span: Span) -> Span:
    """Return a span without the spaces, the quotation marks and the final semicolon around its words."""
    words = text[slice(*span)]
    start = span.start + len(words) - len(words.lstrip())
    end = span.end - len(words) + len(words.rstrip().removesuffix(";").rstrip())
    if text[start : start + 1] in ('"', "“") and start < end:
        return Span(start + 1, end - (text[end - 1] in '"”'))
    return Span(start, max(start, end))


def _section_of(match: re.Match[str]) -> str:
    """Return a changed section's number: `3.2`, or `exhibit14/3.2` for a section of an exhibit or amendment."""
    elsewhere = _ELSEWHERE.match(match.groupdict().get("between") or "")
    return f"{elsewhere[1].lower()}{elsewhere[2]}/{match['number']}" if elsewhere else match["number"]


def _read_change(text: str, match: re.Match[str], end: int) -> list[SectionChange]:
    lead = text[max(0, match.start() - _BEFORE) : match.start()]
    start = match.start() - len(lead) + max((one.end() for one in _SENTENCE.finditer(lead)), default=0)
    lead = text[start : match.start()]
    colon = _COLON.search(text, match.end(), min(end, match.end() + _AHEAD))
    said = text[match.start() : colon.start() if colon else end]
    end = start + len(_TRAILING.sub("", text[start:end].rstrip()))
    words = _WORDS.search(text, start, end)
    kind: ChangeKind = "part"
    if words and not (colon and colon.start() < words.start()):
        kind = "words"
    elif _PARTLY.search(lead):
        kind = "part"
    elif _WHOLLY.search(said):
        kind = "replaced"
    elif _GONE.search(said):
        kind = "deleted"
    new = Span(colon.end() if colon and kind == "replaced" else start, end)
    if kind == "replaced" and text[new.end - 1] in '"”':
        new = Span(new.start, new.end - 1)
    old_words, new_words = (words[1], words[2]) if words and kind == "words" else ("", "")
    also = _ALSO.findall(match.groupdict().get("between") or "")
    numbers = dict.fromkeys(map(_strip_number, [_section_of(match), *also]))
    return [SectionChange(number, kind, Span(start, end), new, old_words, new_words) for number in numbers]


def _strip_number(number: str) -> str:
    return re.sub(r"\s+", "", number)


def find_amended_contract(amendment: Amendment, filename: str, contracts: Sequence[ContractName[Key]]) -> Key | None:
    """Return the key of the contract that an amendment changes; None if this is not certain.

    A contract is recognised by its title, its parties and its date in the opening words of the amendment, or
    by its file name, which the amendment's file name repeats: `lease - Amendment No. 1.pdf`. If two contracts
    fit equally well, the more similar file name decides.
    """
    said = f" {normalise_name(amendment.opening)} "
    scored: list[tuple[int, int, Key]] = []
    for contract in contracts:
        own = {value.key for value in find_values(contract.date) if value.kind == "date"}
        if amendment.day and any(date.fromisoformat(day) > amendment.day for day in own):
            continue  # no document amends a later contract
        title = normalise_name(_RESTATED.sub("", contract.title))
        named = " " in title and f" {title} " in said
        parties = sum(f" {normalise_name(party)} " in said for party in contract.parties)
        score = 2 * named + min(parties, 2) + 2 * bool(own & amendment.contract_days)
        score += _ENOUGH * _is_named_after(filename, contract.filename)
        scored.append((score, _count_shared_letters(filename, contract.filename), contract.key))
    scored.sort(key=lambda one: one[:2], reverse=True)
    if not scored or scored[0][0] < _ENOUGH or (len(scored) > 1 and scored[0][:2] == scored[1][:2]):
        return None
    return scored[0][2]


def _is_named_after(filename: str, contract: str) -> bool:
    """Return whether a file name is a contract's name plus a word for an amendment: `lease - Amendment 1.pdf`."""
    stem, own = (name.rpartition(".")[0] or name for name in (contract, filename))
    return own.startswith(stem) and _SUFFIX.match(own, len(stem)) is not None


def _count_shared_letters(one: str, other: str) -> int:
    """Return the number of characters in the longest common prefix of two names."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
