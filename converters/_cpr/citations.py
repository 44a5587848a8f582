"""What an answer cites in square brackets, and which court a guide is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exhibit.converters._cpr.names import read_name
from exhibit.law.citations import BRACKETED
from exhibit.law.names import plain

_NUMBERS = re.compile(r"[\d\s,;–-]+")
"""`[1]`, `[1, 2]` and the year of `[2024] EWCA Civ 123` cite no document by name."""
_PAGES = re.compile(r"(?<!\s)\s*+(?:[,;]\s*+)?\(?\b(?:pp?\.|pages?)\s*(\d[\d\s,–-]*+)\)?\s*$", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_LONGEST = 500
"""Characters of a citation: the longest of the real question file has 117."""
_DIGITS = 10
"""No page has a number of ten digits, and Python reads none of 5,000."""
_LAW = re.compile(
    r"\b(?:part|practice direction|pd|cpr|rules?|guide|annexe?|appendix|section|chapter|schedule|act|protocol|"
    r"regulations?|order \d+)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"(?:[.!?:;][\"'”’)]*|\])\s*$")
_FOLLOWED = re.compile(r"\s*(?:$|[.;:,)\[]|\n)")
_FILLED = re.compile(
    r"(?:insert|name|date|address|time|number|amount|sum|sic|emphasis|omitted|redacted|party|parties|the|and|or|a|an|"
    r"his|her|its|their|if|state|set out|specify|delete|claimant|defendant|applicant|respondent|judge|master|month|year"
    r"|day|court|deliberately|intentionally|n|x+|y+)\b[^a-z]*",
    re.IGNORECASE,
)
"""How a form asks to be filled in, or an editor mends a quotation."""


@dataclass(frozen=True)
class Citation:
    """`[Document#page=Section]`, `[Document]`, or the heading of a section with its page."""

    text: str
    document: str
    section: str = ""
    page: str = ""

    @property
    def pages(self) -> tuple[int, int] | None:
        """The first and the last page that it gives."""
        numbers = [int(number) for number in re.findall(r"\d+", self.page) if len(number) < _DIGITS]
        return (numbers[0], max(numbers[-1], numbers[0])) if numbers else None


def citations(truth: str) -> list[Citation]:
    """Return what an answer cites, each citation once; an editor's brackets are none."""
    by_name: dict[str, Citation] = {}
    for match in BRACKETED.finditer(truth):
        text = _SPACES.sub(" ", match.group(1)).strip()
        if (
            0 < len(text) <= _LONGEST
            and not _NUMBERS.fullmatch(text)
            and not _is_editorial(text, truth[: match.start()], truth[match.end() :])
        ):
            by_name.setdefault(plain(text), read_citation(text))
    return list(by_name.values())


def read_citation(text: str) -> Citation:
    """Return a citation's parts: a document or a heading, a section, pages."""
    document, _, section = text.partition("#page=")
    page = ""
    if re.fullmatch(r"[\d\s,–-]+", section.strip()):
        section, page = "", section.strip()
    for part in (document, section):
        pages = _PAGES.search(part)
        if pages:
            page = pages.group(1).strip(" ,–-")
    return Citation(text, _PAGES.sub("", document).strip(), _PAGES.sub("", section).strip(), page)


def _is_editorial(text: str, before: str, after: str) -> bool:
    """Whether a bracket mends a quotation or leaves a gap to be filled; what looks like a citation never does."""
    if not re.search(r"[A-Za-z]{2}", text):
        return True
    if "#page=" in text or _PAGES.search(text) or read_name(text).number or (_LAW.search(text) and not text.islower()):
        return False
    at_end = bool(_FOLLOWED.match(after)) and bool(_ENDED.search(before) or not after.strip())
    if _quoted(before):
        return True
    words = text.split()
    titled = text[0].isupper() and (len(words) > 2 or (len(words) == 2 and words[1][0].isupper()))
    if _FILLED.match(text) and not (at_end and titled):
        return True
    # a citation ends a sentence or follows one; in the middle of one, small letters and single words are an editor's
    return not at_end and (text[0].islower() or (" " not in text and not _FOLLOWED.match(after)))


def _quoted(before: str) -> bool:
    """Whether a quotation is open in the same paragraph."""
    paragraph = before.rpartition("\n")[2]
    return paragraph.count("“") > paragraph.count("”") or paragraph.count('"') % 2 == 1


_NEUTRAL = frozenset(
    "the a of and for in to at court courts division divisions list guide guides business property england wales high "
    "justice royal tribunals tribunal judiciary chamber cpr pd civil procedure rules practice direction directions "
    "part uk source according under from by see per that this".split()
)
"""Words that tell no court from another."""
_WORD = r"(?:[A-Z][\w'’.-]{0,40}|and|of|&)"
"""No word of a court's name is longer: so a text without spaces is not read through from each of its letters."""
_GUIDE = re.compile(rf"({_WORD}(?: {_WORD}){{0,9}}) Guide\b")
_COURT = re.compile(rf"({_WORD}(?: {_WORD}){{0,9}}) (?:Courts?|Division|Chamber|Bench|Tribunal)\b")
_SYNONYMS = {"queens": "kings", "patent": "patents"}


@dataclass(frozen=True)
class Court:
    """A court by the words that tell it from others, in order, and by its initials."""

    words: tuple[str, ...]
    short: frozenset[str] = frozenset()

    def named_in(self, text: str) -> bool:
        """Whether a text names this court, and nothing whose name only contains it: the Circuit Commercial Court."""
        tokens = [(plain(word), word) for word in re.findall(r"[\w'’&.-]+", text)]
        told = [(word, original) for word, original in tokens if word and word not in {"and", "of", "the"}]
        keys = [_SYNONYMS.get(word, word) for word, _ in told]
        size = len(self.words)
        for at, key in enumerate(keys):
            if key in self.short and not told[at][1].islower():
                return True
            if tuple(keys[at : at + size]) == self.words and not any(
                original[:1].isupper() and word not in _NEUTRAL
                for word, original in (*told[max(at - 1, 0) : at], *told[at + size : at + size + 1])
            ):
                return True
        return False


def guide_courts(names: Iterable[str]) -> list[Court]:
    """Return the courts whose guide a document is, by its names and its title page; a guide may incorporate another."""
    names_of: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        flat = " ".join(re.sub(r"[-_]+", " ", name).split())
        for match in _GUIDE.finditer(flat):
            words = _telling(match.group(1))
            if words:
                names_of.setdefault(words, set()).update(_initials(match.group(1)))
    return [Court(words, frozenset(short)) for words, short in names_of.items()]


def unknown_courts(text: str, known: Iterable[Court], *, guides_only: bool) -> Iterator[str]:
    """Yield the courts that a text names, or the courts of the guides it names, which are none of these."""
    courts = list(known)
    for pattern in (_GUIDE,) if guides_only else (_GUIDE, _COURT):
        for match in pattern.finditer(text):
            named, words = match.group(), match.group(1)
            if not _telling(words) or words.endswith((" of", " and", " &")):
                continue
            if not any(court.named_in(named) for court in courts):
                yield named


def _telling(name: str) -> tuple[str, ...]:
    # "Courts and Tribunals Judiciary The Commercial Court": a court's name begins after the last article
    own = re.split(r"\b[Tt]he\b|\b[A-Z]{2}\b", name)[-1]
    words = [_SYNONYMS.get(word, word) for word in plain(own).split()]
    return tuple(word for word in words if word not in _NEUTRAL and not word[0].isdigit())


def _initials(name: str) -> set[str]:
    """Return `tcc` of the Technology and Construction Court, `kb` and `kbd` of the King's Bench (Division)."""
    own = re.split(r"\b[Tt]he\b|\b[A-Z]{2}\b", name)[-1]
    words = [word for word in plain(own).split() if word not in {"and", "of"}]
    short = "".join(word[0] for word in words)
    if len(short) < 2 or words[-1] not in {"court", "division"}:
        return {short, f"{short}d"} if len(short) > 1 else set()
    return {short} if words[-1] == "court" else {short, short[:-1]} if len(short) > 2 else set()
