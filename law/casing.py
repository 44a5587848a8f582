"""Names and headings as a reader writes them, whatever the source shouts."""

from __future__ import annotations

import re

from exhibit.law.companies import SHOUTED

_SMALL = frozenset("a an and as at by for from in of on or the to under with".split())
_WORD = re.compile(r"[^\W_][\w'’.]*")
_CAPITALS = SHOUTED | frozenset("dba ii iii iv uk us usa".split())
"""Legal forms, numbers and countries that are capitals in any case."""
_ABBREVIATED = frozenset("ltd mr mrs dr st jr sr".split())
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_CUT = re.compile(r"(?:,\s?\w|(?<![\s\"'“”‘’(\[;,:-])[\s\"'“”‘’(\[;,:-]+)$")
"""What an annotator's hand left at the end of a name: an open bracket, the first letter of the next word."""
_SPACES = re.compile(r"\s+")


def tidy(name: str) -> str:
    """Return a name on one line, in title case when the source shouts."""
    name = _CUT.sub("", _SPACES.sub(" ", name).strip(" ;,"))
    return title_case(name) if name.isupper() else name


def title_case(text: str) -> str:
    """Return SHOUTED words in title case; small words stay small inside."""

    def word(match: re.Match[str]) -> str:
        lower = match.group().lower()
        if lower in _SMALL and match.start():
            return lower
        letters = lower.replace(".", "")
        if letters in _CAPITALS or "." in lower[:-1] or (len(letters) > 1 and not _VOWEL.search(letters)):
            # LLC, S.p.A., NCC: initials, not words; but Ltd., Corp. and Mr. are words
            return match.group() if letters not in _ABBREVIATED else lower[:1].upper() + lower[1:]
        return lower[:1].upper() + lower[1:]

    return _WORD.sub(word, text)
