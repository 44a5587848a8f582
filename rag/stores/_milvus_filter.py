"""Keys as conditions that Milvus understands, as short as can be: a document's chunks are one range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from exhibit.rag.protocols import Keys

_RANGE = 4
"""A range costs about as much to check as so many single keys."""
_WEIGHT = 4096
"""Of one condition, in single keys; more keys are asked for in several."""


def conditions(field: str, wanted: Keys) -> Iterator[str]:
    """Yield conditions that together hold for just these keys (in order, each once), none for two of them."""
    if not len(wanted):
        return
    breaks = np.flatnonzero(np.diff(wanted) != 1) + 1
    singles: list[int] = []
    ranges: list[str] = []
    for run in np.split(wanted, breaks):
        if len(run) > _RANGE:
            ranges.append(f"({field} >= {run[0]} and {field} <= {run[-1]})")
        else:
            singles += run.tolist()
        if len(ranges) * _RANGE + len(singles) >= _WEIGHT:
            yield _joined(field, ranges, singles)
            ranges, singles = [], []
    if ranges or singles:
        yield _joined(field, ranges, singles)


def _joined(field: str, ranges: list[str], singles: list[int]) -> str:
    """Return one condition, in pairs of pairs: a server refuses a chain of 50, since each link lies within the next."""
    parts = [*ranges, *([f"{field} in {singles}"] if singles else [])]
    while len(parts) > 2:
        parts = [_either(parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return " or ".join(parts)


def _either(parts: list[str]) -> str:
    return f"({' or '.join(parts)})" if len(parts) > 1 else parts[0]
