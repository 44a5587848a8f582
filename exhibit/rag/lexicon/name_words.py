"""Reads the words that can name a document: those of its title, parties, file name and opening."""

import re
from collections import Counter
from typing import NamedTuple

from exhibit.law.amendments import is_amendment
from exhibit.law.names import count_proper_words, list_acronyms, list_pairs, name_terms, name_words, split_filename
from exhibit.law.profile import Profile
from exhibit.rag.lexicon.postings import TermCounts

_OPENING = 3000
"""Characters of a first page, with the title, the parties and the recitals."""
_STATED = 6000
"""The number of characters at a document's start that may contain its title; a title not found there is the file's
name.
"""
NAME_FIELDS = ("stated", "title", "initials", "opening", "pairs", "proper", "file")


class NameWords(NamedTuple):
    """The words of a document's title, file name, parties and similar fields.

    `DocumentNames.add_named` adds them to the index of names.
    """

    kind: str
    run: str
    """The letters of the file's name, without the characters between them."""
    amends: bool
    """Whether the document is an amendment of another."""
    fields: dict[str, TermCounts]


def read_names(filename: str, profile: Profile, text: str) -> NameWords:
    """Return the words that can name a document: from its title, parties, file name, opening and proper nouns."""
    run, in_file = split_filename(filename)
    opening = list(name_words(text[:_OPENING]))
    title = profile.title if _has_title(profile.title, text[:_STATED]) else ""
    names = (title, *profile.parties)
    counts = {
        "stated": Counter(term for name in names for term in name_terms(name)),
        "title": Counter(_find_naming_words(_HEAD.split(title, maxsplit=1)[0])),
        "initials": Counter(short for name in names for short in list_acronyms(name)),
        "opening": Counter(word.term for word in opening),
        "pairs": Counter(first.term + second.term for first, second in list_pairs(opening)),
        "proper": count_proper_words(text),
        "file": Counter(in_file),
    }
    amends = is_amendment(text, profile.title)
    return NameWords(profile.kind, run, amends, {name: TermCounts.of(counts[name]) for name in NAME_FIELDS})


_SORTS = frozenset("agreement contract guide notice policy rules statement terms the".split())
"""Words for the kind of a document, and the article. "the Commercial Court" means its guide, without that word."""
_HEAD = re.compile(r"\s[-–—]\s")
"""The dash after the part of a title that people cite: `Practice Direction 47 – Procedure for …`."""


def _find_naming_words(title: str) -> set[str]:
    """Return the words of a title without generic ones such as `agreement`; all words if fewer than two remain."""
    said = set(name_terms(title))
    return said - _SORTS if len(said - _SORTS) > 1 else said


def _has_title(title: str, opening: str) -> bool:
    wanted = name_terms(title)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(name_terms(opening))} "
