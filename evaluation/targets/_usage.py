"""Numbers in a reply: what it cost, and how sure the system is of its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

_WHERE = ("usage", "usage_metadata", "token_usage", "llm_output", "meta", "metadata")
_NAMES = {
    "tokens_in": ("prompt_tokens", "input_tokens", "tokens_in", "promptTokens", "prompt_token_count"),
    "tokens_out": ("completion_tokens", "output_tokens", "tokens_out", "completionTokens", "completion_token_count"),
    "cost": ("cost", "total_cost", "cost_usd"),
}
_CONFIDENCE = ("confidence", "confidence_score")
_WRAPPERS = ("message", "context", "metadata", "meta", "result", "output", "data")
"""What a reply may be wrapped in; never the passages, whose scores are another thing."""


def read_number(value: Any) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_count(value: Any) -> int | None:
    """Return a whole number from 0, given as one or in digits; None for anything else."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def read_usage(reply: Any) -> dict[str, float]:
    """Return the tokens and the cost of a reply under our names; what is not told, or is 0 by default, is left out."""
    usage: dict[str, float] = {}
    for place in _places(reply):
        for name, keys in _NAMES.items():
            number = next((read_number(place[key]) for key in keys if place.get(key)), None)
            if number is not None and number > 0:
                usage.setdefault(name, number)
    return usage


def _places(reply: Any, depth: int = 3) -> list[Mapping[str, Any]]:
    """Return the objects that may tell it, the outermost first."""
    if not isinstance(reply, Mapping) or not depth:
        return []
    inside = [reply[key] for key in _WHERE if isinstance(reply.get(key), Mapping)]
    replies = reply.get("replies") or reply.get("choices")
    first = [one for one in replies if isinstance(one, Mapping)][:1] if isinstance(replies, list) else []
    answer = [reply["answer"]] if isinstance(reply.get("answer"), Mapping) else []
    return [*inside, *(place for one in [*inside, *first, *answer] for place in _places(one, depth - 1))]


def read_confidence(reply: Any) -> float | None:
    """Return a confidence from 0 to 1 that a reply or one of its events tells; None where it tells none."""
    for event in reply if isinstance(reply, list) else [reply]:
        for place in _wrapped(event):
            number = next(
                (number for name in _CONFIDENCE if (number := read_number(place.get(name))) is not None), None
            )
            if number is not None and 0 <= number <= 1:
                return number
    return None


def _wrapped(reply: Any, depth: int = 2) -> Iterator[Mapping[str, Any]]:
    if isinstance(reply, Mapping):
        yield reply
        for name in _WRAPPERS if depth else ():
            yield from _wrapped(reply.get(name), depth - 1)
