"""Numbers of provisions: `3.4(2)(a)`, lists of them, and ranges."""

from __future__ import annotations

import re
from typing import NamedTuple

from exhibit.law.days import MONTH
from exhibit.law.references.reference import Path

_AFTER_A = (
    "and|or|but|to|of|in|on|for|by|is|are|was|were|be|as|at|if|when|where|which|that|unless|without|with|shall|must|may|"
    "should|need|does|do|has|have|makes?|made|sets?|contains?|provides?|requires?|appl(?:y|ies|ied)|deals?|refers?|"
    "allows?|includes?|gives?|came|supplement\\w*|para\\w*|section"
)
# the rules are exported as "rule 73.10 A(3)" and "Practice Direction 5 A sets out"; "rule 3.4 A party may" is 3.4
_SPACED = rf"[ \xa0](?:[B-HJ-Z]|A[A-D]|Z[A-G]|[AI](?!\s+(?!(?:{_AFTER_A})\b)[a-z]))\d?(?![\w'’]|\s+\d{{4}}\b)"
_LETTERS = rf"(?:[A-Z]{{1,3}}\d?(?![A-Za-z])|{_SPACED})"
_BRACKET = r"\((?:\d{1,3}[ ]?[A-Z]{0,2}|[a-z]{1,5}|[A-Z])\)"
_ITEM = re.compile(
    rf"(?P<lead>\d{{1,3}}{_LETTERS}?)(?P<dots>(?:\.\d{{1,3}}{_LETTERS}?)*)"
    rf"(?P<brackets>(?:[ ]?\(\d{{1,2}}[A-Z]{{0,2}}\))?(?:{_BRACKET})*)(?!\d|\.\d|,\d{{3}}\b)"
)
_LETTERED = re.compile(
    rf"(?P<lead>[A-Z])(?P<dots>(?:\.?\d{{1,3}}[A-Z]?(?:\.\d{{1,3}}[A-Z]?)*)?)(?P<brackets>(?:{_BRACKET})*)(?![\w'’])"
)
"""Numbers of court guides: `O.5.1`, `J1.1`, `K`."""
_MORE = re.compile(rf"(?:{_BRACKET})+(?!\w)")
_SPACE = r"[^\S\n]*+(?:\n[^\S\n]*+)?"
_SEPARATOR = re.compile(
    rf"{_SPACE}(?:,{_SPACE}(?:(?:and|or)\b)?|/|&|(?:and/or|and|or)\b|(?P<range>(?:to|through)\b|[-–—])){_SPACE}"
)
_MEASURE = re.compile(
    r"\s*(?:%|per\s?cent|(?:clear\s+|working\s+|business\s+|calendar\s+)?(?:days?|weeks?|months?|years?|hours?|minutes?)\b"
    rf"|pages?\b|a\.?m\b|p\.?m\b|million\b|thousand\b|{MONTH}\b)"
)
_OF_THE = re.compile(r"\s+(?:of|to)\s+the\b")
_LONGEST = 60
"""Of a range that is longer, only the ends are taken."""


class Numbers(NamedTuple):
    """The numbers that stand at a place, and where they end."""

    paths: tuple[Path, ...]
    end: int


def read_numbers(text: str, at: int, *, plural: bool, single: bool = False, lettered: bool = False) -> Numbers | None:
    """Return the numbers from a place on; lists go on after a plural, or where every number has a point.

    `single` takes one number only; `lettered` takes `O.5.1` and `K` too.
    """
    first = _item(text, at, lettered=lettered)
    if first is None or _MEASURE.match(text, first.end()):
        return None
    pointed = bool(first["dots"])
    paths = [_path(first)]
    end = first.end()
    while not single and (separator := _SEPARATOR.match(text, end)):
        more = _MORE.match(text, separator.end())
        if more:
            path = _beside(paths[-1], more.group(), first["dots"])
        else:
            item = _item(text, separator.end(), lettered=lettered)
            if item is None or _MEASURE.match(text, item.end()) or (pointed and not item["dots"]):
                break
            if not (plural or pointed or _OF_THE.match(text, item.end())):
                break  # "Part 36 and 14 days": but "section 215 or 217 of the Act"
            more, path = item, _path(item)
        if path is None:
            break
        if separator["range"] and (more.re is not _MORE or plural or pointed):
            paths += _between(paths[-1], path)
        paths.append(path)
        end = more.end()
    return Numbers(tuple(dict.fromkeys(paths)), end)


def _item(text: str, at: int, *, lettered: bool) -> re.Match[str] | None:
    return _ITEM.match(text, at) or (_LETTERED.match(text, at) if lettered else None)


def _path(item: re.Match[str]) -> Path:
    parts = [item["lead"], *item["dots"].split("."), *_inside(item["brackets"])]
    return tuple(re.sub(r"\s", "", part) for part in parts if part)


def _inside(brackets: str) -> list[str]:
    return [part.replace(" ", "") for part in re.findall(r"\(([^()]+)\)", brackets)]


def _beside(path: Path, brackets: str, dots: str) -> Path | None:
    """Return the paragraph that `(4)` means after `25.2(2)`: it takes the place of the last of its kind."""
    new = _inside(brackets)
    fixed = 1 + len([dot for dot in dots.split(".") if dot])
    for place in range(len(path) - 1, fixed - 1, -1):
        if path[place][0].isdigit() == new[0][0].isdigit():
            return (*path[:place], *new)
    return None


def _between(low: Path, high: Path) -> list[Path]:
    """Return what lies between two numbers that differ in the last place only."""
    if low[:-1] != high[:-1] or not (low[-1].isdigit() and high[-1].isdigit()):
        return []
    numbers = range(int(low[-1]) + 1, int(high[-1]))
    return [(*low[:-1], str(number)) for number in numbers] if len(numbers) < _LONGEST else []
