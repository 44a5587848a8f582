"""The numbers and letters that headings begin with: ARTICLE IV, Section 2.01, 1.1, A.1.1, (a), (i)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from exhibit.law.structure.lines import Line, is_entry
from exhibit.law.structure.titles import is_shout, is_title, is_title_case, run_in

_ORDINALS = "ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE TEN ELEVEN TWELVE".split()
_WORDS = {
    "schedule": 1, "exhibit": 1, "annex": 1, "annexure": 1, "appendix": 1, "attachment": 1, "addendum": 1,
    "book": 1.5, "title": 1.5, "practice direction": 2, "part": 2, "chapter": 3, "article": 4, "section": 5,
    "sec.": 5, "§": 5, "rule": 5, "clause": 5, "paragraph": 5, "regulation": 5,
}  # fmt: skip
_KINDS = {1: "schedule", 1.5: "part", 2: "part", 3: "chapter", 4: "article", 5: "section"}
_LONGEST = sorted(_WORDS, key=len, reverse=True)
"""First, or `Annex` would be read off `Annexure`."""
_WORD = re.compile(
    rf"(?P<word>{'|'.join(re.escape(form) for word in _LONGEST for form in (word.title(), word.upper()))})[ \xa0]*"
    rf"(?P<number>\d{{1,4}}(?:\.\d{{1,3}})*[A-Z]{{0,2}}(?![\w%])|[IVXLC]+(?![\w])|[A-Z]{{1,2}}(?:[-.]?\d{{1,3}})?(?![\w])|"
    rf"(?i:{'|'.join(_ORDINALS)})(?!\w)|)"
    r"(?P<mark>[ \xa0]?[.:)\-–—]{0,2})[ \xa0]*"
)
_NUMBER = re.compile(
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){1,4}(?:[A-Z](?![A-Za-z]))?|[A-Z](?:\.\d{1,3}){1,4}|\d{1,3}[A-Z]{0,2}(?=[.)—\s]))"
    r"(?P<mark>\.\)|[.)]|—)?(?=[\s“\"‘'A-Z(\[]|$)[ \xa0]*"
)
_BRACKET = re.compile(r"\((?P<number>[a-z]{1,2}|[ivxl]{1,6}|[A-Z]{1,2}|[IVX]{1,5}|\d{1,3})\)[ \xa0]*")
_LETTER = re.compile(r"(?P<number>[A-Z]|[a-z]|[ivx]{1,5}|[IVX]{1,5})[.)](?=[\s“\"A-Z(]|$)[ \xa0]*")
_REFERS = re.compile(
    r"(?:\b(?:sections?|articles?|paragraphs?|clauses?|rules?|parts?|exhibits?|schedules?|and|or|to|of|in|the|under|"
    r"with|by|no|cpr|subsections?|sub-?paragraphs?)|,)$",
    re.IGNORECASE,
)
"""A line that ends so goes on: the number that follows is a reference, not a heading."""
_GOES_ON = re.compile(r"(?:above|below|hereof|of (?:this|the)|and \(|or \(|[,;)])")
_PAGE = re.compile(r"page\s+\d", re.IGNORECASE)
_ROMAN = re.compile(r"(?=.)(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True)
class Label:
    text: str
    rest: str
    style: str
    value: tuple[int, ...]
    rank: float
    kind: str
    sure: bool = True


def read_label(line: Line) -> Label | None:
    """Return the number or letter that a line begins with, where it can head a section."""
    if is_entry(line.text):
        return None
    first = line.text[0]
    if first == "(":
        return _bracket(line)
    if first.isdigit():
        return _number(line)
    return _worded(line) or (
        _number(line) or _letter(line) if len(line.text) < 2 or line.text[1] in ".)ivxIVX" else None
    )


def _worded(line: Line) -> Label | None:
    match = _WORD.match(line.text)
    if match is None:
        return None
    word, number, rest = match["word"].lower(), match["number"], line.text[match.end() :]
    shouts = match["word"].isupper()
    rank = _WORDS[word]
    if not number and (rank != 1 or rest or not shouts):
        return None
    if rest and not _can_follow(rest, rank, marked=bool(match["mark"].strip()), shouts=shouts):
        return None
    if not (line.fresh or (shouts and not line.before.isupper())) or (
        rank > 1 and _REFERS.search(line.before[-16:]) and not line.gap
    ):
        return None
    value = _value(number)
    if rank in {4, 5} and number[:1].isdigit() and (rank == 5 or len(value) > 1):
        rank = 5 + len(value)
    style = "decimal" if rank > 5 else _KINDS[rank]
    kind = _KINDS[5 if rank > 5 else rank]
    return Label(match.group().strip(" \xa0.:-–—"), rest, style, value, rank, kind)


def _can_follow(rest: str, rank: float, *, marked: bool, shouts: bool) -> bool:
    """Whether a heading can go on with these words behind its label, `Section 4`."""
    if _PAGE.match(rest):
        return False  # "Annex A Page 3": a running foot in a text without pages
    if rest[0].islower() or rest[0] in ",;)&/" or (rest[0] == "(" and not shouts):
        return False
    return marked or shouts or is_title(rest) or rank == 5


def _number(line: Line) -> Label | None:
    match = _NUMBER.match(line.text)
    if match is None or (not line.fresh and _REFERS.search(line.before[-16:])):
        return None
    rest, value = line.text[match.end() :], _value(match["number"])
    starts = not rest or not (rest[0].islower() or rest[0].isdigit() or rest[0] in ",;%)&/=")
    if len(value) == 1:
        marked = bool(match["mark"])
        if not (line.gap or (marked and line.fresh)) or not starts or (not marked and not rest):
            return None
        return Label(match.group().strip(), rest, "1.", value, 6, "section", sure=marked and _titled(rest))
    if not (line.fresh and (starts or line.gap)) and not (starts and run_in(rest)[0]):
        return None
    return Label(match.group().strip(), rest, "decimal", value, 5 + len(value), "section", sure=starts and bool(rest))


def _titled(rest: str) -> bool:
    return bool(run_in(rest)[0]) or is_shout(rest) or (len(rest) <= 60 and is_title_case(rest))


def _bracket(line: Line) -> Label | None:
    match = _BRACKET.match(line.text)
    if match is None or not (line.fresh or line.before.endswith(",")):
        return None
    rest = line.text[match.end() :]
    if _GOES_ON.match(rest):
        return None
    number = match["number"]
    style = "(1)" if number.isdigit() else "(a)" if number.islower() else "(A)"
    return Label(match.group().strip(), rest, style, _value(number, letters=True), 9, "clause", sure=False)


def _letter(line: Line) -> Label | None:
    match = _LETTER.match(line.text)
    if match is None or not line.fresh:
        return None
    rest = line.text[match.end() :]
    if rest and not (rest[0].isupper() or rest[0] in '“"(['):
        return None
    number = match["number"]
    style = "a." if number.islower() else "A."
    kind = "section" if style == "A." else "clause"
    return Label(
        match.group().strip(), rest, style, _value(number, letters=True), 5.5 if style == "A." else 9, kind, sure=False
    )


def _value(number: str, *, letters: bool = False) -> tuple[int, ...]:
    """Return what a label counts to; a letter that is also a Roman digit is a letter where letters are asked for."""
    if number.upper() in _ORDINALS:
        return (_ORDINALS.index(number.upper()) + 1,)
    parts = []
    for part in re.split(r"[.-]", number.lower()):
        digits = re.match(r"\d+", part)
        if digits:
            parts.append(int(digits[0]))
        elif part and not letters and _ROMAN.fullmatch(part):
            parts.append(roman(part))
        elif part:
            parts.append(ord(part[0]) - 96 + 26 * (len(part) - 1))
    return tuple(parts)


def roman(text: str) -> int:
    """Return the value of a Roman number in small letters, 0 when it is none."""
    if not _ROMAN.fullmatch(text):
        return 0
    values = [_DIGITS[letter] for letter in text]
    return sum(-value if value < max(values[at:]) else value for at, value in enumerate(values))


def drop_stray(labels: list[Label | None]) -> None:
    """Forget runs of three and more labels with nothing beside them: a PDF's margin, read out of order."""
    at = 0
    while at < len(labels):
        end = at
        while end < len(labels) and (label := labels[end]) is not None and not label.rest and label.rank > 4:
            end += 1
        if end - at >= 3:
            labels[at:end] = [None] * (end - at)
        at = max(end, at + 1)
