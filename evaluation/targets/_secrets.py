"""Secrets kept out of what a server says: its words go into errors, results and reports."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from exhibit.evidence.markup import pieces
from exhibit.schemas.secrets import HIDDEN, names_a_secret, scrubbed

_SHORTEST = 4
"""A shorter value is a word like any other: taking it out would spoil the message and hide nothing."""
_LONGEST = 300
"""Characters of a server's words that an error quotes."""
_TELLING = ("message", "detail", "error", "msg", "reason", "title", "description")


class Secrets:
    """Values that nobody may read."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Take the values; of `Bearer abc` the second word is one, too."""
        parts = {part for value in values for part in (value, *value.split())}
        known = {part for part in parts if len(part) >= _SHORTEST and part.lower() not in ("bearer", "basic")}
        # the longest first, so that none is left in pieces
        self._values = sorted(known, key=lambda value: (-len(value), value))

    def strip(self, text: str) -> str:
        """Return a text without them, and without what looks like a key."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return scrubbed(text)

    def words(self, data: bytes | str) -> str:
        """Return what a server says in a body, short and on one line, without secrets."""
        text = data if isinstance(data, str) else data[: 1 << 16].decode("utf-8", "replace")
        # secrets first: what is cut in two is not known again
        text = self.strip(_without_tags(_message(text)))
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _without_tags(text: str) -> str:
    """Return the words of a page, or a text that is no page as it is."""
    if "<" not in text:
        return html.unescape(text)
    words, inside = [], ""
    for kind, value in pieces(text):
        if kind == "text" and inside not in ("script", "style"):
            words.append(value)
        inside = value if kind == "start" else "" if kind == "end" else inside
    return " ".join(words)


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


def plain_address(url: str) -> str:
    """Return an address without its user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0])


def _hidden_values(told: Any) -> list[str]:
    if isinstance(told, Mapping):
        own = [v for k, v in told.items() if names_a_secret(str(k)) and isinstance(v, str)]
        return own + [secret for v in told.values() for secret in _hidden_values(v)]
    return [secret for one in told for secret in _hidden_values(one)] if isinstance(told, list) else []


def _message(text: str) -> str:
    """Return the message inside an error that is JSON, else the text itself."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return text
    while isinstance(told, Mapping | list) and told:
        if isinstance(told, list):
            told = told[0]
            continue
        inner = next((told[key] for key in _TELLING if told.get(key)), None)
        if inner is None:
            break
        told = inner
    return told if isinstance(told, str) else text
