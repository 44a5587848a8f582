"""One exchange with an OpenAI-compatible server or with Azure: a reply, or a fault that says whether to try again.

The `openai` package makes the requests and reads the streams. It is told not to retry, which would pass a cap on
requests unseen, and is given a client whose replies end: it has no limit on the time or the size of a whole one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
import openai

from exhibit.schemas.errors import ServiceError
from exhibit.schemas.secrets import scrubbed
from exhibit.storage.deadline import with_deadline
from exhibit.storage.waiting import seconds_asked
from exhibit.storage.wire import ACCEPT, BodyError, body_parts

_OPENAI = "https://api.openai.com/v1"
_LARGEST = 16 << 20  # bytes of a reply: an answer takes some thousand
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

    def __init__(self, *, timeout: float, connections: int, azure: bool = False) -> None:
        """Read the environment: OPENAI_BASE_URL and OPENAI_API_KEY, or what Azure's own documentation names."""
        place = _azure() if azure else _compatible()
        self._key_name = "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY"
        self.address = str(place.base.copy_with(username=None, password=None, query=None))
        self._secrets = [secret for secret in (place.key, place.base.password) if secret]
        self._timeout = timeout
        # a password in the address would be logged with it
        user = (place.base.username, place.base.password) if place.base.username else None
        client = _Client(
            seconds=timeout,
            limits=httpx.Limits(max_connections=connections),
            auth=user,
            bearer=place.bearer and not user,
        )
        http = with_deadline(client, seconds=timeout)
        common: dict[str, Any] = {"max_retries": 0, "timeout": timeout, "http_client": http}
        if azure:
            self._client: openai.OpenAI = openai.AzureOpenAI(
                azure_endpoint=self.address, api_version=place.version, **place.credential, **common
            )
        else:
            self._client = openai.OpenAI(base_url=self.address, api_key=place.key or "none", **common)

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Send JSON and return the JSON object that comes back, or raise NoReplyError."""
        with self._faults():
            data = self._client.post(f"/{path}", body=_sendable(body), cast_to=httpx.Response).content
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            what = "nothing" if not data.strip() else "something that is not JSON"
            raise NoReplyError(f"{self.address}: the server sent {what}; is OPENAI_BASE_URL right?", passing=True)
        return reply

    def stream(self, body: Mapping[str, object], heard: Callable[[str], object]) -> dict[str, Any]:
        """Ask for a chat completion in pieces, hand on each as it comes, and return the whole as `post` does."""
        text, reason, usage = "", None, None
        with self._faults():
            asked: Any = {**_sendable(body), "stream": True}
            for chunk in self._client.chat.completions.create(**asked):
                if not isinstance(chunk, openai.BaseModel):  # the package hands on whatever JSON an event is
                    raise ValueError("an event of the stream is not an object")
                told = chunk.to_dict(warnings=False)
                usage = told.get("usage") or usage
                choices = told.get("choices")
                choice = choices[0] if isinstance(choices, list) and choices else None
                if isinstance(choice, dict):
                    delta = choice.get("delta")
                    piece = delta.get("content") if isinstance(delta, dict) else None
                    reason = choice.get("finish_reason") or reason
                    if isinstance(piece, str):
                        text += piece
                        heard(self.scrub(piece))
        if reason is None:
            raise NoReplyError(f"{self.address}: the reply broke off after {len(text)} characters", passing=True)
        return {"choices": [{"message": {"content": text}, "finish_reason": reason}], "usage": usage}

    def scrub(self, text: str) -> str:
        """Return a text that came from outside without the key, whole or half hidden by asterisks."""
        return scrubbed(text, *self._secrets) if self._secrets else text

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn what the package raises into NoReplyError."""
        try:
            yield
        except (openai.APITimeoutError, httpx.TimeoutException):
            raise NoReplyError(f"{self.address}: no reply within {self._timeout:g} s", passing=True) from None
        except openai.APIStatusError as error:
            raise self._refusal(error.status_code, error.response.headers, error.response.content) from None
        except (
            openai.OpenAIError,
            httpx.HTTPError,
            httpx.InvalidURL,
            httpx.StreamError,
            ValueError,
            RecursionError,
        ) as error:
            reason = self.scrub(str(error.__cause__ or error)) or type(error.__cause__ or error).__name__
            raise NoReplyError(f"{self.address}: no reply ({reason[:_SAID]})", passing=True) from None

    def _refusal(self, status: int, headers: Mapping[str, str], data: bytes) -> NoReplyError:
        phrase = f"HTTP {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
        if status in (401, 403):  # such replies quote the key
            return NoReplyError(f"{self.address}: {phrase}; check {self._key_name}", passing=False, status=status)
        said, code, parameter = _error_in(data)
        message = f"{self.address}: {phrase}" + (f": {self.scrub(said)[:_SAID]}" if said else "")
        # this 429 lasts until somebody pays
        passing = (status in _PASSING or status >= 500) and code != "insufficient_quota"
        wait = seconds_asked(headers.get("Retry-After", "")) if passing else 0.0
        return NoReplyError(
            message, passing=passing, status=status, wait=wait, parameter=parameter if status == 400 else ""
        )


# ---------------------------------------------------------------- where the server is


class _Place(NamedTuple):
    base: httpx.URL
    key: str
    bearer: bool
    """Whether the key goes into the header Authorization."""
    version: str = ""
    credential: Mapping[str, Any] = {}


def _compatible() -> _Place:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    base = httpx.URL((os.environ.get("OPENAI_BASE_URL") or _OPENAI).rstrip("/") + "/")
    if base.scheme not in ("http", "https") or not base.host:
        raise ServiceError("OPENAI_BASE_URL is not an address; it looks like http://localhost:8000/v1")
    if not key and base.host == httpx.URL(_OPENAI).host:
        raise ServiceError(f"{base.host} needs OPENAI_API_KEY; or set OPENAI_BASE_URL to a server that needs none")
    return _Place(base, key, bool(key))


def _azure() -> _Place:
    names = ("AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
    endpoint, version, key, token = (os.environ.get(name, "").strip() for name in names)
    base = httpx.URL(endpoint.rstrip("/") + "/")
    if base.scheme not in ("http", "https") or not base.host:
        raise ServiceError("azure needs AZURE_OPENAI_ENDPOINT, which looks like https://NAME.openai.azure.com")
    if not version:
        raise ServiceError("azure needs OPENAI_API_VERSION, such as 2024-10-21")
    if not (key or token):
        raise ServiceError("azure needs AZURE_OPENAI_API_KEY, or AZURE_OPENAI_AD_TOKEN")
    credential = {"api_key": key} if key else {"azure_ad_token": token}
    return _Place(base, key or token, not key, version, credential)


# ---------------------------------------------------------------- bytes


class _Client(httpx.Client):
    """A client whose replies end: by a deadline, and within a size, whatever their status."""

    def __init__(self, *, seconds: float, bearer: bool, **options: Any) -> None:
        """Without `bearer` the header Authorization is left out, which the package makes in any case."""
        super().__init__(timeout=seconds, headers=ACCEPT, follow_redirects=False, **options)
        self._seconds, self._bearer = seconds, bearer

    def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request; the body is decoded as it comes, or read to its end."""
        for name in [name for name in request.headers if name.startswith("x-stainless-")]:
            del request.headers[name]  # which system and which Python this is, is nobody's business
        if not self._bearer:
            request.headers.pop("Authorization", None)
        deadline = time.monotonic() + self._seconds
        response = super().send(request, stream=True, **options)
        body = _Body(response, deadline)
        if not stream:
            try:
                return _decoded(response, content=b"".join(body))
            finally:
                body.close()
        return _decoded(response, stream=body)


class _Body(httpx.SyncByteStream):
    """A reply's body, decoded, within its limits."""

    def __init__(self, response: httpx.Response, deadline: float) -> None:
        self._response, self._deadline = response, deadline

    def __iter__(self) -> Iterator[bytes]:
        try:
            # httpx's own limit is on the silence between two parts: a server can drip for ever
            yield from body_parts(self._response, most=_LARGEST, deadline=self._deadline)
        except TimeoutError as error:
            raise httpx.ReadTimeout("the reply does not end", request=self._response.request) from error
        except BodyError as error:
            raise httpx.ReadError(str(error), request=self._response.request) from error

    def close(self) -> None:
        self._response.close()


def _decoded(response: httpx.Response, **body: Any) -> httpx.Response:
    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _OF_THE_BYTES]
    return httpx.Response(response.status_code, headers=kept, request=response.request, **body)


_OF_THE_BYTES = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers about the bytes that were sent, which are decoded by then."""


def _sendable(value: Any) -> Any:
    """Return JSON without half surrogate pairs, which a damaged PDF holds and no UTF-8 can."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {name: _sendable(item) for name, item in value.items()}
    return [_sendable(item) for item in value] if isinstance(value, list) else value


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
