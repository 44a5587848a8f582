"""Requests made from a template: the question, what was said before it, and the settings of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exhibit.evaluation.cases import Case

CHAT: Mapping[str, Any] = {
    "messages": ["{history}", {"content": "{question}", "role": "user"}],
    "stream": False,
    "context": "{parameters}",
}
"""How chat servers are asked."""


def fill(template: Any, case: Case, parameters: Mapping[str, Any]) -> Any:
    """Return a request; `"{history}"` in a list becomes messages, inside a text lines of `role: words`."""
    if isinstance(template, str):
        return _text(template, case, parameters)
    if isinstance(template, Mapping):
        return {key: fill(value, case, parameters) for key, value in template.items()}
    if isinstance(template, list):
        filled: list[Any] = []
        for value in template:
            filled += messages(case) if value == "{history}" else [fill(value, case, parameters)]
        return filled
    return template


def messages(case: Case) -> list[dict[str, str]]:
    """Return what was said before a question as chat servers take it."""
    return [{"content": turn.content, "role": turn.role} for turn in case.history]


def uses_history(template: Any) -> bool:
    """Return whether a template has a place for what was said before, or for the session that it was said in."""
    if isinstance(template, str):
        return "{history}" in template or "{session}" in template
    if isinstance(template, Mapping):
        return any(map(uses_history, template.values()))
    return any(map(uses_history, template)) if isinstance(template, list) else False


def _text(template: str, case: Case, parameters: Mapping[str, Any]) -> Any:
    if template == "{parameters}":
        return dict(parameters)
    if template == "{history}":
        return messages(case)
    said = "\n".join(f"{turn.role}: {turn.content}" for turn in case.history)
    # the question last: its own words must not be filled in again
    text = template.replace("{session}", case.session or str(case.id)).replace("{history}", said)
    return text.replace("{question}", case.question)
