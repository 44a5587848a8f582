"""One exchange with an OpenAI-compatible server: a reply, or a fault that says whether to try again.

Plain httpx, not the `openai` package: that one retries by itself, which would pass a cap on requests unseen, has no
limit on the time of a whole reply, and takes a second to import.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import httpx

from schemas.errors import ServiceError
from schemas.secrets import scrubbed
from storage.waiting import seconds_asked
from storage.wire import ACCEPT, BodyError, read_body

_OPENAI = "https://api.openai.com/v1"
_LARGEST = 16 << 20
_PASSING = frozenset({408, 409, 425, 429})
_SAID = 200
"""Characters of a server's own words that go into an error."""


class NoReplyError(Exception):
    """A request that brought no reply."""

    def __init__(self, message: str, *, passing: bool, status: int = 0, wait: float = 0.0, parameter: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.passing = passing
        """Whether it is worth trying again."""
        self.status = status
        self.wait = wait
        """Seconds that the server asked us to wait."""
        self.parameter = parameter
        """The parameter that the server does not take."""


class Endpoint:
    """A server, and the key to it, which leaves this class in no other way than in the request's header."""

    def __init__(self, *, timeout: float, connections: int) -> None:
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        base = httpx.URL((os.environ.get("OPENAI_BASE_URL") or _OPENAI).rstrip("/") + "/")
        if base.scheme not in ("http", "https") or not base.host:
            raise ServiceError("OPENAI_BASE_URL is not an address; it looks like http://localhost:8000/v1")
        if not key and base.host == httpx.URL(_OPENAI).host:
            raise ServiceError(f"{base.host} needs OPENAI_API_KEY; or set OPENAI_BASE_URL to a server that needs none")
        # a password in the address would be logged with it
        user = (base.username, base.password) if base.username else None
        self.address = str(base.copy_with(username=None, password=None, query=None))
        self._secrets = [secret for secret in (key, base.password) if secret]
        self._timeout = timeout
        self._client = httpx.Client(
            timeout=timeout,
            auth=user,
            headers={"Authorization": f"Bearer {key}"} if key and not user else {},
            limits=httpx.Limits(max_connections=connections),
        )

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Send JSON and return the JSON object that comes back, or raise NoReplyError."""
        try:
            status, headers, data = self._exchange(path, body)
        except httpx.TimeoutException:
            raise NoReplyError(f"{self.address}: no reply within {self._timeout:g} s", passing=True) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            reason = self.scrub(str(error)) or type(error).__name__
            raise NoReplyError(f"{self.address}: no reply ({reason})", passing=True) from None
        if status != 200:
            raise self._refusal(status, headers, data)
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            what = "nothing" if not data.strip() else "something that is not JSON"
            raise NoReplyError(f"{self.address}: the server sent {what}; is OPENAI_BASE_URL right?", passing=True)
        return reply

    def scrub(self, text: str) -> str:
        """Return a text that came from outside without the key, whole or half hidden by asterisks."""
        return scrubbed(text, *self._secrets) if self._secrets else text

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _exchange(self, path: str, body: Mapping[str, object]) -> tuple[int, httpx.Headers, bytes]:
        # ASCII, as a lone surrogate from a damaged PDF cannot be written in UTF-8
        content = json.dumps(body).encode("ascii")
        deadline = time.monotonic() + self._timeout
        headers = {"Content-Type": "application/json", **ACCEPT}
        with self._client.stream("POST", self.address + path, content=content, headers=headers) as response:
            try:
                # httpx's own limit is on the silence between two parts: a server can drip for ever
                data = read_body(response, most=_LARGEST, deadline=deadline)
            except TimeoutError as error:
                raise httpx.ReadTimeout("the reply does not end") from error
            except BodyError as error:
                raise httpx.ReadError(str(error)) from error
        return response.status_code, response.headers, data

    def _refusal(self, status: int, headers: httpx.Headers, data: bytes) -> NoReplyError:
        phrase = f"HTTP {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
        if status in (401, 403):  # such replies quote the key
            return NoReplyError(f"{self.address}: {phrase}; check OPENAI_API_KEY", passing=False, status=status)
        said, code, parameter = _error_in(data)
        message = f"{self.address}: {phrase}" + (f": {self.scrub(said)[:_SAID]}" if said else "")
        # this 429 lasts until somebody pays
        passing = (status in _PASSING or status >= 500) and code != "insufficient_quota"
        wait = seconds_asked(headers.get("Retry-After", "")) if passing else 0.0
        return NoReplyError(
            message, passing=passing, status=status, wait=wait, parameter=parameter if status == 400 else ""
        )


def _error_in(data: bytes) -> tuple[str, str, str]:
    """Return the message, code and parameter of an error reply, each empty when it is not there."""
    try:
        error = json.loads(data)["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", "", ""
    if not isinstance(error, dict):
        return str(error), "", ""
    message = " ".join(str(error.get("message") or "").split())
    return message, str(error.get("code") or ""), str(error.get("param") or "")
