"""Servers with OpenAI's protocol, or Azure's: chat completions and embeddings. No error shows the key.

The address and the key are in OPENAI_BASE_URL and OPENAI_API_KEY, or in the variables of Azure's documentation.
OPENAI_TIMEOUT is the timeout for one reply in seconds, by default 60.
"""

import json
import os
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np

from exhibit.engine import track
from exhibit.models.embedders import to_unit
from exhibit.models.llms import Completion, Prompt, count_tokens
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.http import LONGEST_WAIT, Deadline, HttpClient, HttpError, LateError, Retries, Secrets

_OPENAI = "https://api.openai.com/v1"
_CONCURRENCY = 8  # requests at the same time
_BACKOFF_SECONDS = 1.0  # before the first retry; each further retry waits twice as long
Wait = Callable[[float], object]
"""A function that waits for some seconds before a retry."""


# ---------------------------------------------------------------- requests


class Endpoint:
    """A client for a server with the OpenAI API, or for Azure OpenAI, at the address in the environment."""

    def __init__(self, *, timeout: float | None = None, azure: bool = False) -> None:
        base, headers, self._version = _find_azure() if azure else _find_compatible()
        self._key_name = "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY"
        self.address = str(base.copy_with(username=None, password=None, query=None))
        self._timeout = min(_read_reply_seconds(), timeout or float("inf"))
        secrets = Secrets(value for value in (*headers.values(), base.password) if value)
        self._client = HttpClient(headers, connections=_CONCURRENCY, secrets=secrets)
        self.scrub = secrets.strip
        """Removes the API key from a text of the server, also if asterisks mask a part of the key."""

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Send JSON and return the JSON object of the reply, or raise an HttpError that names the server."""
        url = f"{self.address}{path}"
        if self._version:
            model = quote(str(body.get("model")), safe="")
            url = f"{self.address}openai/deployments/{model}/{path}?api-version={quote(self._version)}"
        try:
            with self._client.send("POST", url, body, deadline=Deadline(self._timeout)) as response:
                response.check()
                data = response.read()
        except HttpError as error:
            words = str(error)
            if error.status in (401, 403):  # such replies quote the key
                words = f"{words.partition(':')[0]}; check {self._key_name}"
            elif error.status is None:
                late = isinstance(error, LateError)
                words = f"no reply within {self._timeout:g} s" if late else f"no reply ({words})"
                error.transient = True
            elif error.status == 409:  # two concurrent requests: a retry succeeds
                error.transient = True
            elif _find(_parse(error.body), "error", "code") == "insufficient_quota":
                error.transient = False  # a 429 that lasts until the user pays
            error.args = (f"{self.address}: {words}",)
            raise
        reply = _parse(data)
        if not isinstance(reply, dict):
            what = "something that is not JSON" if data.strip() else "nothing"
            raise HttpError(f"{self.address}: the server sent {what}; check OPENAI_BASE_URL", transient=True)
        return reply


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _find(value: Any, *path: str | int) -> Any:
    """Return the value at a path of keys and positions in a reply; None if the reply has none."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def _read_reply_seconds() -> float:
    seconds = os.environ.get("OPENAI_TIMEOUT", "").strip() or "60"
    try:
        return float(seconds)
    except ValueError:
        raise ToolkitError(
            f"OPENAI_TIMEOUT: {seconds!r} is not a number of seconds; set it to one, such as 60"
        ) from None


_Server = tuple[httpx.URL, dict[str, str], str]
"""The address, the headers and, for Azure, the version of the interface."""


def _find_compatible() -> _Server:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    base = _parse_address(os.environ.get("OPENAI_BASE_URL") or _OPENAI)
    if base is None:
        raise ServiceError("OPENAI_BASE_URL is not an address; it looks like http://localhost:8000/v1")
    if not key and base.host == httpx.URL(_OPENAI).host:
        raise ServiceError(f"{base.host} needs OPENAI_API_KEY; or set OPENAI_BASE_URL to a server that needs none")
    if base.username:
        return base, {"Authorization": f"Basic {b64encode(base.userinfo).decode('ascii')}"}, ""
    return base, {"Authorization": f"Bearer {key}"} if key else {}, ""


def _find_azure() -> _Server:
    names = ("AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
    endpoint, version, key, token = (os.environ.get(name, "").strip() for name in names)
    base = _parse_address(endpoint)
    if base is None:
        raise ServiceError("azure needs AZURE_OPENAI_ENDPOINT, which looks like https://NAME.openai.azure.com")
    if not version:
        raise ServiceError("azure needs OPENAI_API_VERSION, such as 2024-10-21")
    if not (key or token):
        raise ServiceError("azure needs AZURE_OPENAI_API_KEY, or AZURE_OPENAI_AD_TOKEN")
    return base, {"api-key": key} if key else {"Authorization": f"Bearer {token}"}, version


def _parse_address(text: str) -> httpx.URL | None:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return None
    valid = url.scheme in ("http", "https") and url.host
    return url.copy_with(path=url.path.rstrip("/") + "/") if valid else None


# ---------------------------------------------------------------- chat completions

_THOUGHTS = re.compile(r"(?<!\s)\s*<think>.*?</think>", re.DOTALL)  # reasoning before a reply
_RENAMED = {"max_tokens": "max_completion_tokens", "temperature": "", "response_format": ""}
"""Parameters that some models or servers reject, and the alternatives that they accept."""


def open_model(kind: str, model: str | None, options: Mapping[str, Any]) -> "OpenAI":
    model = model or os.environ.get("OPENAI_MODEL")
    if not model:
        what = "DEPLOYMENT" if kind == "azure" else "MODEL"
        raise ToolkitError(f"{kind}: no {what.lower()} is named; give {kind}:{what}, or set OPENAI_MODEL")
    return OpenAI(model, azure=kind == "azure", **options)


class OpenAI:
    """A client for a chat model on a server: threads that share a cache of replies and a limit of requests.

    `cache` is the folder of cached replies; None sends every request. `timeout` limits the seconds for one prompt, with
    its retries. `max_requests` counts retries, and no cached replies.
    """

    def __init__(
        self,
        model: str,
        *,
        azure: bool = False,
        cache: Path | None = None,
        timeout: float | None = None,
        retries: int = 4,
        top_p: float | None = None,
        max_requests: int | None = None,
        wait: Wait | None = None,
    ) -> None:
        self.name = f"{'azure' if azure else 'openai'}:{model}"
        self.requests = 0
        self._model, self._timeout, self._retries, self._top_p, self._wait = model, timeout, retries, top_p, wait
        self._max_requests = max_requests
        self._lock = threading.Lock()
        self._endpoint = Endpoint(timeout=timeout, azure=azure)
        self._cache = Cache(Path(cache) / "replies.sqlite") if cache else None
        self._rejected: set[str] = set()
        """The parameters that the server has rejected."""

    def complete(self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float) -> list[Completion]:
        stop = threading.Event()
        retries = Retries(self._retries, _BACKOFF_SECONDS, stopped=stop, sleep=self._wait)
        pool = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="llm")
        sent: dict[str, Future[Completion]] = {}
        futures = []
        try:
            for prompt in prompts:
                body = self._make_body(prompt, max_tokens, temperature)
                # everything that a reply depends on
                everything = json.dumps([self._endpoint.address, body], sort_keys=True, ensure_ascii=True)
                key = key_of(everything).hex()
                if self._cache is None or key not in sent:  # with a cache, identical prompts are sent once
                    sent[key] = pool.submit(self._answer, body, key, retries, stop)
                futures.append(sent[key])
            return [future.result() for future in track(futures, total=len(futures), label=self.name, unit="prompt")]
        finally:
            stop.set()  # after Ctrl-C: threads that wait for a retry give up
            pool.shutdown(wait=False, cancel_futures=True)

    def _make_body(self, prompt: Prompt, max_tokens: int, temperature: float) -> dict[str, object]:
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        messages.append({"role": "user", "content": prompt.user})
        body: dict[str, object] = {"model": self._model, "messages": messages}
        body |= {"max_tokens": max_tokens, "temperature": temperature}
        if self._top_p is not None:
            body["top_p"] = self._top_p
        if prompt.schema:
            shape = {"name": "reply", "schema": json.loads(prompt.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return body

    def _answer(self, body: dict[str, object], key: str, retries: Retries, stop: threading.Event) -> Completion:
        """Return the cached reply, or send the request with retries; errors are never cached."""
        name = key.encode()
        stored = self._cache.get([name]).get(name) if self._cache is not None else None
        if stored is not None:
            text, tokens_in, tokens_out = json.loads(stored)
            return Completion(text, tokens_in=tokens_in, tokens_out=tokens_out, cached=True)
        started = time.monotonic()
        # jitter from the prompt's hash: threads that failed together do not retry together
        spread = 0.75 + int(key[:4], 16) / 0xFFFF / 2
        try:
            deadline = Deadline(self._timeout) if self._timeout else None
            reply = retries(lambda: self._send(body, stop), deadline=deadline, spread=spread)
        except HttpError as error:
            wait = f"; the server asks to wait {error.wait:.0f} s" if error.wait > LONGEST_WAIT else ""
            tries = f" (tried {error.tries} times)" if error.tries > 1 else ""
            reply = Completion(error=f"{error}{wait}{tries}")
        if self._cache is not None and not reply.error:
            self._cache.put({name: json.dumps([reply.text, reply.tokens_in, reply.tokens_out]).encode()})
        return replace(reply, seconds=time.monotonic() - started)

    def _send(self, body: dict[str, object], stop: threading.Event) -> Completion:
        """Send the request; if the server rejects a parameter, replace it and send the request again at once."""
        while True:
            with self._lock:
                if stop.is_set():
                    return Completion(error=f"{self.name}: stopped")
                if self._max_requests is not None and self.requests >= self._max_requests:
                    limit = f"the limit of {self._max_requests} requests is reached; raise max_requests to go on"
                    return Completion(error=f"{self.name}: {limit}")
                self.requests += 1
                sent = {_RENAMED[name] if name in self._rejected else name: value for name, value in body.items()}
            sent.pop("", None)
            try:
                return self._read(self._endpoint.post("chat/completions", sent), body)
            except HttpError as error:
                rejected = _find(_parse(error.body), "error", "param") if error.status == 400 else None
                if rejected not in _RENAMED or rejected not in sent:
                    raise
                self._rejected.add(str(rejected))

    def _read(self, reply: Mapping[str, Any], body: Mapping[str, Any]) -> Completion:
        content = _find(reply, "choices", 0, "message", "content")
        text = _THOUGHTS.sub("", content, count=1).strip() if isinstance(content, str) else ""
        tokens_in, tokens_out = (_find(reply, "usage", name) for name in ("prompt_tokens", "completion_tokens"))
        if not isinstance(tokens_in, int):
            tokens_in = sum(count_tokens(message["content"]) for message in body["messages"])
        if not text:
            reason = " ".join(self._endpoint.scrub(_explain_empty(reply)).split())
            return Completion(error=f"{self.name}: {reason}", tokens_in=tokens_in)
        tokens_out = tokens_out if isinstance(tokens_out, int) else count_tokens(text)
        return Completion(self._endpoint.scrub(text), tokens_in=tokens_in, tokens_out=tokens_out)


def _explain_empty(reply: Mapping[str, Any]) -> str:
    if reply.get("error"):
        return f"the server reports an error: {str(reply['error'])[:200]}"
    if refusal := _find(reply, "choices", 0, "message", "refusal"):
        return f"the model declined: {str(refusal)[:200]}"
    reason = _find(reply, "choices", 0, "finish_reason")
    if reason == "length":
        return "an empty reply: max_tokens was reached before the first word; raise max_tokens"
    return f"an empty reply ({str(reason or 'no choices')[:200]})"


# ---------------------------------------------------------------- embeddings

_DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}
"""The vector lengths of known models; for these no request is needed."""
_REQUEST_TEXTS = 96  # some servers of this protocol accept no more
_TEXT_CHARS = 24_000  # the models accept about 8,000 tokens
_TOO_MUCH = frozenset({400, 413, 422})
"""HTTP statuses that may concern one text, or the size of the batch: half of the batch may succeed."""


def open_embedder(kind: str, argument: str | None, timeout: float | None) -> "OpenAIEmbedder":
    """Return an embedder for `MODEL` or `MODEL@256`; `timeout` is the seconds of one request with its retries."""
    if not argument:
        example = "azure:DEPLOYMENT" if kind == "azure" else "openai:text-embedding-3-large"
        raise ToolkitError(f"{kind}: no model is named; give one, for instance {example}")
    model, _, length = argument.rpartition("@")
    model, dimensions = (model, int(length)) if model and length.isdecimal() else (argument, None)
    return OpenAIEmbedder(model, dimensions=dimensions, timeout=timeout, azure=kind == "azure")


class OpenAIEmbedder:
    """A client for an embedding model on a server: it sends requests in parallel and retries transient errors."""

    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None = None,
        timeout: float | None = None,
        retries: int = 5,
        azure: bool = False,
        wait: Wait = time.sleep,
    ) -> None:
        self._model, self._wanted, self._timeout = model, dimensions, timeout
        self._retries = Retries(retries, _BACKOFF_SECONDS, sleep=wait)
        self._endpoint = Endpoint(timeout=timeout, azure=azure)
        self.name = f"{'azure' if azure else 'openai'}:{model}" + (f"@{dimensions}" if dimensions else "")
        self.dimensions = dimensions or _DIMENSIONS.get(model) or 0
        if not self.dimensions:
            self.dimensions = int(to_unit(self._request(["dimensions"]), ["dimensions"], name=self.name).shape[1])

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - such servers know no roles
        """Return one normalised row per text, in order; only the beginning of a very long text is embedded."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        stop = threading.Event()

        def fill(start: int) -> None:
            some = texts[start : start + _REQUEST_TEXTS]
            if not stop.is_set():
                rows = self._request([text[:_TEXT_CHARS] if text.strip() else " " for text in some])
                vectors[start : start + len(some)] = to_unit(rows, some, name=self.name, dimensions=self.dimensions)

        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            try:
                list(pool.map(fill, range(0, len(texts), _REQUEST_TEXTS)))
            finally:
                stop.set()  # after an error the remaining requests are cancelled
        return vectors

    def _request(self, texts: list[str]) -> list[list[float]]:
        """Return the server's vector for each text; a batch that the server rejects as too large is sent in halves."""
        body: dict[str, object] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._wanted:
            body["dimensions"] = self._wanted
        try:
            deadline = Deadline(self._timeout) if self._timeout else None
            reply = self._retries(lambda: self._endpoint.post("embeddings", body), deadline=deadline)
        except HttpError as error:
            if error.status in _TOO_MUCH and len(texts) > 1:
                half = len(texts) // 2
                return self._request(texts[:half]) + self._request(texts[half:])
            about = f" (text of {len(texts[0])} characters: {texts[0][:60]!r})" if error.status in _TOO_MUCH else ""
            raise ServiceError(f"{self.name}: {error}{about}") from None
        try:
            rows = {item["index"]: item["embedding"] for item in reply["data"]}
            return [rows[position] for position in range(len(texts))]
        except (LookupError, TypeError):
            raise ServiceError(
                f"{self.name}: the reply does not have one 'embedding' for each of {len(texts)} texts; does "
                "OPENAI_BASE_URL name an embeddings server?"
            ) from None
