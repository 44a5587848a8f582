"""Servers with OpenAI's protocol, or Azure's: chat completions and embeddings. No error shows the key.

The address and the key are in OPENAI_BASE_URL and OPENAI_API_KEY, or in the variables of Azure's documentation.
OPENAI_TIMEOUT is the timeout for one reply in seconds, by default 60.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
from jmespath import search

from exhibit.engine import track
from exhibit.models.embedders import to_unit
from exhibit.models.llms import Completion, Prompt, count_tokens
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.http import LONGEST_WAIT, Deadline, HttpClient, HttpError, Retries, Secrets

_OPENAI = "https://api.openai.com/v1"
_CONCURRENCY = 8  # requests at the same time
_BACKOFF_SECONDS = 1.0  # before the first retry; each further retry waits twice as long
Wait = Callable[[float], object]  # a function that waits for some seconds before a retry


# ---------------------------------------------------------------- requests


class Endpoint:
    """A server; `kind` is `openai` or `azure`."""

    def __init__(self, kind: str, timeout: float | None) -> None:
        azure = kind == "azure"
        self._key_name = "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY"
        self._version = _read_variable("OPENAI_API_VERSION") if azure else ""
        key, self.address = _read_variable(self._key_name), _read_address(azure=azure)
        if azure and not (self._version and key):
            raise ServiceError("azure needs AZURE_OPENAI_API_KEY and OPENAI_API_VERSION (such as 2024-10-21); set both")
        if not key and httpx.URL(self.address).host == httpx.URL(_OPENAI).host:
            raise ServiceError("api.openai.com needs OPENAI_API_KEY; set it, or set OPENAI_BASE_URL to another server")
        try:
            self._timeout = min(float(_read_variable("OPENAI_TIMEOUT") or 60), timeout or float("inf"))
        except ValueError:
            raise ToolkitError("OPENAI_TIMEOUT is not a number of seconds; set it to a number, such as 60") from None
        headers = {"api-key": key} if azure else {"Authorization": f"Bearer {key}"} if key else {}
        secrets = Secrets([key])
        self._client = HttpClient(headers, connections=_CONCURRENCY, secrets=secrets)
        self.scrub = secrets.strip  # removes the key, even if partly masked, from a text

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        url = f"{self.address}{path}"
        if self._version:
            model = quote(str(body["model"]), safe="")
            url = f"{self.address}openai/deployments/{model}/{path}?api-version={quote(self._version)}"
        try:
            with self._client.send("POST", url, body, deadline=Deadline(self._timeout)) as response:
                response.check()
                data = response.read()
        except HttpError as error:
            words = str(error)
            if error.status in (401, 403):  # leave out the reply, which may quote the key
                words = f"{words.partition(':')[0]}; check {self._key_name}"
            elif error.status is None:
                error.transient = True
            elif search("error.code", _parse(error.body)) == "insufficient_quota":
                error.transient = False  # this error lasts until the user pays
            error.args = (f"{self.address}: {words}",)
            raise
        reply = _parse(data)
        if not isinstance(reply, dict):
            raise HttpError(f"{self.address}: the reply is not JSON; check OPENAI_BASE_URL", transient=True)
        return reply


def _read_variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _read_address(*, azure: bool) -> str:
    name, example = "OPENAI_BASE_URL", "http://localhost:8000/v1"
    if azure:
        name, example = "AZURE_OPENAI_ENDPOINT", "https://NAME.openai.azure.com"
    try:
        url = httpx.URL(_read_variable(name) or ("" if azure else _OPENAI))
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ServiceError(f"{name} is not an address; it looks like {example}")
    return str(url.copy_with(path=url.path.rstrip("/") + "/", username=None, password=None, query=None))


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


# ---------------------------------------------------------------- chat completions

_THOUGHTS = re.compile(r"(?<!\s)\s*<think>.*?</think>", re.DOTALL)  # the reasoning before a reply
_RENAMED = {"max_tokens": "max_completion_tokens", "temperature": "", "response_format": ""}
"""Parameters that some servers reject, and the names that they accept instead."""


def open_model(kind: str, model: str | None, options: Mapping[str, Any]) -> "OpenAI":
    model = model or os.environ.get("OPENAI_MODEL")
    if not model:
        raise ToolkitError(f"{kind}: no model or deployment is named; give {kind}:NAME, or set OPENAI_MODEL")
    return OpenAI(model, kind, **options)


class OpenAI:
    """A client for a chat model on a server, with threads that share a cache of replies and a limit of requests.

    `cache` is the folder of cached replies; None sends every request. `timeout` limits the seconds for one prompt
    including retries. `max_requests` counts retries, but not cached replies.
    """

    def __init__(
        self,
        model: str,
        kind: str = "openai",
        *,
        cache: Path | None = None,
        timeout: float | None = None,
        top_p: float | None = None,
        max_requests: int | None = None,
        wait: Wait | None = None,
    ) -> None:
        self.name = f"{kind}:{model}"
        self._model, self._timeout, self._top_p, self._wait = model, timeout, top_p, wait
        self._requests, self._max_requests = 0, max_requests
        self._lock = threading.Lock()
        self._endpoint = Endpoint(kind, timeout)
        self._cache = Cache(Path(cache) / "replies.sqlite") if cache else None
        self._rejected: set[str] = set()  # the parameters that the server has rejected

    def complete(self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float) -> list[Completion]:
        stop = threading.Event()
        retries = Retries(4, _BACKOFF_SECONDS, stopped=stop, sleep=self._wait)
        pool = ThreadPoolExecutor(_CONCURRENCY, thread_name_prefix="llm")
        sent: dict[str, Future[Completion]] = {}
        futures = []
        try:
            for prompt in prompts:
                body = self._make_body(prompt, max_tokens, temperature)
                # everything that a reply depends on
                key = key_of(json.dumps([self._endpoint.address, body], sort_keys=True)).hex()
                if self._cache is None or key not in sent:  # with a cache, send identical prompts only once
                    sent[key] = pool.submit(self._answer, body, key.encode(), retries, stop)
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

    def _answer(self, body: dict[str, object], key: bytes, retries: Retries, stop: threading.Event) -> Completion:
        stored = self._cache.get([key]).get(key) if self._cache is not None else None
        if stored is not None:
            text, tokens_in, tokens_out = json.loads(stored)
            return Completion(text, tokens_in=tokens_in, tokens_out=tokens_out, cached=True)
        started = time.monotonic()
        try:
            deadline = Deadline(self._timeout) if self._timeout else None
            reply = retries(lambda: self._send(body, stop), deadline=deadline)
        except HttpError as error:
            wait = f"; the server asks to wait {error.wait:.0f} s" if error.wait > LONGEST_WAIT else ""
            tries = f" (tried {error.tries} times)" if error.tries > 1 else ""
            reply = Completion(error=f"{error}{wait}{tries}")
        if self._cache is not None and not reply.error:
            self._cache.put({key: json.dumps([reply.text, reply.tokens_in, reply.tokens_out]).encode()})
        return replace(reply, seconds=time.monotonic() - started)

    def _send(self, body: dict[str, object], stop: threading.Event) -> Completion:
        """Send the request; if the server rejects a parameter, rename or omit it, and send the request again."""
        while True:
            with self._lock:
                if stop.is_set():
                    return Completion(error=f"{self.name}: stopped")
                if self._max_requests is not None and self._requests >= self._max_requests:
                    limit = f"the limit of {self._max_requests} requests is reached; raise max_requests to continue"
                    return Completion(error=f"{self.name}: {limit}")
                self._requests += 1
                sent = {_RENAMED[name] if name in self._rejected else name: value for name, value in body.items()}
            sent.pop("", None)
            try:
                return self._read(self._endpoint.post("chat/completions", sent), body)
            except HttpError as error:
                rejected = search("error.param", _parse(error.body)) if error.status == 400 else None
                if rejected not in _RENAMED or rejected not in sent:
                    raise
                self._rejected.add(str(rejected))

    def _read(self, reply: Mapping[str, Any], body: Mapping[str, Any]) -> Completion:
        content = search("choices[0].message.content", reply)
        text = _THOUGHTS.sub("", content, count=1).strip() if isinstance(content, str) else ""
        tokens_in, tokens_out = search("[usage.prompt_tokens, usage.completion_tokens]", reply)
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
    if refusal := search("choices[0].message.refusal", reply):
        return f"the model declined: {str(refusal)[:200]}"
    reason = str(search("choices[0].finish_reason", reply) or "no choices")
    return f"an empty reply ({reason[:200]})" + ("; raise max_tokens" if reason == "length" else "")


# ---------------------------------------------------------------- embeddings

_DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}
"""The vector lengths of known models, for which no request is needed."""
_REQUEST_TEXTS = 96  # most texts of a request: some servers of this protocol accept no more
_TEXT_CHARS = 24_000  # most characters of a text: the models accept about 8,000 tokens


def open_embedder(kind: str, argument: str | None, *, timeout: float | None = None) -> "OpenAIEmbedder":
    """Return an embedder for `MODEL` or `MODEL@256`; `timeout` limits the seconds of a request and its retries."""
    if not argument:
        raise ToolkitError(f"{kind}: no model is named; give one, for instance {kind}:text-embedding-3-large")
    model, _, length = argument.rpartition("@")
    model, dimensions = (model, int(length)) if model and length.isdecimal() else (argument, None)
    return OpenAIEmbedder(model, kind, dimensions=dimensions, timeout=timeout)


class OpenAIEmbedder:
    def __init__(
        self,
        model: str,
        kind: str = "openai",
        *,
        dimensions: int | None = None,
        timeout: float | None = None,
        wait: Wait = time.sleep,
    ) -> None:
        self._model, self._wanted, self._timeout = model, dimensions, timeout
        self._retries = Retries(5, _BACKOFF_SECONDS, sleep=wait)
        self._endpoint = Endpoint(kind, timeout)
        self.name = f"{kind}:{model}" + (f"@{dimensions}" if dimensions else "")
        self.dimensions = dimensions or _DIMENSIONS.get(model) or 0
        if not self.dimensions:
            self.dimensions = int(to_unit(self._request(["dimensions"]), ["dimensions"], name=self.name).shape[1])

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - such servers know no roles
        vectors = np.empty((len(texts), self.dimensions), np.float32)

        def fill(start: int) -> None:
            some = texts[start : start + _REQUEST_TEXTS]
            rows = self._request([text[:_TEXT_CHARS] if text.strip() else " " for text in some])
            vectors[start : start + len(some)] = to_unit(rows, some, name=self.name, dimensions=self.dimensions)

        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            list(pool.map(fill, range(0, len(texts), _REQUEST_TEXTS)))  # an error cancels the requests that wait
        return vectors

    def _request(self, texts: list[str]) -> list[list[float]]:
        body: dict[str, object] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._wanted:
            body["dimensions"] = self._wanted
        try:
            deadline = Deadline(self._timeout) if self._timeout else None
            reply = self._retries(lambda: self._endpoint.post("embeddings", body), deadline=deadline)
        except HttpError as error:
            raise ServiceError(f"{self.name}: {error}; {len(texts)} texts, the first is {texts[0][:60]!r}") from None
        try:
            rows = {item["index"]: item["embedding"] for item in reply["data"]}
            return [rows[position] for position in range(len(texts))]
        except (LookupError, TypeError):
            raise ServiceError(
                f"{self.name}: the reply does not have one 'embedding' for each of {len(texts)} texts; does "
                "OPENAI_BASE_URL name an embeddings server?"
            ) from None
