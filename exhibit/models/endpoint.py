"""Sends requests to a server with OpenAI's protocol, or Azure's; no error shows the key."""

import json
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from exhibit.schemas.errors import ServiceError
from exhibit.storage.http import HttpClient
from exhibit.storage.http_policy import STREAMED, Deadline, HttpError, LateError, Secrets, read_events

_OPENAI = "https://api.openai.com/v1"
_REFUSED = (401, 403)  # HTTP statuses whose replies quote the key
_CONFLICT = 409  # two concurrent requests: a retry succeeds


class Endpoint:
    """A client for a server with the OpenAI API, or for Azure OpenAI.

    The address and the key are read from environment variables such as OPENAI_BASE_URL and OPENAI_API_KEY.
    """

    def __init__(self, *, timeout: float, connections: int, azure: bool = False) -> None:
        """Read the environment: OPENAI_BASE_URL and OPENAI_API_KEY, or the variables of Azure's documentation."""
        place = _find_azure() if azure else _find_compatible()
        self._key_name = "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY"
        self.address = str(place.base.copy_with(username=None, password=None, query=None))
        self._version = place.version
        self._timeout = timeout
        secrets = [*place.headers.values(), place.base.password]
        self._client = HttpClient(
            place.headers, connections=connections, secrets=Secrets(value for value in secrets if value)
        )

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Send JSON and return the JSON object of the reply, or raise HttpError."""
        with self._explain_errors():
            deadline = Deadline(self._timeout)
            with self._client.send("POST", self._make_url(path, body), body, deadline=deadline) as response:
                response.check()
                data = response.read()
            try:
                reply = json.loads(data)
            except (ValueError, RecursionError):
                reply = None
            if not isinstance(reply, dict):
                what = "nothing" if not data.strip() else "something that is not JSON"
                raise HttpError(f"the server sent {what}; check OPENAI_BASE_URL", transient=True)
            return reply

    def stream(self, body: Mapping[str, object], heard: Callable[[str], object]) -> dict[str, Any]:
        """Request a chat completion as a stream; return the whole reply in the format that `post` returns.

        Each fragment of text is passed to `heard` as it arrives.
        """
        text, reason, usage = "", None, None
        with self._explain_errors():
            asked, deadline = {**body, "stream": True}, Deadline(self._timeout)
            with self._client.send(
                "POST", self._make_url("chat/completions", body), asked, deadline=deadline
            ) as response:
                response.check()
                if response.kind not in STREAMED:
                    raise HttpError(
                        f"the reply is not a stream: {self._client.secrets.words(response.read())}", transient=True
                    )
                for event in read_events(response.lines()):
                    choice = _read_choice(event.data)
                    usage = event.data.get("usage") or usage if isinstance(event.data, dict) else usage
                    reason = choice.get("finish_reason") or reason
                    delta = choice.get("delta")
                    piece = delta.get("content") if isinstance(delta, dict) else None
                    if isinstance(piece, str):
                        text += piece
                        heard(self.scrub(piece))
            if reason is None:
                raise HttpError(f"no reply: the stream ended after {len(text)} characters", transient=True)
        return {"choices": [{"message": {"content": text}, "finish_reason": reason}], "usage": usage}

    def scrub(self, text: str) -> str:
        """Return a text from the server without the API key, also if asterisks mask a part of the key."""
        return self._client.secrets.strip(text)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _make_url(self, path: str, body: Mapping[str, object]) -> str:
        if not self._version:
            return f"{self.address}{path}"
        model = quote(str(body.get("model")), safe="")
        return f"{self.address}openai/deployments/{model}/{path}?api-version={quote(self._version)}"

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Add to every error the server's address and whether the error is transient."""
        try:
            yield
        except HttpError as error:
            words = str(error)
            if error.status in _REFUSED:
                words = f"{words.partition(':')[0]}; check {self._key_name}"
            elif error.status is None and not words.startswith(("no reply", "the server sent")):
                words = (
                    f"no reply within {self._timeout:g} s" if isinstance(error, LateError) else f"no reply ({words})"
                )
                error.transient = True
            # a 429 for lack of credit is not transient: it lasts until the user pays
            error.transient = error.transient and _read_error(error.body).get("code") != "insufficient_quota"
            error.transient = error.transient or error.status == _CONFLICT
            error.args = (f"{self.address}: {words}",)
            raise


def find_refused_parameter(error: HttpError) -> str:
    """Return the parameter that a server rejects; empty if its error names none."""
    return str(_read_error(error.body).get("param") or "") if error.status == 400 else ""


def _read_choice(event: Any) -> dict[str, Any]:
    """Return the first choice of a stream's event; an empty dict if there is none."""
    if event is not None and not isinstance(event, dict):
        raise HttpError("an event of the stream is not an object")
    choices = event.get("choices") if event else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _read_error(data: bytes) -> dict[str, Any]:
    try:
        error = json.loads(data)["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    return error if isinstance(error, dict) else {}


# ---------------------------------------------------------------- the server's address


class _Place(NamedTuple):
    base: httpx.URL
    headers: dict[str, str]
    version: str = ""


def _find_compatible() -> _Place:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    base = _parse_address(os.environ.get("OPENAI_BASE_URL") or _OPENAI)
    if base is None:
        raise ServiceError("OPENAI_BASE_URL is not an address; it looks like http://localhost:8000/v1")
    if not key and base.host == httpx.URL(_OPENAI).host:
        raise ServiceError(f"{base.host} needs OPENAI_API_KEY; or set OPENAI_BASE_URL to a server that needs none")
    if base.username:
        return _Place(base, {"Authorization": f"Basic {b64encode(base.userinfo).decode('ascii')}"})
    return _Place(base, {"Authorization": f"Bearer {key}"} if key else {})


def _find_azure() -> _Place:
    names = ("AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
    endpoint, version, key, token = (os.environ.get(name, "").strip() for name in names)
    base = _parse_address(endpoint)
    if base is None:
        raise ServiceError("azure needs AZURE_OPENAI_ENDPOINT, which looks like https://NAME.openai.azure.com")
    if not version:
        raise ServiceError("azure needs OPENAI_API_VERSION, such as 2024-10-21")
    if not (key or token):
        raise ServiceError("azure needs AZURE_OPENAI_API_KEY, or AZURE_OPENAI_AD_TOKEN")
    return _Place(base, {"api-key": key} if key else {"Authorization": f"Bearer {token}"}, version)


def _parse_address(text: str) -> httpx.URL | None:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return None
    if url.scheme not in ("http", "https") or not url.host:
        return None
    return url.copy_with(path=url.path.rstrip("/") + "/")


_MILLION = 1_000_000  # tokens per price
_ROUNDING = 1e-9  # in money: the sum of many small rounding errors stays below it


class CapError(ServiceError):
    """The cap on requests or on cost is reached."""


@dataclass(frozen=True)
class Prices:
    """The prices of a million input tokens and of a million output tokens, in one currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def compute_cost(self, tokens_in: int, tokens_out: int) -> float:
        """Return the cost of a request."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / _MILLION


@dataclass
class Receipt:
    """The cost that one request takes from the budget: the highest possible cost until the actual cost is known."""

    cost: float


class Budget:
    """A budget that all threads of a run share: it counts requests and their cost."""

    def __init__(self, *, max_requests: int | None, max_cost: float | None, prices: Prices) -> None:
        self.prices = prices
        self.requests = 0
        self.spent = 0.0
        self._flying: list[float] = []
        self._max_requests = max_requests
        self._max_cost = max_cost
        self._changed = threading.Condition()

    @contextmanager
    def reserve_request(self, *, tokens_in: int, tokens_out: int) -> Iterator[Receipt]:
        """Reserve the greatest possible cost of a request while it runs, then record its actual cost.

        Raise CapError if the cap on requests or on cost leaves no room for the request.
        """
        worst = self.prices.compute_cost(tokens_in, tokens_out)
        receipt = Receipt(worst)
        with self._changed:
            self._admit(worst)
            self.requests += 1
            self._flying.append(worst)
        try:
            yield receipt
        finally:
            with self._changed:
                self._flying.remove(worst)
                self.spent += receipt.cost
                self._changed.notify_all()

    def _admit(self, worst: float) -> None:
        # requests in flight may cost less than their worst case: wait for them before giving up
        self._changed.wait_for(lambda: not self._flying or self._is_within(worst))
        if self._max_requests is not None and self.requests >= self._max_requests:
            raise CapError(f"the limit of {self._max_requests} requests is reached; raise max_requests to go on")
        if not self._is_within(worst):
            raise CapError(
                f"the limit max_cost = {self._max_cost:g} is reached: {self.spent:.6f} is spent, and the next request"
                f" may cost {worst:.6f}; raise max_cost to go on"
            )

    def _is_within(self, worst: float) -> bool:
        return self._max_cost is None or self.spent + sum(self._flying) + worst <= self._max_cost + _ROUNDING
