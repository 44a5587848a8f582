"""Names of rules, guides and files, written in one way so that two of them can be compared."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from exhibit.law.words import word_runs

ENDINGS = "pdf|txt|json|html?|md|docx?"
"""What a document's file name ends in, as a part of a regular expression."""
_ENDING = re.compile(rf"\.(?:{ENDINGS})\s*$", re.IGNORECASE)

_LETTERED = re.compile(r"\b((?i:part|direction|ymarfer|pd) ?\d+) ([A-Z]{1,2}\d?)\b")
_DROPPED = re.compile(r"['’‘`\u0300-\u036f]")
_APART = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=1 << 16)
def plain(name: str) -> str:
    """Return a name in small letters and single spaces, without accents, punctuation and abbreviation."""
    # the rules' own headings print "PRACTICE DIRECTION 34 A" for 34A
    text = unicodedata.normalize("NFKD", _LETTERED.sub(r"\1\2", name)).casefold()
    text = _APART.sub(" ", _DROPPED.sub("", text).replace("&", " and ")).strip()
    text = re.sub(r"\bpd ?(?=\d)", "practice direction ", text)
    return re.sub(r"^(?:the )?(?:cpr )?(?=part \d|practice direction)", "", text)


@lru_cache(maxsize=1 << 16)
def letters(text: str) -> str:
    """Return only the letters and digits, small: what survives line breaks, dashes and broken words."""
    return _APART.sub("", unicodedata.normalize("NFKD", text.replace("&", "and")).casefold())


def without_ending(name: str) -> str:
    """Return a file's name without `.pdf` and the like."""
    return _ENDING.sub("", name.strip())


def file_key(name: str) -> str:
    """Return a file's name without ending, case, spaces, punctuation and accents: what survives renaming."""
    text = unicodedata.normalize("NFKD", without_ending(name)).casefold()
    key = _APART.sub("", text)
    # a name in another script has no such letters: it is compared by its own
    return "".join(word_runs(text)) if key.isdigit() or not key else key
