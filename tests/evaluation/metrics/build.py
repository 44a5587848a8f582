"""Cases in one line each, for tables that are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply, Values
from exhibit.evaluation.metrics import Options, measure
from exhibit.evidence import Span

Ends = tuple[int, int]


def gold(*places: Ends | Sequence[Ends], file: str | None = "lease.pdf", text: str | None = None) -> GoldPassage:
    """A gold passage with its places: one span each, or several."""
    spans = [[place] if isinstance(place[0], int) else place for place in places]
    return GoldPassage(file, text, tuple(tuple(Span(*ends) for ends in place) for place in spans))


def quote(text: str, file: str | None = "lease.pdf") -> GoldPassage:
    """A gold passage known by its words."""
    return GoldPassage(file, text)


def at(start: int, end: int, file: str | None = "lease.pdf") -> Passage:
    """A retrieved passage known by its place."""
    return Passage("x" * (end - start), file, Span(start, end))


def case(
    golds: Sequence[GoldPassage] = (),
    passages: Sequence[Passage | str] = (),
    *,
    answer: str | None = None,
    seconds: float | None = None,
    error: str = "",
    confidence: float | None = None,
    **fields: Any,
) -> Case:
    """A case; passages given as words have no place."""
    ranking = tuple(Passage(passage) if isinstance(passage, str) else passage for passage in passages)
    reply = Reply(answer=answer, passages=ranking, seconds=seconds, error=error, confidence=confidence)
    return Case(**{"id": 0, "question": "What is the rent?", "truth": "", "gold": tuple(golds), **fields}, reply=reply)


def apply(module: Any, cases: Sequence[Case], options: Options | None = None) -> dict[str, Values]:
    """The values of a metric's file, over the cases that have what it needs."""
    return measure(cases, options, names=[module.__name__.rpartition(".")[2]])
