"""Sources that a text cites by name in square brackets or by number, and how near two names are."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from exhibit.evaluation.cases import Case
from exhibit.law.citations import BRACKETED, find_citations
from exhibit.law.names import plain, without_ending

_NO_NAME = re.compile(r"[\W\d_]+|(?:\d+\s+and\s+)*\d+")
"""`[1]`, `[1, 2]`, the year of `[2024] EWCA Civ 123` and gaps such as `[…]` or `[***]` cite nothing by name."""
_PAGES = re.compile(r"(?<!\s)\s*\(pp?\.\s*+[\d\s,–-]+\)\s*$")

CONTAINED = 0.95
"""What a name is worth that holds the expected one, or is held by it."""
_SHARED = 0.9
"""What names are worth that share all their words in another order; in proportion when they share some."""
_SEED = 0.75
"""What the seed gives to names of one topic, and at least to those that share a word."""
_TOPICS = (("hearings", "open justice", "media"), ("disclosure", "documents", "inspection"))
"""The topics that the seed prints; of others it only says that there are some."""


def cited_names(text: str) -> list[str]:
    """Return what a text cites by name, each once, as written: `Part 36#page=Offers to Settle`."""
    names = (" ".join(match.split()) for match in BRACKETED.findall(text))
    return list(dict.fromkeys(name for name in names if name and not _NO_NAME.fullmatch(name)))


def cited_files(case: Case) -> list[str]:
    """Return the files of the passages that an answer cites by number, in the order of the citations."""
    passages = case.reply.passages
    numbers = [n for citation in find_citations(case.reply.answer or "") for n in citation.numbers]
    files = [passages[n - 1].filename for n in numbers if 1 <= n <= len(passages)]
    return list(dict.fromkeys(file for file in files if file))


def without_named(text: str) -> str:
    """Return a text without the sources that it cites by name."""
    return BRACKETED.sub(lambda match: match.group() if _NO_NAME.fullmatch(match[1]) else " ", text)


def plain_source(name: str) -> str:
    """Return a source's name as it is compared: without pages, a file's ending, case, accents and punctuation."""
    text = _PAGES.sub("", re.sub(r"#page=\d+$", "", name.strip()))
    return plain(without_ending(text).replace("#page=", " # "))  # the mark keeps `PD 5#page=A Party` from being PD 5A


def likeness(expected: str, given: str, *, seed: bool = False) -> float:
    """Return how near two names are: 1 when equal, 0.95 when one holds the other, else by the words they share.

    `seed` gives 0.75 to names of one topic, and from there to 0.9 to those that share words.
    """
    one, other = plain_source(expected).split(), plain_source(given).split()
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    short, long = sorted((one, other), key=len)
    if any(long[at : at + len(short)] == short for at in range(len(long) - len(short) + 1)):
        return CONTAINED
    shared = len(_telling(one) & _telling(other)) / len(_telling(one) | _telling(other))
    if not seed:
        return _SHARED * shared
    return _SEED + (_SHARED - _SEED) * shared if shared or _topics(one) & _topics(other) else 0.0


def _topics(words: list[str]) -> set[int]:
    text = f" {' '.join(words)} "
    return {at for at, topic in enumerate(_TOPICS) if any(f" {term} " in text for term in topic)}


def _telling(words: list[str]) -> frozenset[str]:
    """Return the words that tell one source from another; all of them where there are no others."""
    told = frozenset(words) - {"the", "of", "in", "and", "a", "to", "for", "on", "about", "by", "or", "at", "p", "pp"}
    return told or frozenset(words)


def file_names(file: str) -> Iterator[str]:
    """Yield the names that a file can be cited by."""
    yield file
    yield PurePath(file).stem
