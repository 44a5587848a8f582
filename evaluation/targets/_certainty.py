"""How sure a server is of its answer, where its reply tells that as a share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exhibit.evaluation.targets._numbers import read_number

_NAMES = ("confidence", "confidence_score")
_INSIDE = ("message", "context", "metadata", "meta", "result", "output", "data")
"""What a reply may be wrapped in; never the passages, whose scores are another thing."""


def read_confidence(reply: Any) -> float | None:
    """Return a confidence from 0 to 1 that a reply or one of its events tells; None where it tells none."""
    for event in reply if isinstance(reply, list) else [reply]:
        for place in _places(event):
            number = next((number for name in _NAMES if (number := read_number(place.get(name))) is not None), None)
            if number is not None and 0 <= number <= 1:
                return number
    return None


def _places(reply: Any, depth: int = 2) -> Iterator[Mapping[str, Any]]:
    if isinstance(reply, Mapping):
        yield reply
        for name in _INSIDE if depth else ():
            yield from _places(reply.get(name), depth - 1)
