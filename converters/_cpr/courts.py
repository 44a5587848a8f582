"""Which court a guide is for, and which courts a row speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exhibit.law.names import plain

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
