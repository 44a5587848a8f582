"""Chunk economy: what the first K passages are there for, and those that the answer was made from (`context_…`).

Essential: the passage shares a character with gold, at any of its places. Complementary: it does not, but ends or
begins within 500 characters of gold in the same file, and so may hold what the gold refers to. Neither: the rest.
The three shares add up to 1. A passage of which it is not known what it holds is in none of them.
"""

import math
from collections.abc import Sequence

from exhibit.evaluation.metrics import Case, Cutoff, K, Options, Passage, Values
from exhibit.evidence import Span

NEAR = 500
"""Characters between a passage and gold, the size of a chunk, that still make them neighbours."""

KINDS = ("chunk_essential", "chunk_complementary", "chunk_neither")
_CONTEXT = {kind: kind.replace("chunk", "context") for kind in KINDS}
NAMES = (*(f"{kind}@{K}" for kind in KINDS), *_CONTEXT.values())


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the three shares of both, None where nothing was retrieved, or what was read is not known."""
    depth = cutoff or options.k
    shares: dict[str, Values] = {}
    for kind in KINDS:
        shares[f"{kind}@{depth}"] = [_share(kind, case, case.reply.passages[:depth]) for case in cases]
        shares[_CONTEXT[kind]] = [_share(kind, case, _context(case)) for case in cases]
    return shares


def _context(case: Case) -> Sequence[Passage]:
    known = case.reply.context is not None or case.reply.selected is not None
    return case.reply.read(0) if known else ()


def _share(kind: str, case: Case, passages: Sequence[Passage]) -> float | None:
    known = [passage for passage in passages if passage.tells]
    return sum(kind_of(passage, case) == kind for passage in known) / len(known) if known else None


def kind_of(passage: Passage, case: Case) -> str:
    """Return which of `KINDS` a retrieved passage is; one without a place is neither."""
    golds = [gold for gold in case.gold if gold.filename == passage.source and gold.filename is not None]
    gaps = [_gap(own, one) for own in passage.spans for gold in golds for place in gold.places for one in place]
    nearest = min(gaps, default=math.inf)
    return KINDS[0] if nearest < 0 else KINDS[1] if nearest <= NEAR else KINDS[2]


def _gap(one: Span, other: Span) -> int:
    """Return the characters between two spans, negative where they overlap."""
    return max(one.start, other.start) - min(one.end, other.end)
