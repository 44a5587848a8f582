"""Page furniture: running heads, running feet and page numbers, which interrupt sentences at page ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_EDGE = 4
"""How many lines from a page's edge can be furniture: a company's name, a title, a notice, a number."""

_SHARE = 0.1
"""A line is a running one when it stands at the edge of a tenth of the pages, and of two at least; of three when
only its number goes up with the page."""

_NUMBER = re.compile(
    r"(?:page)?[-–—\[(.\s]*+(?:[a-z]{1,3}[-–. ]?)?(?:\d{1,4}|[ivxl]{1,7})[-–—\]).\s]*+"
    r"(?:(?:of|/)\s*+\d{1,4}[-–—\s]*+)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{1,5}")
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
    repeated = {line for edges in (tops, bottoms) for line in _running(text, edges)}
    return sorted(repeated)


def _lines(text: str, start: int, end: int) -> Iterator[Range]:
    """Yield the lines of a page that hold more than white space."""
    for match in _LINE.finditer(text, start, end):
        if match.group().strip():
            yield match.span()


def _running(text: str, edges: list[list[Range]]) -> Iterator[Range]:
    """Yield the lines at one edge that recur, or number the page; they must reach the edge without a gap."""
    keys = [[_keys(text[slice(*line)], page) for line in lines] for page, lines in enumerate(edges)]
    counts = Counter(key for page in keys for key in {key for line in page for key in line})
    share = _SHARE * len(edges)
    # two numbers in step with the page may be chance: a heading on each of two pages
    for lines, page_keys in zip(edges, keys, strict=True):
        for line, own in zip(lines, page_keys, strict=True):
            recurs = any(counts[key] >= max(2 if key[1] is None else min(3, len(edges)), share) for key in own)
            if not recurs and not _NUMBER.fullmatch(text[slice(*line)].strip()):
                break
            yield line


def _keys(line: str, page: int) -> list[tuple[str, int | None]]:
    """Return what a running line has in common with those of other pages.

    Either all of it, or all but a number that goes up with the page: so "Page 3 of 9" and "Page 4 of 9" are alike,
    "ARTICLE 4" and "ARTICLE 5" at the top of pages 7 and 9 are not.
    """
    whole = _SPACES.sub("", line).casefold()
    masked = _DIGITS.sub("#", whole)
    return [(whole, None)] + [(masked, int(number) - page) for number in _DIGITS.findall(whole)[:4]]
