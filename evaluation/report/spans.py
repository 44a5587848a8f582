"""Where gold and retrieved passages stand, and where they meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evaluation.report.run import Record
from evidence import Span


class Mark(NamedTuple):
    """A stretch of a document that is gold, retrieved, or both."""

    span: Span
    gold: bool
    passages: tuple[int, ...]
    """Numbers of the passages it belongs to, from 1."""


class Placed(NamedTuple):
    """The gold spans and the retrieved ones, by their number, of one document."""

    gold: list[Span]
    passages: dict[int, Span]


def placed(row: Record) -> dict[str, Placed]:
    """Return what is marked in each document: of gold that stands in several places, the one best retrieved."""
    found: dict[str, Placed] = {}
    for number, passage in enumerate(row["reply"].get("passages") or (), 1):
        if passage.get("span") and passage.get("filename"):
            found.setdefault(passage["filename"], Placed([], {})).passages[number] = Span(*passage["span"])
    for gold in row.get("gold") or ():
        if gold.get("places") and gold.get("filename"):
            document = found.setdefault(gold["filename"], Placed([], {}))
            document.gold.extend(_best_place(gold["places"], document.passages.values()))
    return found


def marks(document: Placed, within: Span) -> list[Mark]:
    """Return the stretches of a page, or any other part, cut wherever gold or a passage begins or ends."""
    spans = [*document.gold, *document.passages.values()]
    edges = {edge for span in spans for edge in span if within.start < edge < within.end}
    cuts = sorted({within.start, within.end} | edges)
    found = []
    for part in map(Span, cuts, cuts[1:]):
        gold = any(_shared(part, span) for span in document.gold)
        numbers = tuple(n for n, span in sorted(document.passages.items()) if _shared(part, span))
        if gold or numbers:
            found.append(Mark(part, gold, numbers))
    return found


def meets(span: Span, others: Iterable[Span]) -> bool:
    """Return whether a span shares a character with another."""
    return any(_shared(span, other) for other in others)


def _best_place(places: Sequence[Sequence[Sequence[int]]], retrieved: Iterable[Span]) -> list[Span]:
    retrieved = list(retrieved)
    candidates = [[Span(start, end) for start, end in place] for place in places]

    def covered(place: list[Span]) -> int:
        return sum(_shared(part, span) for part in place for span in retrieved)

    return max(candidates, key=covered)  # the first of equals


def _shared(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))
