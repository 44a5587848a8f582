"""The words of a text: every run of letters and digits, those that carry meaning, or those to search for.

Words that carry meaning are reduced to stems, so that `terminated` meets `termination`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from exhibit.law.patterns import Patterns

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_RUN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PLAIN_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_PLAIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
"""The same where there are no letters or digits but these: quicker."""
_TYPED = tuple({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "•": ";", **dict.fromkeys("–—§…®©\xa0", " ")}.items())
_LETTERS = {code: chr(code).lower() if chr(code).isalpha() else " " for code in range(128)}
PART = "#"
"""In front of a part of a word, so that it is not taken for one."""
_APOSTROPHES = str.maketrans("’‘ʼ", "'''")
_P = Patterns(__file__)
_STOP, _ENDINGS = _P.words("stop"), _P.words("endings")
_LENGTHS = sorted({len(ending) for ending in _ENDINGS}, reverse=True)
"""Of one length a word has one ending at most: the longest is looked for first."""
_SHORT = frozenset({"s", "es", "e", "ed", "ing"})
"""Endings that may leave three letters; the others leave four."""


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a word without its ending, in lower case; light: it errs towards leaving words apart."""
    word = word.lower().removesuffix("'s")
    for length in () if word.endswith("ss") else _LENGTHS:
        left = len(word) - length
        if left >= 3 and (ending := word[left:]) in _ENDINGS and (left > 3 or ending in _SHORT):
            word = word[:left]
            break
    bare = word.rstrip("e")  # agree, agreed, agreement
    return bare if len(bare) >= 3 else word


def content_words(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in order, repeats included; numbers are not words."""
    return list(_content_words(text))


@lru_cache(maxsize=4096)  # questions on one document are held against the same sentences
def _content_words(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in written_words(text) if is_content(word))


def written_words(text: str) -> list[str]:
    """Return every word in lower case, in order, repeats and empty words included; numbers are not words."""
    plain = typed(text)
    if not plain.isascii():
        return _WORD.findall(unicodedata.normalize("NFKC", plain).translate(_APOSTROPHES).lower())
    if "'" in plain:
        return _PLAIN_WORD.findall(plain.lower())
    return plain.translate(_LETTERS).split()  # the same for such a text, in a third of the time


def typed(text: str) -> str:
    """Return a text with the signs of a typewriter for those that printers have: what is a word stays the same."""
    if not text.isascii():
        for sign, plain in _TYPED:
            text = text.replace(sign, plain)
    return text


def is_content(word: str) -> bool:
    """Return whether a word in lower case carries meaning."""
    return len(word) > 1 and word not in _STOP


def numbers(text: str) -> list[str]:
    """Return the numbers of a text in order, as they are written."""
    return (_PLAIN_NUMBER if text.isascii() else _NUMBER).findall(text)


def search_terms(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, then the numbers; repeats included."""
    return content_words(text) + numbers(text)


def word_parts(text: str) -> list[str]:
    """Return every four letters on end of the words that carry meaning, marked: German writes several words as one."""
    words = [_folded(word) for word in written_words(text) if is_content(word)]
    return [PART + word[at : at + 4] for word in words for at in range(len(word) - 3)]


def _folded(word: str) -> str:
    plain = word if word.isascii() else unicodedata.normalize("NFKD", word.replace("ß", "ss"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def word_runs(text: str) -> list[str]:
    """Return every run of letters and digits, in order, as it is written: `don't` is two."""
    return _RUN.findall(text)
