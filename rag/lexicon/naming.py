"""The words that names are made of, folded so that `MOËT's`, `Moet` and `moet` are one."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote

from exhibit.law.language import typed
from exhibit.law.names import ENDINGS

_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)?")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ENDING = re.compile(rf"\.(?:{ENDINGS})\b", re.IGNORECASE)
_CAPITAL = re.compile(r"[^\W\d_a-z]")
_FRESH = re.compile(rf"[.!?:;•\n\r][\W_]{{0,6}}({_WORD.pattern})")
"""A word that may have its capital because a sentence or a line begins."""
_NON = re.compile(r"non(?=[a-z]{5})")
_NEAR = 2
"""Signs between two words of one name: a full stop or a comma, and a space."""
_FORMAL = frozenset("of and the for in de du e & to a an by".split())
"""What an acronym leaves out."""


class Word(NamedTuple):
    """A word of a name as it is compared, and where it stands."""

    term: str
    capital: bool
    start: int
    end: int
    parts: tuple[str, ...] = ()
    """`AGProjects` is ag and projects: looked for where the whole is nowhere."""


def _unaccented(text: str) -> str:
    """Return a text in lower case without accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    return "".join(character for character in plain if not unicodedata.combining(character)).casefold()


def name_words(text: str) -> Iterator[Word]:
    """Yield the words of a text in order, without their possessive endings."""
    for match in _WORD.finditer(text):
        start, end = match.span()
        shapes = _shapes(match[0])
        if len(shapes) == 1:
            [(term, capital, parts)] = shapes
            yield Word(term, capital, start, end, parts)
        elif shapes:
            (first, capital, _), (second, _, _) = shapes
            yield Word(first, capital, start, start + 3)
            yield Word(second, capital, start + 3, end)


def name_terms(text: str) -> list[str]:
    """Return the words of a text as they are compared."""
    return [term for raw in _WORD.findall(text) for term, _, _ in _shapes(raw)]


@lru_cache(maxsize=1 << 13)
def _shapes(written: str) -> tuple[tuple[str, bool, tuple[str, ...]], ...]:
    """Return a word as it is compared, whether it is written as a name, and its parts; `Nondisclosure` is two words."""
    raw = written.replace("’", "'").replace("ʼ", "'")
    raw = raw[:-2] if raw[-2:] in {"'s", "'S"} else raw.replace("'", "")
    parts = tuple(_unaccented(part) for part in _CAMEL.split(raw)) if not raw.isupper() and not raw.islower() else ()
    term = _unaccented(raw)
    if _NON.match(term):  # "Nondisclosure" is "Non-Disclosure"
        upper = raw[0].isupper()
        return ("non", upper, ()), (term[3:], upper, ())
    if not term:
        return ()
    capital = any(map(str.isupper, raw)) or (raw[0].isdigit() and not raw.isdigit())
    return ((term, capital, parts if len(parts) > 1 else ()),)


def proper_counts(text: str) -> Counter[str]:
    """Return how often each word is written as a name: in capitals, and not because a sentence or a line begins."""
    plain = f"\n{typed(text)}"
    fresh, counts = Counter(_FRESH.findall(plain)), Counter[str]()
    for written, count in Counter(_WORD.findall(plain)).items():
        first, _, rest = written.partition("'")
        if _CAPITAL.search(first):
            count -= fresh[written]
        else:  # "d'Or"
            written = rest
        for term in name_terms(written) if count > 0 and _CAPITAL.search(written) else ():
            counts[term] += count
    return counts


def pairs(row: Sequence[Word], *, lower: bool = False) -> Iterator[tuple[Word, Word]]:
    """Yield the neighbours that are both written as names or figures (`No. 3`), or all when there are no capitals."""
    for first, second in pairwise(row):
        named = all(word.capital or word.term.isdigit() for word in (first, second))
        if (named or lower) and second.start - first.end <= _NEAR:
            yield first, second


def acronyms(name: str) -> set[str]:
    """Return the initials a name goes by: `First Nations Health Authority` is fnha; a legal form may be left out."""
    initials = "".join(term[0] for term in name_terms(name) if term not in _FORMAL)
    return {initials[:length] for length in (len(initials), len(initials) - 1) if length >= 2}


def file_words(filename: str) -> tuple[str, tuple[str, ...]]:
    """Return a file's name without its folder and ending: as one run of letters, and as words."""
    stem = _ENDING.sub(" ", unquote(filename).replace("\\", "/").rpartition("/")[2])
    spellings: list[str] = []
    for word in name_words(stem.replace("||", " ")):
        spellings += (word.term, *word.parts)
    return "".join(name_terms(stem)), tuple(dict.fromkeys(spellings))
