"""Folding, which makes different renderings of the same words equal, and fuzzy search.

Renderings differ in line breaks, spaces, quotation marks, dashes, ligatures and invisible marks. A folded text keeps
the offset of each original character, so that a match in it has a range in the original.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# NFKD does not change these characters; a quote typed on another keyboard has the plain characters.
_ALIKE = {
    **dict.fromkeys("‘’‚‛′‵ʹʻʼʽ`´ʹ", "'"),
    **dict.fromkeys("“”„‟″‶«»〝〞＂", '"'),
    **dict.fromkeys("‐‑‒–—―−⁃﹘﹣－", "-"),
    "\u037e": ";",  # the Greek question mark, which looks like a semicolon
    "\u00b7": "·",
    "⁄": "/",
    "∕": "/",
}
# Cc and Cf: controls, soft hyphens, zero-width and direction marks, the BOM. Z*: every kind of space. Co: private use,
# such as the bullets and boxes of a symbol font, which mean nothing without the font. U+FFFE: PDFium's hyphen at a
# line's end; our reader replaces it by "-", but other texts may contain it.
_DROPPED = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Cn", "Co"})


@lru_cache(maxsize=65536)
def _fold_character(character: str, loose: bool) -> str:
    """Return the folded form of one character: usually the character itself, sometimes several characters or none."""
    if unicodedata.category(character) in _DROPPED:
        return ""
    folded = "".join(
        _ALIKE.get(c, c)
        for c in unicodedata.normalize("NFKD", _ALIKE.get(character, character))
        if unicodedata.category(c) not in _DROPPED
    )
    if not loose:
        return folded
    # casefold can compose a character again (İ) or lengthen it (ß), so decompose once more
    return unicodedata.normalize("NFKD", folded.casefold()).replace("-", "")


def _list_code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _join_code_points(points: npt.NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


def _list_characters(text: str) -> list[str]:
    """Return the distinct characters of a text, in a tenth of the time that `set` takes for a long text."""
    return list(map(chr, np.flatnonzero(np.bincount(_list_code_points(text)))))


def _look_up(text: str, function: Callable[[str], int]) -> Ints:
    """Return a function's value for each character of a text, calling the function once for each distinct character."""
    points = _list_code_points(text)
    table = np.zeros(int(points.max(initial=0)) + 1, dtype=np.int64)
    for character in _list_characters(text):
        table[ord(character)] = function(character)
    return table[points]


def fold(text: str, *, loose: bool = False) -> str:
    """Return a text folded for comparison: with uniform spaces, quotation marks, dashes and ligatures."""
    # map to None, not to an empty text: `translate` then takes a quarter of the time
    return text.translate({ord(char): _fold_character(char, loose) or None for char in _list_characters(text)})


@dataclass(frozen=True, eq=False)
class Fold:
    text: str
    offsets: Ints  # of the original characters

    @staticmethod
    def of(text: str, *, loose: bool = False, without: Iterable[tuple[int, int]] = ()) -> "Fold":
        points = _list_code_points(text).copy()
        for start, end in without:
            points[start:end] = ord(" ")  # a space folds to nothing
        text = _join_code_points(points)
        widths = _look_up(text, lambda character: len(_fold_character(character, loose)))
        return Fold(fold(text, loose=loose), np.repeat(np.arange(len(text), dtype=np.int64), widths))

    @cached_property
    def letters(self) -> "Fold":
        return self.select(str.isalnum)

    def select(self, is_kept: Callable[[str], bool]) -> "Fold":
        kept = _look_up(self.text, is_kept) > 0
        return Fold(_join_code_points(_list_code_points(self.text)[kept]), self.offsets[kept])

    def span(self, start: int, end: int) -> tuple[int, int]:
        return int(self.offsets[start]), int(self.offsets[end - 1]) + 1

    def find_folded_range(self, start: int, end: int) -> tuple[int, int]:
        first, last = np.searchsorted(self.offsets, [start, end])
        return int(first), int(last)

    def cuts(self, start: int, end: int) -> bool:
        """Return whether a range of the folded text begins or ends inside one original character."""
        inside = (at for at in (start, end) if 0 < at < len(self.offsets))
        return any(self.offsets[at - 1] == self.offsets[at] or unicodedata.combining(self.text[at]) for at in inside)


_LATIN = str.maketrans("аеіорсухѕјАВЕІКМНОРСТУХЅЈοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeiopcyxsjABEIKMHOPCTYXSJoABEZHIKMNOPTYX")
_OTHER = "[\u0370-\u03ff\u0400-\u04ff]"  # a Cyrillic or Greek letter
_MIXED = re.compile(f"[A-Za-z]{_OTHER}|{_OTHER}[A-Za-z]")
_LETTERS = re.compile(r"[^\W\d_]+")
_UNLIKE = re.compile(f"(?![{''.join(map(chr, _LATIN))}]){_OTHER}")


def with_latin_letters(text: str) -> str:
    """Return a text with Latin letters for Cyrillic and Greek look-alikes if one of its words mixes scripts."""
    if text.isascii() or not _MIXED.search(text):
        return text
    if not any(_UNLIKE.search(word) and not _MIXED.search(word) for word in _LETTERS.findall(text)):
        return text.translate(_LATIN)
    # another word is really Cyrillic or Greek
    return _LETTERS.sub(lambda word: word[0].translate(_LATIN) if _MIXED.search(word[0]) else word[0], text)


_COST = 1 << 32  # a cell is its cost times this number, plus the start of its alignment: smaller is better


class Alignment(NamedTuple):
    distance: int
    start: int
    end: int


def align(pattern: str, text: str, *, most: int) -> Alignment | None:
    """Return the range of the text that differs least from the pattern; None if its edit distance exceeds `most`."""
    letters = _list_code_points(text)
    places = np.arange(len(letters) + 1, dtype=np.int64)
    slope = places * _COST
    row = places.copy()  # the empty pattern matches everywhere at no cost
    limit = (most + 1) * _COST
    for number, letter in enumerate(_list_code_points(pattern), 1):
        below = row + _COST
        below[1:] = np.minimum(below[1:], row[:-1] + np.where(letters == letter, 0, _COST))
        # a step from the left neighbour costs one: a running minimum without the slope finds the cheapest chain
        row = np.minimum.accumulate(below - slope) + slope
        if number % 32 == 0 and row.min() >= limit:  # each check takes about as long as a row
            return None
    distance = int(row.min()) // _COST
    ends = np.flatnonzero(row < (distance + 1) * _COST)
    # among ranges with the same distance, choose the range whose length is nearest to the pattern's
    lengths = ends - row[ends] % _COST
    best = int(np.abs(lengths - len(pattern)).argmin())
    end, length = int(ends[best]), int(lengths[best])
    return Alignment(distance, end - length, end) if distance <= most and length else None
