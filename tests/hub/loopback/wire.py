"""Data types of the HTTP layer: recorded requests, calls to routes, replies, and the table of routes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

if TYPE_CHECKING:
    from .hub import LoopbackHub

REPO = r"(?P<repo>[^/]+/[^/]+)"
REV = r"(?P<rev>refs/(?:pr|convert|heads|tags)/[^/]+|[^/]+)"
"""One segment as the clients send it (`refs%2Fpr%2F1`), or a full ref with its slashes."""


@dataclass
class Request:
    """A recorded request; `status` is that of its reply, or 0 if there is none or it was cut off."""

    method: str
    path: str
    """Percent-encoded, without the query; with scheme and host where the client took this hub for a proxy."""
    query: dict[str, list[str]]
    headers: Message
    """Looked up without regard to case; Authorization is kept, so that a test can see who got the token."""
    size: int = 0
    """Bytes of the body that were read."""
    status: int = 0

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.status}"


@dataclass
class Reply:
    """The reply of a route."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class HubError(Exception):
    """An error reply that ends a route; its message is in the body and in two headers that the client reads."""

    def __init__(self, status: int, message: str, *, code: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, dict(headers or {})

    def reply(self) -> Reply:
        """Return the error as a reply."""
        headers = {"X-Error-Message": re.sub(r"[^\x20-\x7e]", "?", self.message), **self.headers}
        if self.code:
            headers["X-Error-Code"] = self.code
        return give({"error": self.message}, status=self.status, headers=headers)


def give(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a reply of JSON."""
    body = json.dumps(value).encode()
    return Reply(status, body, {"Content-Type": "application/json; charset=utf-8", **(headers or {})})


@dataclass
class Call:
    """A request as a route receives it: the Hub, the body, and the decoded parts of the path."""

    hub: LoopbackHub
    request: Request
    body: bytes = b""
    parts: dict[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """Return the body parsed as JSON; refuse invalid JSON."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise HubError(400, f"Malformed JSON: {error}") from None

    def form(self) -> dict[str, Any]:
        """Return the fields of a body that is a form or, as the Hub also accepts, JSON."""
        if "json" in (self.request.headers["Content-Type"] or ""):
            return dict(self.json())
        return parse_qs(self.body.decode(), keep_blank_values=True)

    def flag(self, name: str) -> bool:
        """Return whether a query parameter is true."""
        return self.request.query.get(name, [""])[0].lower() in ("1", "true")


Route = Callable[[Call], Reply]
ROUTES: list[tuple[str, re.Pattern[str], Route]] = []


def route(method: str, path: str) -> Callable[[Route], Route]:
    """Register a function for a method and a percent-encoded path, given as a regular expression."""

    def register(function: Route) -> Route:
        ROUTES.append((method, re.compile(path), function))
        return function

    return register


def find_route(call: Call) -> Route | None:
    """Return the route of a call, or None, and fill in the call's path parts.

    Each part is decoded once, after the path is split.
    """
    method = "GET" if call.request.method == "HEAD" else call.request.method
    for wanted, path, function in ROUTES:
        found = path.fullmatch(call.request.path) if wanted == method else None
        if found:
            call.parts = {name: unquote(part or "") for name, part in found.groupdict().items()}
            return function
    return None
