"""Practice directions, with their paragraphs, sections, annexes and appendices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exhibit.law.references.numbers import Numbers, read_numbers
from exhibit.law.references.reference import Path
from exhibit.law.references.stretch import Stretch, stretch

_NAME = r"(?:CPR\s*)?(?:[Pp]ractice\s+[Dd]irections?|PRACTICE\s+DIRECTIONS?|PDs?|CPRPD)"
_HEAD = re.compile(rf"(?<![A-Za-z]){_NAME}\s*(?:No\.?\s*)?(?=\d)")
_UNIT = (
    r"(?P<unit>[Pp]aragraphs?|PARAGRAPHS?|[Pp]aras?\.?|§§?|(?:[Ss]ub-?)?[Ss]ections?|"
    r"[Aa]nnex(?:es)?|ANNEX|[Aa]ppendi(?:x|ces)|APPENDIX)"
)
_INSIDE = re.compile(rf"(?<!\w){_UNIT}\s*(?=[\dA-Z])")
_AFTER = re.compile(rf"[,:]?\s*\(?(?:(?:at|in)\s+)?{_UNIT}\s*(?=[\dA-Z])")
_OF = re.compile(rf"\s+(?:of|to|in)\s+(?:the\s+)?(?={_NAME}\s*\d)|\s+(?=PD\s?\d)")
_LAST = re.compile(
    r"\s+(?:of|to|in)\s+(?:the|that)\s+(?:[Pp]ractice\s+[Dd]irection|PD)\b(?!\s*(?:\d|supplement|to\b|accomp))"
)


def find_directions(text: str) -> Iterator[Stretch]:
    """Yield practice directions by number; `paragraph 2.1 of the Practice Direction` is the last one named."""
    heads = [(m.start(), n) for m in _HEAD.finditer(text) if (n := _numbers(text, m))]
    open_heads = dict(heads)
    taken: set[int] = set()
    for match in _INSIDE.finditer(text):
        inside = _read_inside(text, match)
        if inside is None:
            continue
        paths, end = inside
        of, last = _OF.match(text, end), _LAST.match(text, end)
        if of and of.end() in open_heads:
            numbers = open_heads.pop(of.end())
            taken.add(match.start())
            yield stretch("direction", numbers.paths[0][0], paths, match.start(), numbers.end)
        elif last and (named := [n.paths[-1][0] for start, n in heads if start < match.start()]):
            yield stretch("direction", named[-1], paths, match.start(), last.end())
    for start, numbers in open_heads.items():
        yield from _with_what_follows(text, start, numbers, taken)


def _with_what_follows(text: str, start: int, numbers: Numbers, taken: set[int]) -> Iterator[Stretch]:
    """Yield directions from their head on; a paragraph after several belongs to the last."""
    for number, *inside in numbers.paths[:-1]:
        yield stretch("direction", number, [tuple(inside)], start, numbers.end)
    number, *rest = numbers.paths[-1]
    after = None if rest else _AFTER.match(text, numbers.end)
    read = _read_inside(text, after) if after and after.start("unit") not in taken else None
    paths, end = read or ([tuple(rest)], numbers.end)
    yield stretch("direction", number, paths, start, end)


def _numbers(text: str, head: re.Match[str]) -> Numbers | None:
    plural = head.group().strip().lower().endswith("s")
    return read_numbers(text, head.end(), plural=plural, single=not plural)


def _read_inside(text: str, match: re.Match[str]) -> tuple[list[Path], int] | None:
    """Return what a unit such as `paragraphs` or `Annex` names, and where it ends."""
    unit = match["unit"].lower()
    kind = "annex " if unit.startswith("annex") else "appendix " if unit.startswith("append") else ""
    plural = unit.rstrip(".").endswith(("s", "§§"))
    numbers = read_numbers(text, match.end(), plural=plural, lettered=bool(kind))
    return ([(kind + path[0], *path[1:]) for path in numbers.paths], numbers.end) if numbers else None
