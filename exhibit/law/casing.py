"""Writes names and headings in title case where the source writes them in capitals."""

import re

from exhibit.law.names import SHOUTED

_WORD = re.compile(r"[^\W_][\w'’.]*")
_VOWEL = re.compile(r"(?i)[aeiouy]")
# The rest of an annotation at the end of a name: an open bracket, the first letter of the next word.
_CUT = re.compile(r"(?:,\s?\w|(?<![\s\"'“”‘’(\[;,:-])[\s\"'“”‘’(\[;,:-]+)$")
_SPACES = re.compile(r"\s+")
_SMALL = frozenset("a an and as at by for from in of on or the to under with".split())
_SHORT_CAPITALS = frozenset("dba ii iii iv uk us usa".split())
_ABBREVIATED = frozenset("ltd mr mrs dr st jr sr".split())
_CAPITALS = SHOUTED | _SHORT_CAPITALS
"""Legal forms, numbers and countries that always stay in capitals."""


def tidy(name: str) -> str:
    """Return a name on one line; in title case if the source writes it in capitals."""
    name = _CUT.sub("", _SPACES.sub(" ", name).strip(" ;,"))
    return to_title_case(name) if name.isupper() else name


def to_title_case(text: str) -> str:
    """Return a text in title case; function words become lower case, and initials such as LLC stay unchanged."""

    def write_word(match: re.Match[str]) -> str:
        lower = match.group().lower()
        if lower in _SMALL and match.start():
            return lower
        letters = lower.replace(".", "")
        if letters in _CAPITALS or "." in lower[:-1] or (len(letters) > 1 and not _VOWEL.search(letters)):
            # LLC, S.p.A., NCC: initials, not words; but Ltd., Corp. and Mr. are words
            return match.group() if letters not in _ABBREVIATED else lower[:1].upper() + lower[1:]
        return lower[:1].upper() + lower[1:]

    return _WORD.sub(write_word, text)


def calm_heading(heading: str) -> str:
    """Return a heading in title case if most of it is in capitals."""
    letters = [character.isupper() for character in heading if character.isalpha()]
    return to_title_case(heading) if 2 * sum(letters) > len(letters) else heading
