"""Fill the placeholders in requests, such as `{question}`, `{history}` and `{collection}`."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_PLACE = re.compile(r"\{(\w+)\}")
_SPREAD = re.compile(r"\.{3,}")
"""A template key whose value's fields are merged into the object itself."""


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders replaced by values.

    A text that is only a placeholder becomes the value itself, of any type; a field whose value is None is left
    out. If a placeholder in a list stands for a list, its items are inserted. A value that is a function is
    called only if it is used.
    """
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        if whole and whole[1] in values:
            return _get_value(values, whole[1])
        return _PLACE.sub(lambda place: _format_value(values, place), template)
    if isinstance(template, Mapping):
        filled: dict[str, Any] = {}
        for key, value in template.items():
            held = fill(value, values)
            if _SPREAD.fullmatch(key):
                filled |= held if isinstance(held, Mapping) else {}
            elif held is not None and (held != {} or value == {}):
                filled[key] = held
        return filled
    if isinstance(template, list):
        items: list[Any] = []
        for value in template:
            held = fill(value, values)
            items += held if isinstance(held, list) and isinstance(value, str) else [held]
        return items
    return template


def fill_path(template: str, values: Mapping[str, Any]) -> str:
    """Return a request path with its placeholders replaced by percent-encoded values."""
    return _PLACE.sub(lambda place: quote(_format_value(values, place), safe=""), template)


def uses_history(template: Any) -> bool:
    """Return whether a template has a placeholder for the earlier turns of a conversation or for its session."""
    if isinstance(template, str):
        return "{history}" in template or "{session}" in template or "{thread}" in template
    parts = template.values() if isinstance(template, Mapping) else template if isinstance(template, list) else ()
    return any(map(uses_history, parts))


def _get_value(values: Mapping[str, Any], name: str) -> Any:
    value = values[name]
    return value() if callable(value) else value


def _format_value(values: Mapping[str, Any], place: re.Match[str]) -> str:
    if place[1] not in values:
        return place[0]
    value = _get_value(values, place[1])
    if isinstance(value, list):  # the earlier turns as text
        return "\n".join(f"{turn.get('role', turn.get('type'))}: {turn['content']}" for turn in value)
    return "" if value is None else str(value)
