"""Where gold and retrieved passages stand, and where they meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from exhibit.evidence import Span
from exhibit.schemas.run import RunQuestion


class Placed(NamedTuple):
    """The gold spans and the retrieved ones, by their number, of one document."""

    gold: list[Span]
    passages: dict[int, Span]


def placed(row: RunQuestion) -> dict[str, Placed]:
    """Return what is marked in each document: of gold that stands in several places, the one best retrieved."""
    by_file: dict[str, Placed] = {}
    for number, passage in enumerate(row.reply.passages, 1):
        if passage.span and passage.filename:
            by_file.setdefault(passage.filename, Placed([], {})).passages[number] = Span(*passage.span)
    for gold in row.gold:
        if gold.places and gold.filename:
            document = by_file.setdefault(gold.filename, Placed([], {}))
            document.gold.extend(best_place(gold.places, document.passages.values()))
    return by_file


def best_place(places: Sequence[Sequence[Sequence[int]]], retrieved: Iterable[Span]) -> list[Span]:
    """Return the place of which most was retrieved, the first of equals."""
    passages = list(retrieved)
    candidates = [[Span(start, end) for start, end in place] for place in places]
    return max(candidates, key=lambda place: sum(_shared(part, span) for part in place for span in passages))


def meets(span: Span, others: Iterable[Span]) -> bool:
    """Return whether a span shares a character with another."""
    return any(_shared(span, other) for other in others)


def gold_ranges(span: Span, gold: Iterable[Span]) -> list[tuple[int, int]]:
    """Return which characters of a passage are gold, counted from its beginning, neighbours joined."""
    parts = [Span(max(span.start, g.start), min(span.end, g.end)) for g in gold if _shared(span, g)]
    cuts = sorted({edge for part in parts for edge in part})
    ranges: list[tuple[int, int]] = []
    for start, end in pairwise(cuts):
        if meets(Span(start, end), parts):
            first = ranges.pop()[0] if ranges and ranges[-1][1] == start - span.start else start - span.start
            ranges.append((first, end - span.start))
    return ranges


def windows(text: str, wanted: Iterable[Span], *, around: int = 280) -> list[list[Any]]:
    """Return the text around some spans as `[start, text]`, no word cut in two, what overlaps joined."""
    spans: list[Span] = []
    for start, end in sorted(wanted):
        first = text.rfind(" ", 0, max(0, start - around)) + 1
        stop = text.find(" ", min(len(text), end + around))
        last = len(text) if stop < 0 else stop
        if spans and first <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(last, spans[-1].end))
        else:
            spans.append(Span(first, last))
    return [[start, text[start:end]] for start, end in spans]


def _shared(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))
