"""Which words read as a title: short, begun with a capital, shouted, or run into the paragraph they head."""

from __future__ import annotations

import re

from exhibit.law.companies import ends_in_form

SMALL = frozenset("a an and as at by for from in into of on or per the to under upon with without".split())
_RUN_IN = re.compile(r"([^.:;–—]{2,90}?)(?:[.:](?=\s|[A-Z“]|$)|\s[–—-]\s|[.]?[–—])")
_LONG_WORD = re.compile(r"[^\W\d_]{4}")
_LONGEST = 150  # characters: what is longer is a sentence
_WORDS = re.compile(r"[^\W\d_][\w'’-]*")
_STARTS = re.compile(
    r"(?:this|the|each|any|no|if|all|a|an|in|for|where|when|it|you|we|such|these|subject)\b", re.IGNORECASE
)
"""Sentences begin so; a title that does is in title case throughout."""
_VERBS = re.compile(r"\b(?:shall|means?|is|are|will|may|must|has|have|agrees?|includes?|was|were|been|would)\b")
NO_HEADING = re.compile(
    r"(?:and|between|among|by|by and (?:between|among)|dated\b.*|to|name|title|date|its|confidential\b.*|"
    r"execution (?:copy|version).*|page\b.*|\[.*|<.*|source\b.*|(?:section|recitals|preamble|annex)\b.*|"
    r"[a-z]{1,4}-\d+|.*\bintentionally (?:left )?(?:blank|omitted)|.*_{3}.*|.*\[\*+\].*|\W*)\W*",
    re.IGNORECASE,
)


def is_title(text: str) -> bool:
    """Return whether a whole line reads as a title: short, begun with a capital, not a sentence."""
    return (
        3 <= len(text) <= 110
        and (text[0].isupper() or text[0] in "“\"'‘")
        and text[-1] not in ".;,"
        and len(text.split()) <= 16
    )


def is_title_case(text: str) -> bool:
    """Return whether all words but the small ones begin with a capital."""
    words = _WORDS.findall(text)
    return (
        bool(words)
        and len(words) <= 9
        and all(word[0].isupper() or word in SMALL for word in words)
        and words[0][0].isupper()
    )


def is_shout(text: str) -> bool:
    """Return whether a line is a heading in capitals, not a company, a code or a label of a form."""
    letters = sum(character.isalpha() for character in text)
    return (
        _LONG_WORD.search(text) is not None
        and 2 * letters > len(text)
        and len(text) <= 110
        and text.isupper()
        and text[-1] not in ",;"
        and not ends_in_form(text)
        and not NO_HEADING.fullmatch(text)
    )


def is_prose(title: str) -> bool:
    """Return whether shouted words are a sentence after all."""
    return len(title) > _LONGEST or (len(title.split()) > 6 and _VERBS.search(title.lower()) is not None)


def run_in(rest: str) -> tuple[str, int]:
    """Return a title that runs into its paragraph, `Term` of `Term. The term …`, and its length with the mark."""
    match = _RUN_IN.match(rest)
    if match is None:
        return "", 0
    words = _WORDS.findall(match[1])
    large = [word for word in words if word not in SMALL]
    small = sum(word[0].islower() for word in large)
    most = 0 if _STARTS.match(match[1]) else max(len(large) // 3, 2)
    if not words or len(words) > 12 or not words[0][0].isupper() or small > most or _VERBS.search(match[1]):
        return "", 0
    return match[1].strip(' “”"'), match.end()
