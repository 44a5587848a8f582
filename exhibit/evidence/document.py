"""A document as text with coordinates: characters, pages, boxes on a page, and furniture (running heads and feet)."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from exhibit.evidence.fold import Fold
from exhibit.storage.locations import Location

_EDGE = 4  # The number of lines at a page's edge that can be furniture: a company's name, a title, a notice, a number
_NUMBER = re.compile(
    r"(?:page)?[-–—\[(.\s]*+(?:[a-z]{1,3}[-–. ]?)?(?:\d{1,4}|[ivxl]{1,7})[-–—\]).\s]*+"
    r"(?:(?:of|/)\s*+\d{1,4}[-–—\s]*+)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d{1,5}")
_LINE = re.compile(r"[^\n]*\n?")

Range = tuple[int, int]


def find_furniture(text: str, pages: Sequence[Range]) -> list[Range]:
    """Return the ranges of all running heads, feet and page numbers, in order; [] for a document of one page."""
    if len(pages) < 2:
        return []
    lines = [[m.span() for m in _LINE.finditer(text, *page) if m.group().strip()] for page in pages]
    tops, bottoms = [page[:_EDGE] for page in lines], [page[::-1][:_EDGE] for page in lines]
    return sorted({line for edges in (tops, bottoms) for line in _find_running(text, edges)})


def _find_running(text: str, edges: list[list[Range]]) -> Iterator[Range]:
    """Yield each line at one edge (top or bottom) of a page that recurs on other pages or is a page number."""
    pages = [[(line, _make_keys(text[slice(*line)], page)) for line in lines] for page, lines in enumerate(edges)]
    counts = Counter(key for page in pages for key in {key for _, keys in page for key in keys})
    # A running line recurs on a tenth of the pages and on at least two. If it has an increasing number, it recurs on at
    # least three: on two pages, this may be the number of a heading.
    least = {True: max(2, len(edges) / 10), False: max(min(3, len(edges)), len(edges) / 10)}
    for page in pages:
        for line, keys in page:
            recurs = any(counts[key] >= least[key[1] is None] for key in keys)
            if not recurs and not _NUMBER.fullmatch(text[slice(*line)].strip()):
                break
            yield line


def _make_keys(line: str, page: int) -> list[tuple[str, int | None]]:
    whole = "".join(line.split()).casefold()
    masked = _DIGITS.sub("#", whole)
    return [(whole, None)] + [(masked, int(number) - page) for number in _DIGITS.findall(whole)[:4]]


class Span(NamedTuple):
    """A half-open range of characters of `Document.text`."""

    start: int
    end: int

    def overlaps(self, other: "Span") -> bool:
        return self.start < other.end and other.start < self.end

    def trim(self, text: str) -> "Span":
        """Return the span without white space at its ends."""
        words = text[self.start : self.end]
        start = self.start + len(words) - len(words.lstrip())
        return Span(start, start + len(words.strip()))


def subtract_spans(wholes: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    """Return the parts of spans that no span of `taken` covers, in order."""
    left = list(wholes)
    for start, end in taken:
        sides = [(span.start, min(span.end, start), max(span.start, end), span.end) for span in left]
        left = [Span(a, b) for before in sides for a, b in (before[:2], before[2:]) if a < b]
    return left


def unite_spans(spans: Iterable[Span], text: str = "") -> list[Span]:
    """Return spans in order; overlapping spans and, with `text`, spans without a letter between them are merged."""
    united: list[Span] = []
    for span in sorted(spans):
        last = united[-1] if united else None
        if last and (span.start < last.end or (text and not any(map(str.isalnum, text[last.end : span.start])))):
            united[-1] = Span(last.start, max(last.end, span.end))
        else:
            united.append(span)
    return united


class Box(NamedTuple):
    """A rectangle on a page, in points (1/72 inch) from the top left corner of the displayed page."""

    page: int
    left: float
    top: float
    right: float
    bottom: float


class Page(NamedTuple):
    number: int  # from 1
    span: Span
    width: float  # in points, like the height
    height: float


@dataclass(frozen=True)
class Document:
    """The extracted content of a file; every offset in this project is an index into `text`."""

    filename: str
    text: str
    pages: tuple[Page, ...] = ()
    path: Location | None = None
    notes: tuple[str, ...] = ()  # Remarks of the reader on the file, such as `converted by LibreOffice`

    @property
    def has_text(self) -> bool:
        return bool(self.text.strip())

    def pages_of(self, *spans: tuple[int, int]) -> list[int]:
        """Return the numbers of the pages that the spans touch, in order."""
        count_starts = partial(bisect_right, self.pages, key=lambda page: page.span.start)
        ranges = ((max(count_starts(start) - 1, 0), count_starts(max(end - 1, start))) for start, end in spans)
        return sorted({page.number for first, last in ranges for page in self.pages[first:last]})

    @cached_property
    def furniture(self) -> tuple[Span, ...]:
        """The lines that belong to the page layout: running headers, footers and page numbers."""
        return tuple(Span(*line) for line in find_furniture(self.text, [p.span for p in self.pages]))

    def cut_furniture(self, span: Span) -> tuple[Span, ...]:
        """Return the trimmed parts of a span without running heads and feet; if no part is left, the span itself."""
        parts = subtract_spans([span], (line for line in self.furniture if line.overlaps(span)))
        return tuple(words for part in parts if (words := part.trim(self.text)).start < words.end) or (span,)

    @cached_property
    def folded(self) -> Fold:
        return Fold.of(self.text)

    @cached_property
    def loose(self) -> Fold:
        """The text folded for a search that also ignores upper and lower case and hyphens."""
        return Fold.of(self.text, loose=True)

    @cached_property
    def body(self) -> Fold:
        """The text in its loose form without running heads and page numbers."""
        return Fold.of(self.text, loose=True, without=self.furniture) if self.furniture else self.loose

    @property
    def letters(self) -> Fold:
        return self.body.letters
