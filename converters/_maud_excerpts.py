"""A cell of MAUD's table as excerpts, and where each of them stands in the contract's text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from evidence import Document, Match, Span, fold, locate
from evidence.locate import OMITTED, worthy

_PAGES = re.compile(r"\s*\(\s*(pages?\s*\d[\d\s,;&–—-]*(?:and\s+\d+)?)\s*\)\s*$", re.IGNORECASE)
"""The mark at a cell's end says on what pages of the annotators' PDF the excerpt stands."""
_NOTHING = frozenset({"", "n/a", "na", "nan", "none", "-"})


@dataclass(frozen=True)
class Cell:
    """What one row says on one deal point."""

    excerpts: tuple[str, ...]
    """The words on either side of each `<omitted>`."""
    pages: str
    """The page mark without its brackets, for the labels."""


@dataclass(frozen=True)
class Excerpt:
    """Words of a cell, and their place in the contract's text when they have one."""

    text: str
    match: Match | None = None
    others: tuple[Match, ...] = ()
    """The places that the order of the cell's excerpts leaves possible besides."""

    @property
    def span(self) -> Span | None:
        """The range from the first character to the last, where there is one place only."""
        return self.match.span if self.match and not self.others else None


def read_cell(cell: str) -> Cell:
    """Return a cell's excerpts without page marks; none when it only says that there is nothing."""
    parts, pages = [], []
    for part in OMITTED.split(cell):
        mark = _PAGES.search(part)
        words = part[: mark.start()].strip() if mark else part.strip()
        if mark:
            pages.append(" ".join(mark.group(1).split()))
        if fold(words) and words.casefold() not in _NOTHING:
            parts.append(words)
    # the same words twice are one excerpt
    return Cell(tuple(dict.fromkeys(parts)), "; ".join(pages))


def find_excerpts(cell: Cell, document: Document) -> list[Excerpt]:
    """Return the excerpts with their places; of several places, the one that the order of the others decides."""
    places = [sorted(worthy(locate(text, document)), key=lambda match: match.span) for text in cell.excerpts]
    found = [choices for choices in places if choices]
    chain = iter(_tightest(found) or [choices[0] for choices in found])
    allowed = iter(_in_order(found) or found)
    excerpts = []
    for text, choices in zip(cell.excerpts, places, strict=True):
        if not choices:
            excerpts.append(Excerpt(text))
            continue
        match = next(chain)
        excerpts.append(Excerpt(text, match, tuple(other for other in next(allowed) if other != match)))
    return _joined(_without_repeats(excerpts), document.text)


def _in_order(places: Sequence[Sequence[Match]]) -> list[list[Match]]:
    """Return for each excerpt the places that leave room for those before and after it; [] when no order does."""
    earliest = [0]
    for choices in places:
        ends = [match.span.end for match in choices if match.span.start >= earliest[-1]]
        if not ends:
            return []
        earliest.append(min(ends))
    latest = [max(match.span.end for choices in places for match in choices)] if places else [0]
    for choices in reversed(places):
        latest.append(max(match.span.start for match in choices if match.span.end <= latest[-1]))
    latest.reverse()
    return [
        [match for match in choices if before <= match.span.start and match.span.end <= after]
        for choices, before, after in zip(places, earliest, latest[1:], strict=False)
    ]


def _tightest(places: Sequence[Sequence[Match]]) -> list[Match]:
    """Return one place for each excerpt, in reading order and close together; [] when no order does.

    A section's heading stands in the table of contents too: the nearest to what follows is the one quoted.
    """
    best: list[Match] = []
    for first in places[0] if places else ():
        chain = [first]
        for choices in places[1:]:
            at = bisect_left(choices, chain[-1].span.end, key=lambda match: match.span.start)
            if at == len(choices):
                break
            chain.append(choices[at])
        if len(chain) == len(places) and (not best or _length(chain) < _length(best)):
            best = chain
    return best


def _length(chain: Sequence[Match]) -> int:
    return chain[-1].span.end - chain[0].span.start


def _without_repeats(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """Leave out an excerpt whose place lies inside another's: some cells say the same again in fewer words."""
    taken = [(index, excerpt.span) for index, excerpt in enumerate(excerpts) if excerpt.span]
    return [
        excerpt
        for index, excerpt in enumerate(excerpts)
        if not any(_inside(excerpt, index, span, other) for other, span in taken if other != index)
    ]


def _inside(excerpt: Excerpt, index: int, span: Span, other: int) -> bool:
    if excerpt.match is None:
        return False
    # of two equal places the first is kept
    return any(
        span.start <= match.span.start and match.span.end <= span.end and (match.span != span or other < index)
        for match in (excerpt.match, *excerpt.others)
    )


def _joined(excerpts: Sequence[Excerpt], text: str) -> list[Excerpt]:
    """Make one of two excerpts with nothing but white space between their places: nothing was omitted."""
    joined: list[Excerpt] = []
    for excerpt in excerpts:
        last = joined[-1] if joined else None
        if last and last.match and excerpt.match and last.span and excerpt.span and _meet(last.span, excerpt.span, text):
            spans = (*last.match.spans[:-1], Span(last.match.spans[-1].start, excerpt.match.spans[0].end))
            score = min(last.match.score, excerpt.match.score)
            how = max(last.match.how, excerpt.match.how, key=("exact", "folded", "parts", "fuzzy").index)
            match = Match((*spans, *excerpt.match.spans[1:]), how, score, last.match.whole and excerpt.match.whole)
            joined[-1] = Excerpt(f"{last.text}\n{excerpt.text}", match)
        else:
            joined.append(excerpt)
    return joined


def _meet(first: Span, second: Span, text: str) -> bool:
    return first.end <= second.start and not text[first.end : second.start].strip()
