"""Access control: the server accepts only requests with its token, for its own host and from its own pages."""

import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",  # the address contains the token
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""The headers of every response."""


def make_token() -> str:
    """Return a random token that cannot be guessed."""
    return secrets.token_urlsafe(24)


class Guard:
    """Middleware that refuses a request without the token, for another host, or from a page of another site.

    The token is the first part of every path; links within the pages are relative and keep it. The check of the
    Host header prevents DNS rebinding, and the check of the Origin header stops forms on other sites.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: Iterable[str]) -> None:
        """Store the application, its token, and the values of the Host header that are accepted."""
        self._app, self._token = app, token
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a permitted request to the application, and answer any other request with an error status.

        The application gets `/TOKEN`, the secret first part of every address, as its root path.
        """
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no websockets

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                extra = [(name, value) for name, value in _HEADERS.items() if name not in known]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        fault = self._find_fault(scope)
        if fault:
            await PlainTextResponse(fault[1], status_code=fault[0])(scope, receive, send_guarded)
            return
        prefix = f"/{self._token}"
        inside = {**scope, "root_path": prefix, "path": scope["path"]}
        await self._app(inside, receive, send_guarded)

    def _find_fault(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the text of a refusal; None where the request may pass."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "this server has another address\n"
        token = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return 404, "open the address that `exhibit view` printed\n"
        if scope["method"] not in ("GET", "HEAD") and headers.get("origin") not in self._origins:
            return 403, "only pages of this server may change something\n"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "another page asks\n"
        return None
