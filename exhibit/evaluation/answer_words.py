"""The words and the citations of answers, as metrics and judges compare them."""

import re
from collections import Counter
from collections.abc import Callable

from exhibit.law.citations import BRACKETED, rewrite_citations, without_places
from exhibit.law.language import list_word_runs

_PAGE_CITATION = re.compile(r"\[[^\[\]\n]*#page=[^\[\]\n]*\]")


def split_words(text: str) -> list[str]:
    return list_word_runs(text.lower())


def set_f1(answer: str, expected: str, cut: Callable[[str], list[str]] = split_words) -> float:
    """Return the F1 of the sets of words of two texts; 0 if no word is shared."""
    words, other = set(cut(answer)), set(cut(expected))
    return 2 * len(words & other) / ((len(words) + len(other)) or 1)


def compute_multiset_f1(answer: str, expected: str) -> float:
    """Return the F1 of the words of two texts; a repeated word counts each time."""
    words, other = Counter(split_words(answer)), Counter(split_words(expected))
    return 2 * (words & other).total() / ((words.total() + other.total()) or 1)


def compare_words(answer: str, expected: str) -> float:
    """Return 1 if two texts have the same words in the same order and are not empty, else 0."""
    return float(bool(split_words(answer)) and split_words(answer) == split_words(expected))


def without_citations(text: str) -> str:
    """Return a text without its citations, such as `[1]`, its notes on amendments, and its list of sources."""
    return _PAGE_CITATION.sub("", rewrite_citations(without_places(text), lambda *_: ""))


_NO_NAME = re.compile(r"[\W\d_]+|(?:\d+\s+and\s+)*\d+")
"""Brackets without a source name: `[1]`, `[1, 2]`, the year in `[2024] EWCA Civ 123`, gaps such as `[…]` or `[***]`."""


def find_cited_names(text: str) -> list[str]:
    """Return the sources that a text cites by name, each once, as written: `Part 36#page=Offers to Settle`."""
    names = (" ".join(match.split()) for match in BRACKETED.findall(text))
    return list(dict.fromkeys(name for name in names if name and not _NO_NAME.fullmatch(name)))


def without_named(text: str) -> str:
    """Return a text without citations that name a source in brackets, such as `[Part 36#page=Offers to Settle]`."""
    return BRACKETED.sub(lambda match: match.group() if _NO_NAME.fullmatch(match[1]) else " ", text)
