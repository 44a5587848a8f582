"""Chunk economy: what the first K passages are there for.

Essential: the passage shares a character with gold, at any of its places. Complementary: it does not, but ends or
begins within 500 characters of gold in the same file, and so may hold what the gold refers to. Neither: the rest.
The three shares add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from exhibit.evaluation.cases import Case, Passage, Values
from exhibit.evaluation.metrics._about import About, Need
from exhibit.evaluation.metrics._each import each
from exhibit.evaluation.metrics._options import Cutoff, K, Options
from exhibit.evidence import Span

NEAR = 500
"""Characters between a passage and gold, the size of a chunk, that still make them neighbours."""

KINDS = ("chunk_essential", "chunk_complementary", "chunk_neither")
NAMES = tuple(f"{kind}@{K}" for kind in KINDS)
_NEEDS: tuple[Need, ...] = ("gold spans", "passages")
ABOUT = {
    "chunk_essential": About(
        "Passages that hold gold", "share of the first k passages", "Retrieval", needs=_NEEDS, short=False
    ),
    "chunk_complementary": About(
        "Passages beside gold",
        "share of the first k passages that neighbour gold",
        "Retrieval",
        better="neither",
        needs=_NEEDS,
        short=False,
    ),
    "chunk_neither": About(
        "Passages far from gold",
        "share of the first k passages",
        "Retrieval",
        better="less",
        needs=_NEEDS,
        short=False,
    ),
}


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the three shares, None where nothing was retrieved."""

    depth = cutoff or options.k

    def share(kind: str) -> Values:
        return each(cases, lambda case: _share(kind, case, depth))

    return {f"{kind}@{depth}": share(kind) for kind in KINDS}


def _share(kind: str, case: Case, k: int) -> float | None:
    passages = case.reply.passages[:k]
    if not passages:
        return None
    return sum(kind_of(passage, case) == kind for passage in passages) / len(passages)


def kind_of(passage: Passage, case: Case) -> str:
    """Return which of `KINDS` a retrieved passage is; one whose place is unknown is neither."""
    span = passage.span
    if span is None:
        return KINDS[2]
    golds = [gold for gold in case.gold if gold.filename == passage.source and gold.filename is not None]
    gaps = [_gap(span, other) for gold in golds for place in gold.places for other in place]
    nearest = min(gaps, default=math.inf)
    return KINDS[0] if nearest < 0 else KINDS[1] if nearest <= NEAR else KINDS[2]


def _gap(one: Span, other: Span) -> int:
    """Return the characters between two spans, negative where they overlap."""
    return max(one.start, other.start) - min(one.end, other.end)
