"""Secrets in what a server is told: hidden in a run's settings, and in errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from exhibit.schemas.secrets import HIDDEN, names_a_secret
from exhibit.storage.http import plain_address


def secrets_in(url: str, told: Any = None) -> list[str]:
    """Return the secrets of an address (its password, its query) and of settings with names that say so."""
    parts = urlsplit(url)
    secrets = [part for part in (parts.username, parts.password) if part]
    secrets += [value for _, value in parse_qsl(parts.query)]
    return [*secrets, *_hidden_values(told)]


def hide(value: Any) -> Any:
    """Return settings with secrets hidden by their names, and addresses without password and query."""
    if isinstance(value, Mapping):
        # a header is given by the name of the variable that holds its value
        named = {"header": value["header"]} if "header" in value else {}
        hidden = {k: HIDDEN if names_a_secret(str(k)) and isinstance(v, str) else hide(v) for k, v in value.items()}
        return {**hidden, **named}
    if isinstance(value, list | tuple):
        return [hide(one) for one in value]
    return plain_address(value) if isinstance(value, str) and re.match(r"https?://", value) else value


def _hidden_values(told: Any) -> list[str]:
    if isinstance(told, Mapping):
        own = [v for k, v in told.items() if names_a_secret(str(k)) and isinstance(v, str)]
        return own + [secret for v in told.values() for secret in _hidden_values(v)]
    return [secret for one in told for secret in _hidden_values(one)] if isinstance(told, list) else []
