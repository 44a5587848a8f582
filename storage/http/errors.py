"""Why an exchange over HTTP failed, in words that hold no secret."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from exhibit.schemas.errors import ServiceError
from exhibit.schemas.secrets import HIDDEN, scrubbed

_SHORTEST = 4
"""A shorter value is a word like any other: hiding it would spoil the message and protect nothing."""
_LONGEST = 300
"""Characters of a server's words that an error quotes."""
_MESSAGES = ("message", "detail", "error", "msg", "reason", "title", "description")
_CODE = re.compile(r"<(?:script|style)\b[^<>]*>", re.IGNORECASE)
_CODE_ENDS = re.compile(r"</(?:script|style)[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


class HttpError(ServiceError):
    """An exchange that brought no usable reply."""

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        wait: float = 0.0,
        status: int | None = None,
        body: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.transient = transient
        """Whether the same request may succeed when it is sent again."""
        self.wait = wait
        """Seconds that the server asks to be left alone."""
        self.status = status
        self.body = body
        """What the server sent with an error status, as it is; it may hold secrets."""
        self.tries = 1


class UnreachableError(HttpError):
    """No connection to the server."""


class Secrets:
    """Values that nobody may read: they are taken out of whatever a server says."""

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


def plain_address(url: str) -> str:
    """Return an address without its user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0])


def _without_tags(text: str) -> str:
    """Return the words of a page, or a text that is no page as it is."""
    if "<" in text:
        first, *rest = _CODE.split(text)
        text = _TAG.sub(" ", " ".join([first, *(_CODE_ENDS.split(part, maxsplit=1)[-1] for part in rest)]))
    return html.unescape(text)


def _message(text: str) -> str:
    """Return the message inside an error that is JSON, else the text itself."""
    try:
        told: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    while isinstance(told, Mapping | list) and told:
        inner = told[0] if isinstance(told, list) else next((told[key] for key in _MESSAGES if told.get(key)), None)
        if inner is None:
            break
        told = inner
    return told if isinstance(told, str) else text
