"""References to the provisions of laws in any legal system: `§ 2079 odst. 1 občanského zákoníku`, `§ 433 BGB`.

How units and what is below them are called is the system's data; which law is meant is told by the laws that are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from exhibit.evidence import Span
from exhibit.law.system import System

_STEM, _ENDING = 4, 3
"""Letters that a word's cases have in common at least, and those of its ending: `občanský` and `občanského`."""
_NEAR = 4  # words between a provision and the title of its law: `des`, `zákona č. …, o`
_REACH = 90  # characters after a provision in which its law is named
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = r"[IVXLC]{1,7}|\d{1,4}(?:[-–]\d{1,4})?(?:\.?[ºª°])?(?:-[A-Z]|[a-z]{1,2}(?!\w))?"


@dataclass(frozen=True)
class Provision:
    """A place in a law that a text refers to."""

    span: Span
    label: str
    """The unit as the law heads it: `§ 2079`, `Art. 5`."""
    below: tuple[tuple[str, str], ...] = ()
    """The parts below it with their numbers, outermost first: paragraph 1, letter b."""
    law: str | None = None
    """The key of the law that is named with it; None where none is, or it is not known."""


@dataclass(frozen=True)
class LawName:
    """A law by the names that references give it."""

    key: str
    codes: tuple[str, ...]
    """What names it alone, as it is written: `89/2012 Sb.`, `BGB`."""
    title: str = ""

    def named_in(self, text: str, *, near: int = _NEAR) -> int:
        """Return where the name of this law ends in a text, if it begins within so many words; 0 where it is not."""
        for code in self.codes:
            at = text.find(code)
            if at >= 0 and not text[at - 1 : at].isalnum() and not text[at + len(code) : at + len(code) + 1].isalnum():
                return at + len(code)
        wanted = _words(self.title)
        given = [match for match in _WORD.finditer(text) if len(match[0]) > 2]
        for at in range(min(near, len(given) - len(wanted) + 1)) if wanted else ():
            if all(_inflected(match[0], word) for match, word in zip(given[at:], wanted, strict=False)):
                return given[at + len(wanted) - 1].end()
        return 0


def _words(title: str) -> list[str]:
    return [word for word in _WORD.findall(title) if len(word) > 2]


def _inflected(one: str, other: str) -> bool:
    """Whether two words are one in two cases: all but the last three letters alike, `zákoník` and `zákoníku`."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return len(long) - len(short) <= _ENDING and long.startswith(short[: max(_STEM, len(short) - _ENDING)])


def provisions(text: str, system: System, laws: Sequence[LawName] = ()) -> Iterator[Provision]:
    """Yield the provisions that a text refers to, each with its law where one of `laws` is named."""
    for match in _head(system).finditer(text):
        below, end = _below(text, match.end(), system)
        after = text[end : end + _REACH]
        own = next(_head(system).finditer(after), None)
        clause = re.split(r"[;:?!“”„]", after[: own.start()] if own else after)[0]
        named = ((law.named_in(clause), law.key) for law in laws)
        length, law = max(((taken, key) for taken, key in named if taken), default=(0, None))
        yield Provision(Span(match.start(), end + length), _label(match), below, law)


@cache
def _head(system: System) -> re.Pattern[str]:
    words = [
        word for level in system.levels if level.unit or (not system.units and level.rank >= 4) for word in level.words
    ]
    forms = "|".join(sorted((re.escape(word) for word in words), key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?P<word>(?i:{forms}))[ \xa0]?(?P<number>{_NUMBER})(?!\w)")


def _label(match: re.Match[str]) -> str:
    return f"{match['word'].replace('§§', '§')} {match['number'].rstrip('.')}"


def _below(text: str, at: int, system: System) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return the parts below a unit that are cited behind it, and where they end."""
    names = {form: kind for kind, forms in system.data.get("below", {}).items() for form in forms.split()}
    if not names:
        return (), at
    forms = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    part = re.compile(
        rf",?[ \xa0](?P<word>{forms})[ \xa0]?"
        r"(?P<number>\d{1,3}(?:[ºª°]|[a-z])?(?!\w)|[IVXLC]+(?!\w)|[a-z]{1,2}(?!\w)\)?)"
        r"|,[ \xa0](?P<roman>[IVXLC]{1,7})(?!\w)"
    )
    below: list[tuple[str, str]] = []
    while match := part.match(text, at):
        below.append(
            (names[match["word"]], match["number"].rstrip(")")) if match["word"] else ("clause", match["roman"])
        )
        at = match.end()
    return tuple(below), at


@cache
def label_key(label: str) -> tuple[str, str]:
    """Return what labels of one unit have in common: `Art. 5` and `Artigo 5º`, never `§ 5` and `§ 5a`."""
    word, _, number = label.replace("\xa0", " ").partition(" ")
    return "§" if word.startswith("§") else word[:1].casefold(), re.sub(r"[ºª°.\s]|(?<=\d)er$", "", number).casefold()
