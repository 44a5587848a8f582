"""Page furniture: running heads, running feet and page numbers, which interrupt sentences at page ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_EDGE = 4
"""How many lines from a page's edge can be furniture: a company's name, a title, a notice, a number."""

_SHARE = 0.1
"""A line is a running one when it stands at the edge of a tenth of the pages, and of two at least."""

_NUMBER = re.compile(
    r"(?:page\s*)?[-–—\[(.\s]*(?:[a-z]{1,3}[-–. ]?)?(?:\d{1,4}|[ivxl]{1,7})[-–—\]).\s]*"
    r"(?:(?:of|/)\s*\d{1,4})?[-–—\s]*",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_SPACES = re.compile(r"\s+")
_LINE = re.compile(r"[^\n]*\n?")

Range = tuple[int, int]


def furniture_lines(text: str, pages: Sequence[Range]) -> list[Range]:
    """Return the ranges of all furniture lines, in order; none in a document of one page."""
    if len(pages) < 2:
        return []
    tops, bottoms = [], []
    for start, end in pages:
        lines = list(_lines(text, start, end))
        tops.append(lines[:_EDGE])
        bottoms.append(lines[::-1][:_EDGE])
    found = {line for edges in (tops, bottoms) for line in _running(text, edges)}
    return sorted(found)


def _lines(text: str, start: int, end: int) -> Iterator[Range]:
    """Yield the lines of a page that hold more than white space."""
    for match in _LINE.finditer(text, start, end):
        if match.group().strip():
            yield match.span()


def _running(text: str, edges: list[list[Range]]) -> Iterator[Range]:
    """Yield the lines at one edge that recur, or number the page; they must reach the edge without a gap."""
    keys = [[_key(text[slice(*line)]) for line in lines] for lines in edges]
    counts = Counter(key for page in keys for key in set(page))
    needed = max(2, _SHARE * len(edges))
    for lines, page in zip(edges, keys, strict=True):
        for line, key in zip(lines, page, strict=True):
            if counts[key] < needed and not _NUMBER.fullmatch(text[slice(*line)].strip()):
                break
            yield line


def _key(line: str) -> str:
    """Return what stays of a line from page to page: everything but its numbers and spaces."""
    return _SPACES.sub("", _DIGITS.sub("#", line)).casefold()
