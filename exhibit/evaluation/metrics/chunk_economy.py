"""Chunk economy: the shares of passages that are essential, complementary, or neither.

The shares are computed for the first K passages (`chunk_…`) and for the passages that the answer was made
from (`context_…`).

A passage is essential if it shares a character with gold, at any of the gold's places. A passage that
shares no character with gold is complementary if it ends or begins within 500 characters of gold in the
same file, because it may contain text that the gold refers to. All other passages are neither. The three
shares add up to 1. Passages of unknown content are not counted.
"""

import math
from collections.abc import Sequence

from exhibit.evaluation.metrics import Case, Cutoff, K, Options, Passage, Values
from exhibit.evidence import Span

NEAR = 500
"""A passage within this many characters of gold, the size of a chunk, is its neighbour."""

KINDS = ("chunk_essential", "chunk_complementary", "chunk_neither")
_CONTEXT = {kind: kind.replace("chunk", "context") for kind in KINDS}
NAMES = (*(f"{kind}@{K}" for kind in KINDS), *_CONTEXT.values())


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the shares of passages that are essential, complementary, or neither, for each question.

    An essential passage overlaps gold. A complementary passage does not overlap gold, but is close to it in the
    same file. The shares are computed twice: over the first k passages, and over the passages that the answer
    was made from. A share is None if there are no passages, or if their content is unknown.
    """
    depth = cutoff or options.k
    shares: dict[str, Values] = {}
    for kind in KINDS:
        shares[f"{kind}@{depth}"] = [_compute_share(kind, case, case.reply.passages[:depth]) for case in cases]
        shares[_CONTEXT[kind]] = [_compute_share(kind, case, _get_context(case)) for case in cases]
    return shares


def _get_context(case: Case) -> Sequence[Passage]:
    known = case.reply.context is not None or case.reply.selected is not None
    return case.reply.read(0) if known else ()


def _compute_share(kind: str, case: Case, passages: Sequence[Passage]) -> float | None:
    known = [passage for passage in passages if passage.tells]
    return sum(kind_of(passage, case) == kind for passage in known) / len(known) if known else None


def kind_of(passage: Passage, case: Case) -> str:
    """Return the kind of a retrieved passage: how far it is from the nearest gold in the same file.

    `chunk_essential` overlaps gold, `chunk_complementary` is at most 500 characters away, and
    `chunk_neither` is farther away, or its position is unknown.
    """
    golds = [gold for gold in case.gold if gold.filename == passage.source and gold.filename is not None]
    gaps = [_measure_gap(own, one) for own in passage.spans for gold in golds for place in gold.places for one in place]
    nearest = min(gaps, default=math.inf)
    return KINDS[0] if nearest < 0 else KINDS[1] if nearest <= NEAR else KINDS[2]


def _measure_gap(one: Span, other: Span) -> int:
    """Return the number of characters between two spans; negative where they overlap."""
    return max(one.start, other.start) - min(one.end, other.end)
