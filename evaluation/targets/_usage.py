"""What a reply cost, as servers tell it: tokens in, tokens out, money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from exhibit.evaluation.targets._numbers import read_number

_WHERE = ("usage", "usage_metadata", "token_usage", "llm_output", "meta", "metadata")
_NAMES = {
    "tokens_in": ("prompt_tokens", "input_tokens", "tokens_in", "promptTokens", "prompt_token_count"),
    "tokens_out": ("completion_tokens", "output_tokens", "tokens_out", "completionTokens", "completion_token_count"),
    "cost": ("cost", "total_cost", "cost_usd"),
}


def read_usage(reply: Any) -> dict[str, float]:
    """Return the tokens and the cost of a reply under our names; what is not told, or is 0 by default, is left out."""
    return _read(_places(reply))


def _places(reply: Any, depth: int = 3) -> list[Mapping[str, Any]]:
    """Return the objects that may tell it, the outermost first."""
    if not isinstance(reply, Mapping) or not depth:
        return []
    inside = [reply[key] for key in _WHERE if isinstance(reply.get(key), Mapping)]
    replies = reply.get("replies") or reply.get("choices")
    first = [one for one in replies if isinstance(one, Mapping)][:1] if isinstance(replies, list) else []
    deeper = [place for one in [*inside, *first] for place in _places(one, depth - 1)]
    return [*inside, *deeper]


def _read(places: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    usage: dict[str, float] = {}
    for place in places:
        for name, keys in _NAMES.items():
            number = next((read_number(place[key]) for key in keys if place.get(key)), None)
            if number is not None and number > 0:
                usage.setdefault(name, number)
    return usage
